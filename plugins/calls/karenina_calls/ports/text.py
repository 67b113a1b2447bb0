"""Text from models is untrusted data: make it safe to write, and say what was odd about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
MOST_NESTED = 64
"""Levels of objects and lists. No schema asks for more, and all later code can walk this many."""
SURROGATES = re.compile("[\ud800-\udfff]")
INVISIBLE: Mapping[str, str] = {
    "tag": "\U000e0000-\U000e007f",
    "bidi": "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "zero_width": "\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0",
    "variation_selector": "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "soft_hyphen": "\u00ad",
}
"""Characters that nobody sees and models read, by kind: ranges of a class of `re`."""
EMOJI = "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
JOINING = "(?![\u061c\u17b4\u17b5\u180b-\u180f])[\u0590-\u109f\u1700-\u18af\ua800-\uabdf\ufb50-\ufdff\ufe70-\ufefc]"
"""Letters of scripts that are written from right to left, or with joiners."""
IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
SPELT = (
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f",  # the flag of a part of a country
    "[#*0-9]\ufe0f\u20e3",
    f"{EMOJI}[\ufe0e\ufe0f]?(?:\u200d{EMOJI}\ufe0f?)*",
    f"{IDEOGRAPH}[\ufe00-\ufe0f\U000e0100-\U000e01ef]",
    f"{JOINING}[\u061c\u180b-\u180d\u200c-\u200f]",
)
"""Where such characters belong: in emoji, variants of ideographs, and one after a letter of `JOINING`. Unicode 15.1,
chapters 9, 12, 13 and 23, and UTS 51."""


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


def invisible(text: str) -> Counter[str]:
    """How many invisible characters are in a text, by the kinds of `INVISIBLE`; not those that belong there."""
    if text.isascii():
        return Counter()
    return Counter(kind for found in _invisible().finditer(text) if (kind := found.lastgroup) is not None)


def with_invisible(text: str, written: Callable[[re.Match[str]], str]) -> str:
    """The text with what `invisible` counts written in another way."""
    if text.isascii():
        return text
    return _invisible().sub(lambda found: found[0] if found.lastgroup is None else written(found), text)


@cache
def _invisible() -> re.Pattern[str]:
    kinds = (f"(?P<{kind}>[{ranges}])" for kind, ranges in INVISIBLE.items())
    return re.compile("|".join([*SPELT, *kinds]))


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
