"""Python values as JSON data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python


def shown(value: object, most: int = 80, write: Callable[[Any], str] = repr) -> str:
    """The value as a message quotes it, at most so many characters."""
    text = write(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(value: Any) -> Any:
    """The value as JSON data: dates as ISO text, models as objects, sets as sorted lists, NaN and infinities as
    text.

    Sets are sorted because their own order differs from one process to the next.
    """
    if value is None or isinstance(value, bool) or type(value) in (str, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if type(value) is dict or isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name, None)) for name in type(value).model_fields}
    return to_jsonable_python(value, serialize_unknown=True, bytes_mode="base64")
