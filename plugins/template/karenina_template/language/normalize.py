"""Normalizers: small changes of a text before it is compared, applied from left to right to both sides.

What looks the same on paper is the same text, whatever the normalizers: see `canonical`. Values that are no texts are
compared as the texts that `as_text` makes of them.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from karenina_core.errors import did_you_mean

# Hyphens and spaces that only differ in where a line may break: U+2010, U+2011, U+00A0 and U+202F; and the micro sign,
# which is a mu.
_ALIKE = str.maketrans("\u2010\u2011\u00a0\u202f\u00b5", "--  \u03bc")
_MINUS = re.compile(r"\u2212(?=[\d.])|(?<=\d)\u2212")
"""The sign of a number, or of a charge; alone it may be a dash as well."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)

NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "lowercase": str.lower,
    "strip": str.strip,
    "remove_punctuation": lambda text: text.translate(_PUNCTUATION),
    "collapse_whitespace": lambda text: " ".join(text.split()),
}


def canonical(text: str) -> str:
    """The text in Unicode's normal form C, with plain hyphens and spaces for those that steer line breaks, and for the
    minus sign at a number, and mu for the micro sign.

    Compatibility forms stay as they are: m² is not m2.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", _MINUS.sub("-", text.translate(_ALIKE)))


def _text_to_text(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(t, str) for pair in value.items() for t in pair):
        raise TypeError(f"a synonym map needs a mapping of text to text, not {value!r}")
    return dict(value)


@frozen
class SynonymMap:
    """Replaces a whole text that is one of the keys by its value; any other text stays as it is.

    Upper and lower case differ, so put `lowercase` before the map and write its keys in lower case.
    """

    mapping: Mapping[str, str] = field(converter=_text_to_text)
    _known: Mapping[str, str] = field(init=False, eq=False, repr=False)

    @_known.default
    def _read_keys(self) -> dict[str, str]:
        return {canonical(key): text for key, text in self.mapping.items()}

    def __call__(self, text: str) -> str:
        return self._known.get(canonical(text), text)


def read_normalizers(value: Any) -> tuple[str | SynonymMap, ...]:
    """A list of normalizer names and synonym maps (also as `{"mapping": {...}}`) as a tuple.

    Raises TypeError where it is no list, ValueError for a name that does not exist.
    """
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"normalize needs a list of normalizers, not {value!r}")
    found: list[str | SynonymMap] = []
    for item in value:
        if isinstance(item, Mapping):
            extra = set(item) - {"type", "mapping"}
            if extra or "mapping" not in item or item.get("type", "SynonymMap") not in ("SynonymMap", "synonym_map"):
                form = '{"type": "SynonymMap", "mapping": {...}}'
                raise ValueError(f"a synonym map is written {form}, not {dict(item)!r}")
            found.append(SynonymMap(item["mapping"]))
        elif isinstance(item, SynonymMap) or (isinstance(item, str) and item in NORMALIZERS):
            found.append(item)
        else:
            hint = did_you_mean(item, NORMALIZERS) if isinstance(item, str) else ""
            raise ValueError(f"unknown normalizer {item!r}{hint}; available: {', '.join(NORMALIZERS)} and SynonymMap")
    return tuple(found)


def normalized(text: str, normalizers: Iterable[str | SynonymMap]) -> str:
    """The canonical text after all normalizers."""
    text = canonical(text)
    for normalizer in normalizers:
        text = canonical(NORMALIZERS[normalizer](text) if isinstance(normalizer, str) else normalizer(text))
    return text


_COLLECTIONS = (Mapping, set, frozenset, list, tuple)


def as_text(value: Any, normalizers: Iterable[str | SynonymMap] = ()) -> str:
    """The text by which a value is compared, normalized: the value of an enum member, else what Python prints.

    Lists, tuples, sets and mappings are written out with every member normalized; the order counts in lists and tuples
    only. A pydantic model is the mapping of its fields.
    """
    value, normalizers = _unwrapped(value), tuple(normalizers)
    if isinstance(value, Mapping):
        pairs = (f"{_quoted(key, normalizers)}: {_quoted(item, normalizers)}" for key, item in value.items())
        return "{" + ", ".join(sorted(pairs)) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted({_quoted(item, normalizers) for item in value})) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_quoted(item, normalizers) for item in value) + "]"
    return normalized(str(value), normalizers)


def _quoted(member: Any, normalizers: tuple[str | SynonymMap, ...]) -> str:
    text = as_text(member, normalizers)
    return text if isinstance(_unwrapped(member), _COLLECTIONS) else json.dumps(text, ensure_ascii=False)


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value: of a collection those of all members, of a mapping keys and values, of a pydantic model
    the values of its fields, of None nothing."""
    is_model = isinstance(getattr(type(value), "model_fields", None), Mapping)
    value = _unwrapped(value)
    if is_model:
        value = [*value.values()]
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, _COLLECTIONS):
        for member in value:
            yield from texts_in(member)
    elif value is not None:
        yield str(value)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Enum):
        return _unwrapped(value.value)
    fields = getattr(type(value), "model_fields", None)  # of a pydantic model, without importing pydantic
    return {name: getattr(value, name) for name in fields} if isinstance(fields, Mapping) else value
