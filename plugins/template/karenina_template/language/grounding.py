"""Which extracted values do not occur in the text that they were extracted from: found by code, without a call."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from attrs import frozen
from karenina_vocabulary.handle import TemplateField

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELT = {word: float(value) for value, word in enumerate(ONES)} | {
    word: float(value) for value, word in zip(range(20, 100, 10), TENS, strict=True)
}
WORD_SCALES = {"dozen": 12.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
PARTS = {"half": 2.0, "halves": 2.0, "quarter": 4.0, "quarters": 4.0} | {
    f"{word}{plural}": float(value)
    for value, word in enumerate(("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 3)
    for plural in ("", "s")
}
"""Into how many parts a fraction divides. Those from the third on are ordinal numbers too."""
JOINTS = ("an", "and", "a", "of")
NUMERALS = frozenset({*SPELT, "hundred", *WORD_SCALES, *PARTS})
SPELT_WORD = rf"(?:{'|'.join(sorted(NUMERALS))})(?!\w)"
SPELT_WORDS = re.compile(rf"\b{SPELT_WORD}(?:[\s-]+(?:(?:{'|'.join(JOINTS)})\s+){{0,3}}{SPELT_WORD})*")
BETWEEN = re.compile(r"[\s-]+")
FRACTION = re.compile(r"(?<![\d/.,])(?:(\d{1,9})[ -])?(\d{1,9})\s?[/\u2044]\s?([1-9]\d{0,8})(?!\d)")


def spelt_numbers(text: str, numerals: Iterable[str] = NUMERALS) -> Iterator[float]:
    """By every way to read them, of a text in small letters. A number in digits alone is none of them. `numerals` are
    all that are in it, and may be more."""
    for run in dict.fromkeys(_runs(text, numerals)):
        yield from _read_words(BETWEEN.split(run))
    for whole, over, under in FRACTION.findall(text) if "/" in text or "\u2044" in text else ():
        yield int(over) / int(under)
        yield int(whole or 0) + int(over) / int(under)


def _runs(text: str, numerals: Iterable[str]) -> Iterator[str]:
    """Numerals in a row. They are looked for one by one: a pattern would look at every place of the text."""
    places, end = set(), 0
    for numeral in numerals:
        place = text.find(numeral)
        while place >= 0:
            places.add(place)
            place = text.find(numeral, place + 1)
    for place in sorted(places):
        if place >= end and (run := SPELT_WORDS.match(text, place)):
            end = run.end()
            yield run[0]


def _read_words(words: list[str]) -> Iterator[float]:
    total, before, part, joint = 0.0, 0.0, None, ""
    for word in words:
        if word in JOINTS:
            joint = word
            continue
        if word in WORD_SCALES:
            total, part = total + (1.0 if part is None else part) * WORD_SCALES[word], None
        elif word == "hundred":
            part = 100.0 * (1.0 if part is None else part)
        elif word in PARTS:
            if part is None:
                yield PARTS[word]  # the fifth
            # Three quarters; one and a half; a third.
            part = (part or 0.0) + 1 / PARTS[word] if part is None or joint else part / PARTS[word]
            yield before + part  # two and three quarters
        elif part is None or (part >= 100 and part % 100 == 0):
            part = (part or 0.0) + SPELT[word]  # after a hundred
        elif not joint and SPELT[word] < 10 and part % 100 >= 20 and part % 10 == 0:  # after a ten, without `and`
            part += SPELT[word]
        else:
            yield from _ended(total + (part or 0.0), before)
            before, total, part = total + (part or 0.0), 0.0, SPELT[word]
        joint = ""
    yield from _ended(total + (part or 0.0), before)


def _ended(number: float, before: float) -> Iterator[float]:
    """A number, and the year that it may be with the one before it: nineteen ninety-nine."""
    yield number
    if 10 <= before < 100 and 10 <= number < 100:
        yield before * 100 + number


NAME = re.compile(r"[A-Za-z_]\w*")
LOOKED_FOR = frozenset({"str", "int", "float", "Decimal", "date", "datetime", "None"})
CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "Sequence", "Optional", "Union"})
WORD = re.compile(r"[^\W_]+")
NO_LETTERS = {mark: " " for mark in range(128) if not chr(mark).isalnum()}
"""For `str.translate`, which splits a text in ASCII into words in a fifth of the time."""
NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d+)*(?:[eE][-+]?\d{1,3})?")
GROUPED = re.compile(r"[,'’\u00a0\u202f ](?=\d{3}(?!\d))")
SCALES = {"hundred": 1e2, "k": 1e3, "mio": 1e6, "mn": 1e6, "m": 1e6, "bn": 1e9, **WORD_SCALES}
SCALES |= dict.fromkeys(("percent", "per cent", "%"), 1e-2)
SCALED = re.compile(
    rf"([\d.,](?<![\d.,]{{2}})[\d.,]*(?<=\d))[\s-]*({'|'.join(sorted(SCALES, key=len, reverse=True))})(?!\w)"
)
"""It begins with what it may begin with, not with what is before it: so the places to look at are found quickly."""
VULGAR = re.compile(r"(?=[\u00bc-\u00be\u2150-\u215e])")
"""Before `½`, so that `2½` is two and a half."""
DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ].*)?")
LARGEST = 1e300
"""Numbers from here on are looked for as they are written alone."""
LEAST = 4
"""Letters and digits from which a text is also looked for inside and across words; a shorter one is met there by
chance. Chosen, not measured."""


def ungrounded(fields: Sequence[TemplateField], values: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The fields with a value that does not occur in the text, in the order of the template.

    A text is found whatever its case, accents, spaces and punctuation, also where its words are apart; a number
    however it is written (`1,000`, `2 million`, `5 %`, `3/4`, in English words up to trillions), also in a unit of
    another power of ten; a date by its year and day. Truth values and choices are judgements rather than quotations,
    and are not looked for; nor are nulls and values of other types.
    """
    source = _Source(text)
    found = []
    for field in fields:
        value = values.get(field.name)
        if value is None or not _is_looked_for(field.type):
            continue
        if not (isinstance(value, str) and len(value) >= LEAST and value in text):  # the usual case
            found += [] if all(map(source.holds, _scalars(value))) else [field.name]
    return tuple(found)


