"""Validators of the fields of traits: types are strict, True is no number, and every error names the trait.

Converters leave alone what they cannot convert: only validators know the trait.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def listed(value: Iterable[str]) -> Any:
    """A tuple of what is listed. A single text is no list of its letters."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else value


def mapped(value: Any) -> Any:
    """A dictionary of a mapping."""
    return dict(value) if isinstance(value, Mapping) else value


def plain(text: str) -> str:
    """The same for texts that look alike to a reader: they differ in case, white space around them or Unicode
    composition."""
    return unicodedata.normalize("NFC", text.strip()).casefold()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _validator(wanted: str, fits: Callable[[Any], bool], *, optional: bool = True) -> Callable[[Any, Any, Any], None]:
    """Refuses what does not fit; None fits where the field is `optional`."""

    def check(trait: Any, attribute: Any, value: Any) -> None:
        if not (fits(value) or (optional and value is None)):
            shown = list(value) if isinstance(value, tuple) else value
            raise ValueError(f"trait {trait.name!r}: {attribute.name} must be {wanted}, not {shown!r}")

    return check


def whole_from(least: int) -> Callable[[Any, Any, Any], None]:
    """A validator: a whole number that is not less, or None."""
    return _validator(f"a whole number from {least} on", lambda value: _is_whole(value) and value >= least)


switch = _validator("True or False", lambda value: isinstance(value, bool), optional=False)
direction = _validator("True, False or None", lambda value: isinstance(value, bool))
names = _validator("names with a description or None each", lambda value: isinstance(value, Mapping))
whole = _validator("a whole number", _is_whole)
positive = _validator("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1, optional=False)
fraction = _validator(
    "a number from 0 to 1",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
)
texts = _validator(
    "a list of texts",
    lambda value: isinstance(value, tuple) and all(isinstance(entry, str) for entry in value),
    optional=False,
)
