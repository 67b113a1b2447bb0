"""Normalizers: small changes of a text before it is compared, applied from left to right to both sides."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen

from ..errors import did_you_mean

__all__ = ["NORMALIZERS", "SynonymMap", "normalized", "read_normalizers"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)

NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "lowercase": str.lower,
    "strip": str.strip,
    "remove_punctuation": lambda text: text.translate(_PUNCTUATION),
    "collapse_whitespace": lambda text: " ".join(text.split()),
}


def _text_to_text(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(t, str) for pair in value.items() for t in pair):
        raise TypeError(f"a synonym map needs a mapping of text to text, not {value!r}")
    return dict(value)


@frozen
class SynonymMap:
    """Replaces a whole text that is one of the keys by its value; any other text stays as it is.

    Keys are compared exactly, so put `lowercase` before the map and write its keys in lower case.
    """

    mapping: Mapping[str, str] = field(converter=_text_to_text)

    def __call__(self, text: str) -> str:
        return self.mapping.get(text, text)


def read_normalizers(value: Any) -> tuple[str | SynonymMap, ...]:
    """A list of normalizer names and synonym maps (also as `{"mapping": {...}}`) as a tuple.

    Raises TypeError where it is no list, ValueError for a name that does not exist.
    """
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"normalize needs a list of normalizers, not {value!r}")
    return tuple(_read_normalizer(item) for item in value)


def _read_normalizer(item: Any) -> str | SynonymMap:
    if isinstance(item, SynonymMap):
        return item
    if isinstance(item, Mapping):
        extra = set(item) - {"type", "mapping"}
        if extra or "mapping" not in item or item.get("type", "SynonymMap") not in ("SynonymMap", "synonym_map"):
            form = '{"type": "SynonymMap", "mapping": {...}}'
            raise ValueError(f"a synonym map is written {form}, not {dict(item)!r}")
        return SynonymMap(item["mapping"])
    if not isinstance(item, str) or item not in NORMALIZERS:
        hint = did_you_mean(item, NORMALIZERS) if isinstance(item, str) else ""
        raise ValueError(f"unknown normalizer {item!r}{hint}; there are {', '.join(NORMALIZERS)} and SynonymMap")
    return item


def normalized(text: str, normalizers: Iterable[str | SynonymMap]) -> str:
    """The text after all normalizers."""
    for normalizer in normalizers:
        text = NORMALIZERS[normalizer](text) if isinstance(normalizer, str) else normalizer(text)
    return text
