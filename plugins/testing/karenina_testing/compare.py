"""Whether two values are the same, and if not, where they first differ."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import attrs

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
        return _unlike(a, b, path)
    if isinstance(a, float) and math.isnan(a) and math.isnan(b):
        return None
    if isinstance(a, Mapping):
        if a.keys() != b.keys():
            return _unlike(a, b, path)
        return _first([(f"{path}[{key!r}]", value, b[key]) for key, value in a.items()], seen)
    if isinstance(a, Sequence) and not isinstance(a, str | bytes | bytearray):
        if len(a) != len(b):
            return _unlike(a, b, path)
        pairs = [(f"{path}[{number}]", *pair) for number, pair in enumerate(zip(a, b, strict=True))]
        return _first(pairs, seen)
    names = _attributes(a)
    # The equality of attrs may leave out fields, and is not asked.
    has_equality = any("__eq__" in base.__dict__ for base in type(a).__mro__[:-1]) and not attrs.has(type(a))
    # Without attributes it is a class, a function or the like.
    if isinstance(a, Set) or has_equality or not names or set(names) != set(_attributes(b)):
        return None if a == b else _unlike(a, b, path)
    missing = object()
    return _first([(f"{path}.{name}", getattr(a, name, missing), getattr(b, name, missing)) for name in names], seen)


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__weakref__", "__dict__")]


def _first(pairs: Sequence[tuple[str, Any, Any]], seen: set[tuple[int, int]]) -> str | None:
    for path, a, b in pairs:
        if found := _difference(a, b, path, seen):
            return found
    return None


def _unlike(a: Any, b: Any, path: str) -> str:
    after, before = (text if len(text) <= SHOWN else text[: SHOWN - 1] + "…" for text in (repr(b), repr(a)))
    return f"{path or 'it'}: {after}, not {before}"
