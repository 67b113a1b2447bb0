"""Whether two values are the same, and if not, where they first differ."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import attrs

__all__ = ["difference", "snapshot"]

SHOWN = 60


def snapshot(value: Any) -> Any:
    """A deep copy; what cannot be copied stays the same object."""
    try:
        return copy.deepcopy(value)
    except TypeError:  # locks, sockets, generators
        return value


def difference(before: Any, after: Any, path: str = "") -> str | None:
    """`path: this, not that` for the first difference, or None.

    Objects of classes that do not say what equality means are compared by their attributes. NaN equals NaN.
    """
    return _difference(before, after, path, set())


def _difference(a: Any, b: Any, path: str, seen: set[tuple[int, int]]) -> str | None:
    if a is b or (id(a), id(b)) in seen:
        return None
    seen.add((id(a), id(b)))
    if type(a) is not type(b):
        return _told(a, b, path)
    if isinstance(a, float) and math.isnan(a) and math.isnan(b):
        return None
    if isinstance(a, Mapping):
        return _of_mappings(a, b, path, seen)
    if isinstance(a, Sequence) and not isinstance(a, str | bytes | bytearray):
        if len(a) != len(b):
            return _told(a, b, path)
        pairs = [(f"{path}[{number}]", *pair) for number, pair in enumerate(zip(a, b, strict=True))]
        return _first(pairs, seen)
    if isinstance(a, Set) or _says_what_equals(type(a)):
        return None if a == b else _told(a, b, path)
    return _of_attributes(a, b, path, seen)


def _says_what_equals(cls: type) -> bool:
    """Whether a class has an equality of its own; that of attrs leaves out fields, and is not asked."""
    return "__eq__" in {name for base in cls.__mro__[:-1] for name in base.__dict__} and not attrs.has(cls)


def _of_mappings(a: Any, b: Any, path: str, seen: set[tuple[int, int]]) -> str | None:
    if a.keys() != b.keys():
        return _told(a, b, path)
    return _first([(f"{path}[{key!r}]", value, b[key]) for key, value in a.items()], seen)


def _of_attributes(a: Any, b: Any, path: str, seen: set[tuple[int, int]]) -> str | None:
    names = [*getattr(a, "__dict__", ()), *_slots(type(a))]
    other = [*getattr(b, "__dict__", ()), *_slots(type(b))]
    if not names or set(names) != set(other):
        # A class, a function or the like: it is what it is.
        return None if a == b else _told(a, b, path)
    missing = object()
    return _first([(f"{path}.{name}", getattr(a, name, missing), getattr(b, name, missing)) for name in names], seen)


def _slots(cls: type) -> list[str]:
    slots = [slot for base in cls.__mro__ for slot in _listed(base.__dict__.get("__slots__", ()))]
    return [slot for slot in slots if slot not in ("__weakref__", "__dict__")]


def _listed(slots: Any) -> Sequence[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _first(pairs: Sequence[tuple[str, Any, Any]], seen: set[tuple[int, int]]) -> str | None:
    for path, a, b in pairs:
        if found := _difference(a, b, path, seen):
            return found
    return None


def _told(a: Any, b: Any, path: str) -> str:
    return f"{path or 'it'}: {_short(b)}, not {_short(a)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