def fields_in(fields: Sequence[TemplateField], values: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The fields whose value, or every member of it, occurs in the text: of whatever type, but no truth values."""
    source = _Source(text)
    found = ((field.name, _scalars(values.get(field.name))) for field in fields)
    return tuple(
        name for name, parts in found if parts and all(str(one).strip() and source.holds(one) for one in parts)
    )


@lru_cache(maxsize=256)
def _is_looked_for(declared: str) -> bool:
    names = set(NAME.findall(declared)) - CONTAINERS
    return names <= LOOKED_FOR and bool(names)


def _scalars(value: Any) -> list[str | int | float]:
    """The texts and numbers in JSON data."""
    kind = type(value)
    if kind in (str, int, float):
        return [value]
    members = value.values() if kind is dict else value if kind in (list, tuple) else ()
    return [scalar for member in members for scalar in _scalars(member)]


@frozen(eq=False)
class _Source:
    """A text in which values are looked for. What that takes is made of it when it is needed first."""

    text: str

    def holds(self, value: str | float) -> bool:
        if not isinstance(value, str):
            return str(value) in self._as_words or (abs(value) < LARGEST and self._holds_number(float(value)))
        if value in self.text and value.isalnum() and len(value) >= LEAST:  # the usual case
            return True
        wanted = WORD.findall(_folded(value))
        short = bool(wanted) and value.isascii() and sum(map(len, wanted)) < LEAST
        if value in self.text and not short:
            return True
        if date := DATE.fullmatch(value.strip()):
            return float(date[1]) in self._numbers and float(date[3]) in self._numbers
        number = wanted[0] if len(wanted) == 1 and wanted[0].isdecimal() else ""
        if number and self._holds_number(float(number)):
            return True
        together = "".join(wanted)
        if len(together) >= LEAST and together in self._squeezed:
            return True
        return bool(wanted) and all(
            word in self._as_words or (len(word) >= LEAST and word in self._squeezed) for word in wanted
        )

    def _holds_number(self, value: float) -> bool:
        value = abs(value)
        digits = _digits(value)
        if value in self._numbers or (len(digits) > 1 and digits in self._significant):
            return True
        decimals = len(repr(value).partition(".")[2])
        return decimals > 1 and any(round(number, decimals) == value for number in self._spelt_and_fractions)

    @cached_property
    def _folded(self) -> str:
        return _folded(self.text)

    @cached_property
    def _words(self) -> list[str]:
        text = self._folded
        return text.translate(NO_LETTERS).split() if text.isascii() else WORD.findall(text)

    @cached_property
    def _as_words(self) -> frozenset[str]:
        return frozenset(self._words)

    @cached_property
    def _squeezed(self) -> str:
        return "".join(self._words)

    @cached_property
    def _numbers(self) -> frozenset[float]:
        """Every number in the text, by every way to read it."""
        if all(map(str.isalpha, self._as_words)):  # no digit anywhere
            return self._spelt_and_fractions
        text = self._folded
        found = {reading for written in NUMBER.findall(text) for reading in _readings(written)}
        found |= {
            float(f"{reading * SCALES[scale]:.12g}")
            for written, scale in SCALED.findall(text)
            for reading in _readings(written)
        }
        return frozenset(found | self._spelt_and_fractions)

    @cached_property
    def _spelt_and_fractions(self) -> frozenset[float]:
        if not self.text.isascii():
            return frozenset(spelt_numbers(_folded(VULGAR.sub(" ", self.text))))
        numerals = self._as_words & NUMERALS
        return frozenset(spelt_numbers(self._folded, numerals)) if numerals or "/" in self.text else frozenset()

    @cached_property
    def _significant(self) -> frozenset[str]:
        return frozenset(map(_digits, self._numbers))


def _readings(written: str) -> Iterator[float]:
    """The numbers that digits with marks between them may be: 1.234 is one in English and another in German."""
    yield from map(float, re.findall(r"\d+", written))
    for joined in (GROUPED.sub("", written), re.sub(r"\.(?=\d{3}(?!\d))", "", written).replace(",", ".")):
        try:
            yield float(joined)
        except ValueError:  # several numbers in a row, a date, a version
            continue


def _digits(value: float) -> str:
    """The significant digits of a number, the same in every unit that is a power of ten of another."""
    return f"{value:.12g}".partition("e")[0].replace(".", "").strip("0")


def _folded(text: str) -> str:
    """The text without case, accents and differences of width."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text)
    return "".join(mark for mark in folded if not unicodedata.combining(mark)).casefold()
