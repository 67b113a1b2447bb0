"""Converters and validators of attrs fields. Converters are typed so that constructors take any iterable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["names", "number", "texts", "true_or_false", "whole_number"]


def texts(value: Iterable[str]) -> tuple[str, ...]:
    """Any iterable of texts; a single text is refused, because it would become a list of letters."""
    if isinstance(value, str):
        raise TypeError(f"expected a list of texts, got {value!r}")
    return tuple(value)


def names(value: Iterable[str]) -> frozenset[str]:
    """A set of names."""
    return frozenset(texts(value))


def number(_: object, attribute: Any, value: Any) -> None:
    """A validator: a number; True is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{attribute.name} must be a number, not {value!r}")


def whole_number(_: object, attribute: Any, value: Any) -> None:
    """A validator: a whole number; True is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{attribute.name} must be a whole number, not {value!r}")


def true_or_false(_: object, attribute: Any, value: Any) -> None:
    """A validator: True or False, and nothing that is merely truthy."""
    if not isinstance(value, bool):
        raise ValueError(f"{attribute.name} must be true or false, not {value!r}")
