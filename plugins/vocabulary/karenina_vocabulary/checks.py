"""Validators of the fields of traits: types are strict, True is no number, and every error names the trait.

Converters leave alone what they cannot convert: only validators know the trait.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

__all__ = [
    "direction",
    "fraction",
    "listed",
    "mapped",
    "names",
    "plain",
    "positive",
    "switch",
    "texts",
    "whole",
    "whole_from",
]


def listed(value: Iterable[str]) -> Any:
    """A tuple of what is listed. A single text is no list of its letters."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else value


def mapped(value: Any) -> Any:
    """A dictionary of a mapping."""
    return dict(value) if isinstance(value, Mapping) else value


def plain(text: str) -> str:
    """The same for texts that a reader cannot tell apart: they differ in case, white space around them or Unicode
    composition."""
    return unicodedata.normalize("NFC", text.strip()).casefold()


def switch(trait: Any, attribute: Any, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool):
        _refuse(trait, attribute, "True or False", value)


def direction(trait: Any, attribute: Any, value: Any) -> None:
    """True, False or None."""
    if value is not None and not isinstance(value, bool):
        _refuse(trait, attribute, "True, False or None", value)


def texts(trait: Any, attribute: Any, value: Any) -> None:
    """A tuple of texts."""
    if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
        _refuse(trait, attribute, "a list of texts", list(value) if isinstance(value, tuple) else value)


def names(trait: Any, attribute: Any, value: Any) -> None:
    """A mapping of names or None."""
    if value is not None and not isinstance(value, Mapping):
        _refuse(trait, attribute, "names with a description or None each", value)


def whole(trait: Any, attribute: Any, value: Any) -> None:
    """A whole number or None."""
    if value is not None and not _is_whole(value):
        _refuse(trait, attribute, "a whole number", value)


def whole_from(least: int) -> Callable[[Any, Any, Any], None]:
    """A validator: a whole number that is not less, or None."""

    def check(trait: Any, attribute: Any, value: Any) -> None:
        if value is not None and not (_is_whole(value) and value >= least):
            _refuse(trait, attribute, f"a whole number from {least} on", value)

    return check


def positive(trait: Any, attribute: Any, value: Any) -> None:
    """A whole number from 1 on; None is refused."""
    if not _is_whole(value) or value < 1:
        _refuse(trait, attribute, "a whole number from 1 on", value)


def fraction(trait: Any, attribute: Any, value: Any) -> None:
    """A number from 0 to 1, or None."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if value is not None and not fits:
        _refuse(trait, attribute, "a number from 0 to 1", value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(trait: Any, attribute: Any, wanted: str, value: Any) -> NoReturn:
    raise ValueError(f"trait {trait.name!r}: {attribute.name} must be {wanted}, not {value!r}")
