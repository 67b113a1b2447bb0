"""Whether the reference answer, as a person wrote it, and the template say the same.

Whatever in the reference answer could be meant as the value of a field is given to the template, whose own code
decides. Only where it accepts none of it, and the reference answer says something else instead, is there a
contradiction: a template may well ask for more than the reference answer says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from karenina_template.lint.references import mentions
from karenina_template.lint.spelling import number_of, prepared
from karenina_vocabulary.handle import TemplateField

from karenina_core.values.question import Question

from .findings import Finding, Severity
from .probes import Probe
from .words import NUMBER_WORDS, plain, terms

LONGEST = 40
"""Words of a reference answer that are tried as a value, one after another and up to `PHRASE` together. Chosen."""
PHRASE = 5  # words; chosen: names of drugs and genes are shorter
SHORT = 8
"""Words of a reference answer that is an answer and no explanation. Chosen."""
LARGEST = Decimal("1e300")
"""What a float can hold, and room for what is done with it."""
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
FACTORS = tuple(map(Decimal, ("12", "24", "60", "3600", "86400", "7", "365", "365.25", "2.54", "0.3048", "1.609344",
                              "0.45359237", "4.184", "101.325")))  # fmt: skip
"""Between units that occur together; powers of ten are beside them. What differs by one may be another unit."""
_YES = re.compile(r"\W*(?:yes|true|correct|right)\b", re.IGNORECASE)
_NO = re.compile(r"\W*(?:no|false|incorrect|wrong|not)\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|no|never|without|lacks?|den(?:y|ies)|rejects?|refus\w+|fails?|\w+n't|cannot)\b", re.I)
_PIECES = re.compile(r"\s*(?:[,;/\n]|\band\b|\bor\b|\bas well as\b|&)\s*", re.IGNORECASE)
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s*(?:[x×·*]\s*)?10\s*(?:\^|\*\*)\s*\{?([-+]?\d{1,3})\}?")
_FRACTION = re.compile(r"(?<![\d.,/])(\d{1,6})\s*/\s*(\d{1,6})(?![\d.,/])")
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}


async def contradictions(question: Question, probe: Probe) -> list[Finding]:
    """The findings on fields whose expected value and the reference answer exclude each other."""
    reference = question.raw_answer.strip()
    if not reference:
        return []
    silent: list[TemplateField] = []
    said: list[TemplateField] = []
    for one in probe.fields:
        if one.semantic or (one.name not in probe.expected and not probe.alternatives.get(one.name)):
            continue
        (said if await _is_said(reference, one, probe) else silent).append(one)
    taken = [value for one in said for value in _values(probe.expected.get(one.name))]
    found = []
    for one in silent:
        alone = len(probe.fields) == 1
        if differs := await _differs(question, one, probe, taken, alone=alone):
            severity, what = differs
            expected = probe.expected.get(one.name, "another value")
            message = f"the reference answer {what}, and the template expects {expected!r} for {one.name!r}"
            found.append(Finding(question_id=question.id, check="contradiction", severity=severity, message=message))
    return found


async def _is_said(reference: str, one: TemplateField, probe: Probe) -> bool:
    """Whether the reference answer says what the template expects of a field, as far as its code can tell."""
    expected = probe.expected.get(one.name)
    kind = _kind(one)
    if kind == "list":
        own = expected if isinstance(expected, list) else []
        pieces = [piece for piece in _PIECES.split(reference) if piece]
        if await probe.accepts_any(one, ([*pieces], *([own] if not own else []))):
            return True
        return bool(own) and all(_mentioned(reference, member) for member in own) and not _extra(reference, own)
    if kind == "bool":
        return _polarity(reference) in (None, expected)
    if kind == "number":
        numbers = list(_numbers(reference))
        if number_of(expected) in numbers or _rounded(expected, numbers):
            return True
        return await probe.accepts_any(one, [_native(number, one) for number in numbers if abs(number) < LARGEST])
    if expected is not None and await probe.has_own_value(one) and _mentioned(reference, expected):
        return True
    return await probe.accepts_any(one, _phrases(reference))


async def _differs(
    question: Question, one: TemplateField, probe: Probe, taken: list[Any], *, alone: bool
) -> tuple[Severity, str] | None:
    """How sure it is that the reference answer says something else about a field, and what it says."""
    reference, expected, kind = question.raw_answer.strip(), probe.expected.get(one.name), _kind(one)
    if kind == "bool":
        negated = _NEGATED.search(f"{one.description} {question.question}")
        sure = alone and negated is None
        return ("fault", f"says {'yes' if not expected else 'no'}") if sure else None
    if kind == "number":
        free = [number for number in _numbers(reference) if number not in map(number_of, taken)]
        if not free or _other_unit(expected, free, reference, one.description):
            return None
        return ("fault" if len(free) == 1 or alone else "suspect"), f"has {', '.join(f'{n:.10g}' for n in free[:3])}"
    if kind == "list":
        own = expected if isinstance(expected, list) else []
        missing = [member for member in own if not _mentioned(reference, member)]
        if extra := _extra(reference, own):
            return "fault", f"names {extra!r} too"
        named = len(missing) < len(own)
        shown = ", ".join(map(repr, missing[:3]))
        return ("fault" if named else "suspect", f"does not name {shown}") if missing else None
    if options := [option for option in probe.options(one.name) if isinstance(option, str)]:
        others = [option for option in options if option != expected and _mentioned(reference, option)]
        return ("fault", f"names {others[0]!r}") if others else None
    if not await probe.has_own_value(one):  # decided by a pattern, or by parts of a text
        short = len(reference.split()) <= SHORT
        return ("fault" if short and alone else "suspect"), f"is {reference[:80]!r}, of which the field accepts nothing"
    return _other_text(reference, expected, taken, alone=alone)


def _other_text(reference: str, expected: Any, taken: list[Any], *, alone: bool) -> tuple[Severity, str] | None:
    known = {term for value in taken for term in terms(str(value))}
    left = [term for term in terms(reference) if term not in known]
    own = set(terms(str(expected)))
    if not left or own & set(left) or _is_short_form(str(expected), reference):
        return None
    if isinstance(expected, str) and mentions(expected, reference):
        return None
    short = len(reference.split()) <= SHORT
    if alone:
        return ("fault" if short else "suspect"), f"says {reference[:80]!r}"
    return ("suspect", f"says {reference[:80]!r}") if short else None


def _kind(one: TemplateField) -> str:
    bare = one.type.removesuffix(" | None")
    return {"int": "number", "float": "number", "bool": "bool"}.get(bare, "list" if bare.startswith("list") else "text")


def _values(expected: Any) -> list[Any]:
    return expected if isinstance(expected, list) else [expected]


def _native(number: Decimal, one: TemplateField) -> int | float:
    return int(number) if number == number.to_integral_value() and "int" in one.type else float(number)


def _mentioned(text: str, value: Any) -> bool:
    """Whether a text names a value; of a date its year is enough where it names no other."""
    if mentions(text, value):
        return True
    date = re.fullmatch(r"(\d{4})-\d\d-\d\d", str(value))
    years = re.findall(r"(?<!\d)\d{4}(?!\d)", text)
    return date is not None and years == [date[1]] and re.sub(r"\W|_", "", text) == date[1]


def _polarity(text: str) -> bool | None:
    return True if _YES.match(text) else False if _NO.match(text) else None


def _numbers(text: str) -> Iterator[Decimal]:
    """The numbers of a text, also those in words, in scientific notation, as fractions and in millions."""
    spans = prepared(text).numbers
    for number, places in spans.items():
        yield number
        for _, end in places:
            scale = re.match(r"\s*([a-z]+)", text[end:], re.IGNORECASE)
            if scale is not None and scale[1].casefold() in SCALES:
                yield number.scaleb(SCALES[scale[1].casefold()])
    for mantissa, power in _POWER.findall(text.replace("−", "-")):
        yield from (Decimal(mantissa), Decimal(power), Decimal(mantissa).scaleb(int(power)))
    for above, below in _FRACTION.findall(text):
        if int(below):
            yield Decimal(above) / Decimal(below)
    for word in re.findall(r"[^\W\d_]+", plain(text)):
        if word in NUMBER_WORDS:
            yield NUMBER_WORDS[word]
    if plain(text).strip(" .+") in _ROMAN:
        yield Decimal(_ROMAN[plain(text).strip(" .+")])


def _rounded(expected: Any, numbers: Iterable[Decimal]) -> bool:
    """Whether one of the numbers is the expected one, rounded to the places that it has."""
    wanted = number_of(expected)
    if wanted is None:
        return False
    halves = ((number, Decimal(5).scaleb(min(0, int(number.as_tuple().exponent)) - 1)) for number in numbers if number)
    return any(abs(wanted - number) <= half for number, half in halves)


def _other_unit(expected: Any, numbers: Iterable[Decimal], reference: str, description: str) -> bool:
    """Whether a number may be the expected one in a unit which the field does not ask for."""
    wanted = number_of(expected)
    units = {unit for unit in re.findall(r"\d\s*([^\W\d_°]+|°\w?|%)", reference) if unit not in SCALES}
    if not wanted or not units or any(re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", description) for unit in units):
        return False
    return any((number and _is_factor(abs(wanted / number))) or _is_temperature(wanted, number) for number in numbers)


def _is_factor(ratio: Decimal) -> bool:
    ratios = [ratio, 1 / ratio]
    power = ratio.log10()
    if abs(power - power.to_integral_value()) < Decimal("0.001"):
        return True
    return any(abs(one / factor - 1) < Decimal("0.01") for one in ratios for factor in FACTORS)


def _is_temperature(wanted: Decimal, number: Decimal) -> bool:
    return abs(abs(wanted - number) - Decimal("273.15")) < 1 or abs(number * 9 / 5 + 32 - wanted) < 1


def _phrases(text: str) -> Iterator[str]:
    """The text, its pieces, and every few words of it."""
    yield text
    yield text.rstrip(".")
    yield from re.findall(r"\(([^()]+)\)", text)
    words = text.split()[:LONGEST]
    for length in range(min(PHRASE, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length]).strip(" .,;:()\"'“”‘’")


def _extra(reference: str, members: list[Any]) -> str | None:
    """What a reference answer that is a list names beside the members."""
    pieces = [piece.strip(" .()") for piece in _PIECES.split(reference.partition(":")[2] or reference)]
    pieces = [piece for piece in pieces if piece]
    matched = [piece for piece in pieces if any(_mentioned(piece, member) for member in members)]
    left = [piece for piece in pieces if piece not in matched and len(piece.split()) <= 3]
    return left[0] if len(matched) >= 2 and len(left) == 1 else None


def _is_short_form(expected: str, reference: str) -> bool:
    """Whether one may be an abbreviation of the other: DNA, Na, NYC."""
    short, long = sorted((expected, reference), key=len)
    letters = re.sub(r"\W", "", short).casefold()
    initials = "".join(word[0] for word in re.findall(r"[^\W_]+", plain(long)))
    if not letters or len(letters) > 6:
        return False
    return letters in initials or (len(letters) <= 3 and plain(long).lstrip().startswith(letters[0]))
