"""Text from models is untrusted data: make it safe to write, and say what was odd about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
MOST_NESTED = 64
"""Levels of objects and lists. No schema asks for more, and all later code can walk this many."""
SURROGATES = re.compile("[\ud800-\udfff]")


def sanitize(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with every lone surrogate replaced by U+FFFD, and flags for what is in it.

    Flags: `lone_surrogate` (replaced, because no UTF-8 file can hold one), `nul` and `bidi_control` (kept as they are).
    """
    flags = []
    if not text.isascii():
        if SURROGATES.search(text):
            text = SURROGATES.sub("\ufffd", text)
            flags.append("lone_surrogate")
        if BIDI_CONTROLS.search(text):
            flags.append("bidi_control")
    if "\0" in text:
        flags.append("nul")
    return text, tuple(flags)


def clean(text: str, flags: dict[str, None]) -> str:
    """`sanitize`, which adds to the flags of a reply."""
    text, found = sanitize(text)
    flags.update(dict.fromkeys(found))
    return text


def text_or_none(value: Any) -> str | None:
    """A text that is one and not empty, safe to write."""
    return sanitize(value)[0] if isinstance(value, str) and value else None


def sanitize_data(value: Any, levels: int = MOST_NESTED) -> Any:
    """JSON data with `sanitize` applied to every text in it, keys included.

    Raises RecursionError for data that is nested deeper than this many levels.
    """
    if isinstance(value, str):
        return sanitize(value)[0]
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise RecursionError("the data is nested too deeply")
    if isinstance(value, dict):
        return {sanitize(key)[0]: sanitize_data(item, levels - 1) for key, item in value.items()}
    return [sanitize_data(item, levels - 1) for item in value]


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """JSON data with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {with_texts(key, change): with_texts(item, change) for key, item in value.items()}
    return [with_texts(item, change) for item in value] if isinstance(value, list | tuple) else value


def is_nested_deeper(value: Any, levels: int = MOST_NESTED) -> bool:
    """Whether mappings and lists are nested deeper than this many levels; a plain one is one level."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _parts(outer)]
        if not layer:
            return False
    return any(isinstance(item, Mapping | list | tuple) for item in layer)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
