"""Words and data of strangers, as the file of the results will hold them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from karenina_calls.ports.text import sanitize

from karenina_core.errors import shortened
from karenina_core.pipeline.engine import stops_item

__all__ = ["NOT_KEPT", "plain", "plain_details", "plain_text"]

LONGEST_TEXT = 1000
MOST_DETAIL = 10_000
"""Characters of a text in details."""
MOST_LEVELS = 100
MOST_DIGITS = sys.float_info.max_10_exp + 1
NOT_KEPT = "not_kept"
"""The detail that names those that are not there."""


def plain_text(text: str, most: int = LONGEST_TEXT) -> str:
    """The text without lone surrogates, which no file can hold, and cut to at most that many characters."""
    safe, _ = sanitize(str.__str__(text))
    return shortened(safe, most)


def plain(value: Any, longest: int | None = None) -> Any:
    """The value as it will be read from a file; with `longest`, its texts are cut to that many characters.

    Raises ValueError for numbers that no float can hold, NaN among them, and TypeError and RecursionError for what is
    no data. Of a stranger's classes, anything may be raised.
    """
    read = json.loads(json.dumps(value, allow_nan=False, default=_table), parse_int=_whole)
    return _clean(read, longest, MOST_LEVELS)


def plain_details(details: Any) -> dict[str, Any]:
    """The details that can be kept; the names of the others are the detail `not_kept`."""
    try:
        if not isinstance(details, Mapping):
            raise TypeError
        rows = [(name, value) for name, value in details.items()]
    except BaseException as error:
        if stops_item(error):
            raise
        return {NOT_KEPT: ["everything"]}
    kept: dict[str, Any] = {}
    lost: list[str] = []
    for name, value in rows:
        known = plain_text(name) if isinstance(name, str) else type(name).__name__
        try:
            kept[plain_text(str(name))] = plain(value, MOST_DETAIL)
        except BaseException as error:
            if stops_item(error):
                raise
            lost.append(known)
    return {**kept, NOT_KEPT: lost} if lost else kept


def _table(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no data")


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) <= MOST_DIGITS and abs(number := int(digits)) <= sys.float_info.max:
        return number
    raise ValueError("a number beyond those of floats")


def _clean(value: Any, longest: int | None, levels: int) -> Any:
    if levels == 0:
        raise RecursionError(f"it is nested more than {MOST_LEVELS} levels deep")
    if isinstance(value, str):
        return plain_text(value, len(value) if longest is None else longest)
    if isinstance(value, dict):
        return {sanitize(key)[0]: _clean(item, longest, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, longest, levels - 1) for item in value]
    return value
