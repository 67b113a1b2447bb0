"""Which fields may be right in other words: wrong ones that hold text, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from karenina_core.errors import TemplateError
from karenina_core.templates.handle import FilledTemplate, TemplateField, TemplateHandle

__all__ = ["Candidate", "candidates", "is_prose"]

WORD = re.compile(r"[^\W\d_]+")
MONTHS = "january february march april may june july august september october november december"
NO_PROSE = frozenset(
    {*MONTHS.split(), *(month[:3] for month in MONTHS.split()), "sept"}
    | {"st", "nd", "rd", "th", "of", "am", "pm", "t", "z", "utc", "e", "nan", "inf", "infinity"}
    | {"true", "false", "yes", "no", "none", "null"}
)
"""Words of dates, times, numbers and truth values."""


@frozen
class Candidate:
    """One wrong field with the two texts that may mean the same."""

    name: str
    description: str
    expected: str
    extracted: str


def candidates(
    handle: TemplateHandle, filled: FilledTemplate, results: Mapping[str, bool | None]
) -> tuple[Candidate, ...]:
    """The wrong text fields of a filled template; `results` are those of the comparison, by field.

    A field counts that is declared as text, whose expected and extracted values are texts with words in them, and that
    the comparison says is wrong; where it says nothing (a template that decides by code of its own), one whose text is
    another than the expected one. Numbers, truth values and dates never count, also where they are written as text:
    vectors of `1987` and `1988` are close. Nor do semantic fields, whose own threshold has spoken, and fields that are
    decided without an expected value.
    """
    expected, extracted = handle.ground_truth(), filled.values()
    pairs = ((field, expected.get(field.name), extracted.get(field.name)) for field in handle.fields())
    return tuple(
        Candidate(field.name, field.description, wanted, found)
        for field, wanted, found in pairs
        if isinstance(wanted, str)
        and isinstance(found, str)
        and _is_text(field)
        and _is_wrong(results, field.name, wanted, found)
        and is_prose(wanted)
        and is_prose(found)
        and _acceptable(filled, field.name)
    )


def is_prose(text: str) -> bool:
    """Whether there is a word in it that does more than write a number, a date or a truth value."""
    return any(word.lower() not in NO_PROSE for word in _words(text))


def _words(text: str) -> Iterator[str]:
    return (found[0] for found in WORD.finditer(text))


def _is_text(field: TemplateField) -> bool:
    """Declared as `str`, perhaps optional; a choice of literals is no text."""
    return not field.semantic and {part.strip() for part in field.type.split("|")} - {"None"} == {"str"}


def _is_wrong(results: Mapping[str, bool | None], name: str, expected: str, extracted: str) -> bool:
    return results[name] is False if name in results else extracted.strip() != expected.strip()


def _acceptable(filled: Any, name: str) -> bool:
    """Whether the template has an expected value to accept; a placeholder is none."""
    try:
        filled.accepting([name])
    except TemplateError:
        return False
    return True
