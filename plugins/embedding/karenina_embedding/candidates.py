"""Which fields may be right in other words: wrong ones that hold text, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_vocabulary.handle import FilledTemplate, TemplateField, TemplateHandle

from karenina_core.errors import TemplateError

__all__ = ["Candidate", "Pair", "candidates"]

LISTS = frozenset({"list[str]", "set[str]"})
MOST = 30
"""Texts of a list that are compared with others: 900 pairs take a tenth of a second."""
WORD = re.compile(r"[^\W\d_]+")
MONTHS = "january february march april may june july august september october november december"
NO_PROSE = frozenset(
    {*MONTHS.split(), *(month[:3] for month in MONTHS.split()), "sept"}
    | {"st", "nd", "rd", "th", "of", "am", "pm", "t", "z", "utc", "e", "nan", "inf", "infinity"}
    | {"true", "false", "yes", "no", "none", "null"}
)
"""Words of dates, times, numbers and truth values."""


@frozen
class Pair:
    """An expected and an extracted text that may mean the same."""

    field: str
    description: str
    expected: str
    extracted: str
    wanted: int | None = None
    """The place of the expected text in its list, from 0; None where the field is no list."""
    place: int | None = None
    """The same of the extracted text."""

    @property
    def key(self) -> str:
        """What the judge's reply calls it: the field, with the number of the extracted text in a list."""
        return self.field if self.place is None else f"{self.field}.{self.place + 1}"


@frozen
class Candidate:
    """One wrong field with the texts that may mean the same: the two of a text; of two lists each text of the one with
    each of the other, except those that are in both."""

    name: str
    pairs: tuple[Pair, ...]

    @property
    def is_list(self) -> bool:
        return self.pairs[0].place is not None

    def matched(self, scores: Mapping[Pair, float]) -> tuple[Pair, ...]:
        """The most similar pairs, every text in one pair at most; of equally similar ones the first."""
        found: list[Pair] = []
        for pair in sorted(self.pairs, key=lambda pair: -scores[pair]):
            if not any(pair.wanted == other.wanted or pair.place == other.place for other in found):
                found.append(pair)
        return tuple(found)


def candidates(
    handle: TemplateHandle, filled: FilledTemplate, results: Mapping[str, bool | None]
) -> tuple[Candidate, ...]:
    """The wrong text fields of a filled template; `results` are those of the comparison, by field.

    A field counts that is declared as text or as a list of texts, whose expected and extracted values are texts with
    words in them, and that the comparison says is wrong; where it says nothing (a template that decides by code of its
    own), one whose value is another than the expected one. Numbers, truth values and dates never count, also where they
    are written as text: vectors of `1987` and `1988` are close. Nor do semantic fields, whose own threshold decides,
    fields that are decided without an expected value, and lists that differ in more than 30 texts.
    """
    expected, extracted = handle.ground_truth(), filled.values()
    pairs = ((field, expected.get(field.name), extracted.get(field.name)) for field in handle.fields())
    found = (
        Candidate(field.name, tuple(_pairs(field, wanted, there)))
        for field, wanted, there in pairs
        if _is_wrong(results, field.name, wanted, there) and _acceptable(filled, field.name)
    )
    return tuple(candidate for candidate in found if candidate.pairs)


def _pairs(field: TemplateField, wanted: Any, there: Any) -> Iterator[Pair]:
    declared = {part.strip() for part in field.type.split("|")} - {"None"}
    if field.semantic:
        return
    if declared == {"str"} and _are_prose(wanted, there):
        yield Pair(field.name, field.description, wanted, there)
    elif len(declared) == 1 and declared < LISTS and isinstance(wanted, list) and isinstance(there, list):
        known = Counter(map(_stripped, wanted)) & Counter(map(_stripped, there))
        left, others = _left(wanted, known), _left(there, known)
        if len(left) <= MOST and len(others) <= MOST:
            for number, text in left:
                for place, other in others:
                    if _are_prose(text, other):
                        yield Pair(field.name, field.description, text, other, number, place)


def _stripped(value: Any) -> str:
    return value.strip() if isinstance(value, str) else repr(value)


def _left(values: Sequence[Any], known: Counter[str]) -> list[tuple[int, Any]]:
    """The values that are not in both lists, with their places; of equal ones the first are those that are."""
    there = Counter(known)
    left = []
    for place, value in enumerate(values):
        if there[_stripped(value)]:
            there[_stripped(value)] -= 1
        else:
            left.append((place, value))
    return left


def _are_prose(*values: Any) -> bool:
    return all(isinstance(value, str) and is_prose(value) for value in values)


def is_prose(text: str) -> bool:
    """Whether there is a word in it that does more than write a number, a date or a truth value."""
    return any(word.lower() not in NO_PROSE for word in WORD.findall(text))


def _is_wrong(results: Mapping[str, bool | None], name: str, expected: Any, extracted: Any) -> bool:
    if name in results:
        return results[name] is False
    return _stripped(extracted) != _stripped(expected)


def _acceptable(filled: Any, name: str) -> bool:
    """Whether the template has an expected value to accept; a placeholder is none."""
    try:
        filled.accepting([name])
    except TemplateError:
        return False
    return True
