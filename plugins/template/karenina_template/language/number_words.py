"""Numbers that a text writes in English words or as fractions: `five hundred and one`, `two dozen`, `half`, `2 3/4`."""

from __future__ import annotations

import re
from collections.abc import Iterator

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELT = {word: float(value) for value, word in enumerate(ONES)} | {
    word: float(value) for value, word in zip(range(20, 100, 10), TENS, strict=True)
}
SCALES = {"dozen": 12.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
PARTS = {"half": 2.0, "halves": 2.0, "quarter": 4.0, "quarters": 4.0} | {
    f"{word}{plural}": float(value)
    for value, word in enumerate(("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 3)
    for plural in ("", "s")
}
"""Into how many parts a fraction divides. Those from the third on are ordinal numbers too."""
JOINTS = ("an", "and", "a", "of")
WORD = rf"(?:{'|'.join((*SPELT, 'hundred', *SCALES, *PARTS))})(?!\w)"
WORDS = re.compile(rf"(?<!\w){WORD}(?:[\s-]+(?:(?:{'|'.join(JOINTS)})\s+){{0,3}}{WORD})*")
BETWEEN = re.compile(r"[\s-]+")
FRACTION = re.compile(r"(?<![\d/.,])(?:(\d{1,9})[ -])?(\d{1,9})\s?[/\u2044]\s?([1-9]\d{0,8})(?!\d)")


def spelt_numbers(text: str) -> Iterator[float]:
    """By every way to read them, of a text in small letters. A number in digits alone is none of them."""
    for run in dict.fromkeys(WORDS.findall(text)):
        yield from _read(BETWEEN.split(run))
    for whole, over, under in FRACTION.findall(text):
        yield int(over) / int(under)
        yield int(whole or 0) + int(over) / int(under)


def _read(words: list[str]) -> Iterator[float]:
    total, before, part, joint = 0.0, 0.0, None, ""
    for word in words:
        if word in JOINTS:
            joint = word
            continue
        if word in SCALES:
            total, part = total + (1.0 if part is None else part) * SCALES[word], None
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
