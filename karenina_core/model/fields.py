"""Converters of attrs fields, typed so that constructors take any iterable."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["names", "texts"]


def texts(value: Iterable[str]) -> tuple[str, ...]:
    """Any iterable of texts; a single text is refused, because it would become a list of letters."""
    if isinstance(value, str):
        raise TypeError(f"expected a list of texts, got {value!r}")
    return tuple(value)


def names(value: Iterable[str]) -> frozenset[str]:
    """A set of names."""
    return frozenset(texts(value))
