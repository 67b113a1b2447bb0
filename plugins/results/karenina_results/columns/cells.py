"""Cells: which types a column may have, and how a value becomes a cell of one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from karenina_runs.results.stored import plain

CellType = Literal["text", "whole", "number", "boolean", "json", "value"]
"""What the cells of a column hold, each None where there is nothing to hold:

- `text`: a text that UTF-8 can hold.
- `whole`: a whole number of 64 bits.
- `number`: a finite floating point number.
- `boolean`: True or False.
- `json`: JSON text of something nested.
- `value`: what was found, of whatever type. Where a column has one type (polars, pyarrow, CSV, Parquet) it is JSON
  text, which says exactly what it was; in pandas it is the Python value.
"""
LARGEST = 2**63


def as_json(value: Any) -> str:
    """JSON text that is always writable: numbers without a value are null, lone surrogates are escaped, and what is
    nested too deeply or is too large a number is a text that says so."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_other)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(value := plain(value, []), ensure_ascii=False, allow_nan=False)
    return text if _writable(text) else json.dumps(plain(value, []))


def cell(type_: CellType, value: Any) -> Any:
    """The value as a cell; None where it is of another kind than the column, so that one odd item spoils no column.

    Texts come out of everything: what is no text becomes JSON. Nothing else is converted, except that a whole number
    is a number too.
    """
    if value is None:
        return None
    if type_ == "text":
        text = value if isinstance(value, str) else as_json(value)
        return text if _writable(text) else text.encode("utf-8", "replace").decode("utf-8")
    if type_ == "json":
        return as_json(value)
    if type_ == "value":
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if type_ == "whole":
        return value if isinstance(value, int) and -LARGEST <= value < LARGEST else None
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def written(type_: CellType, value: Any) -> Any:
    """The value as a cell of a place where a column has one type: like `cell`, but what is a `value` is JSON text."""
    found = cell(type_, value)
    return as_json(found) if type_ == "value" and found is not None else found


def _writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _other(value: Any) -> Any:
    """What JSON has no form for: sets are lists, mappings are objects, everything else is its text."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return dict(value) if isinstance(value, Mapping) else str(value)
