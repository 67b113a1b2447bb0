"""From bytes to JSON values and back: strict, with limits, and without a loss."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from attrs import field, frozen

__all__ = ["Document", "decode", "dump", "encode", "parse", "parse_or_none"]

MAX_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 64
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; flatten the innermost values"
BOM = "\ufeff"
SURROGATES = re.compile("[\ud800-\udfff]")


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
