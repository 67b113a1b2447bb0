"""JSON text as values and back, strictly and within limits; objects of a document read, compared and merged."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from karenina_core.values.benchmark import MissingTrait

MAX_BYTES = 256 * 1024 * 1024
"""Of a file; chosen: it is in memory as text and as values."""
MAX_DEPTH = 64
"""Of nested values; chosen, far below what the recursive functions here can follow."""
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; flatten the innermost values"
BOM = "\ufeff"
SURROGATES = re.compile("[\ud800-\udfff]")
T = TypeVar("T")
Node = dict[str, Any]
READ_ERRORS = (ValueError, TypeError, OverflowError, RecursionError, Warning)
"""What reading a value may raise; `Warning` where the interpreter is set to raise them (`-W error`)."""


@frozen
class Document:
    """The text of a file as it was read. It is parsed again on saving, so it cannot be changed by accident."""

    text: str = field(repr=False)
    trait_types: frozenset[str] = frozenset()
    """Names of the types of other packages of which traits were read. A type that another application knows as well
    is unknown here, so that what was not read is not taken for removed."""


def decode(data: bytes) -> str:
    """The text of a file. Raises ValueError for too much data and for anything but UTF-8."""
    if len(data) > MAX_BYTES:
        raise ValueError(
            f"the file has {len(data)} bytes, more than {MAX_BYTES}; split the benchmark into several files"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None


def parse(text: str) -> Any:
    """JSON text as Python values. A byte order mark at the start is skipped.

    Raises ValueError for malformed JSON, NaN and infinite numbers, a key that occurs twice in one object, and values
    that are nested deeper than 64 levels.
    """
    try:
        value = json.loads(
            text.removeprefix(BOM), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"not valid JSON at {place}: {error.msg}; correct the file there") from error
    if _depth(value) > MAX_DEPTH:
        raise ValueError(TOO_DEEP)
    return value


def parse_or_none(text: str) -> Any:
    """Like `parse`, but None for a text that is not JSON."""
    try:
        return parse(text)
    except ValueError:
        return None


def dump(value: Any, indent: str | None = None) -> str:
    """JSON text with literal unicode, on one line without `indent`. Raises ValueError for what JSON cannot hold."""
    separators = (", ", ": ") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def encode(text: str) -> bytes:
    """The bytes of a file. Raises ValueError for too many."""
    data = text.encode("utf-8")
    if len(data) > MAX_BYTES:
        raise ValueError(f"the file would have {len(data)} bytes, more than {MAX_BYTES}; split the benchmark")
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice!r} occurs twice in one object; keep one of them")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number; leave the value out or use null")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _depth(value: Any) -> int:
    depth = 0
    level = [value] if isinstance(value, dict | list) else []
    while level and depth <= MAX_DEPTH:
        depth += 1
        children = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
        level = [child for child in children if isinstance(child, dict | list)]
    return depth


@frozen
class Findings:
    """What is wrong with a file and what could not be used, collected while it is read."""

    problems: list[str] = field(factory=list)
    warnings: list[str] = field(factory=list)
    missing: list[MissingTrait] = field(factory=list)
    """Traits of types that no installed package brings."""

    def attempt(self, where: str, read: Callable[..., T], *arguments: Any) -> T | None:
        """What `read` returns, or None and a problem."""
        try:
            return read(*arguments)
        except READ_ERRORS as error:
            reason = "; ".join(str(error).splitlines()) or type(error).__name__
            self.problems.append(f"{where}: {reason}")
            return None


def objects(node: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects under a key; empty where there is none. Raises ValueError for anything else."""
    value = node.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(f"{key} must be a list of objects")
    return value


def properties(node: Mapping[str, Any]) -> dict[str, Any]:
    """Name and value of the additional properties. The last one of a name counts; one without a value is None."""
    found = {}
    for index, entry in enumerate(objects(node, "additionalProperty")):
        if not isinstance(entry.get("name"), str):
            raise ValueError(f'additionalProperty[{index}] needs a name: add "name": "..."')
        found[entry["name"]] = entry.get("value")
    return found


def property_value(name: str, value: Any) -> dict[str, Any]:
    """A property as it is written; None has no value key."""
    node = {"@type": "PropertyValue", "name": name}
    return node if value is None else node | {"value": value}


def plain(value: Any) -> Any:
    """Mappings and sequences as dicts and lists, ready for JSON. Raises ValueError for what JSON cannot hold."""
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ValueError(f"the key {odd[0]!r} is not a text; JSON allows only texts as keys")
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"{value!r:.60} cannot be written as JSON; use texts, numbers, true, false, lists or objects")


def identical(a: Any, b: Any) -> bool:
    """Equality that distinguishes 1, 1.0 and True, and orders of keys. Lists and tuples are alike."""
    if a is b:
        return True
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(identical(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if type(a) is not type(b):
        return False
    if attrs.has(type(a)):
        return all(identical(getattr(a, f.name), getattr(b, f.name)) for f in attrs.fields(type(a)) if f.eq)
    return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)


def merged(node: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`node` with the changes between two encodings of its value, `old` and `new`. All else in it stays as it is."""
    result = dict(node)
    for key, value in new.items():
        if key in old and identical(old[key], value):
            continue
        current = node.get(key)
        if key == "additionalProperty":
            result = with_list(result, key, merged_properties(current or [], old.get(key, []), value))
        elif isinstance(value, dict) and isinstance(old.get(key), dict) and isinstance(current, dict):
            result[key] = merged(current, old[key], value)
        else:
            result[key] = value
    for key in set(old) - set(new):
        result.pop(key, None)
    return result


def with_list(node: Mapping[str, Any], key: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The node with a list under `key`. An empty list is left out, unless the node has an empty one already."""
    if entries:
        return {**node, key: entries}
    return {name: value for name, value in node.items() if name != key or not value}


def merged_properties(
    nodes: Sequence[Node], old: Sequence[Node], new: Sequence[Node], *, complete: bool = False
) -> list[Node]:
    """Like `merged`, for a list of properties. `complete` also adds those of `new` that are missing from `nodes`."""
    before = {entry["name"]: entry for entry in old}
    after = {entry["name"]: entry for entry in new}
    last = {entry["name"]: index for index, entry in enumerate(nodes)}
    changed = {
        name: entry
        for name, entry in after.items()
        if name not in before or not identical(before[name], entry) or (complete and name not in last)
    }
    result = []
    for index, entry in enumerate(nodes):
        name = entry["name"]
        if name in before and name not in after:
            continue
        if name in changed and last[name] == index:
            value = changed.pop(name).get("value")
            rest = {key: kept for key, kept in entry.items() if key != "value"}
            entry = entry | {"value": value} if value is not None else rest
        result.append(entry)
    return [*result, *changed.values()]
