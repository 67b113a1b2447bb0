"""Cells: what they mean as texts, as lists of texts and as JSON.

A cell holds a text, a number, a truth value, a date, a time or nothing; of a `.jsonl` file also a list or an object.
An empty text is nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from karenina_calls.files.bounded import json_bounded

Cell = Any
SEPARATORS = ("\n", "|", ";", ",")
"""Of the texts of a list, the first one that occurs."""
DATE = "karenina:date"
SECONDS = "karenina:seconds"
PERCENT = "karenina:percent"


class Percent(float):
    """A number that its cell shows in percent."""

    @property
    def shown(self) -> str:
        return f"{(Decimal(repr(float(self))) * 100).normalize():f}"


def text_of(cell: Cell) -> str:
    """The cell as a text file writes it; nothing is the empty text."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool | dict | list):
        return json.dumps(cell, ensure_ascii=False)
    if isinstance(cell, Percent):
        return f"{cell.shown} %"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


def plain_cell(cell: Cell) -> Cell:
    """The cell as JSON holds it; what it does not becomes a text."""
    if isinstance(cell, Percent):
        return float(cell)
    return cell if isinstance(cell, str | bool | int | float | list | dict) else text_of(cell)


def is_blank(cell: Cell) -> bool:
    return not text_of(cell).strip()


def read_list(cell: Cell) -> list[str]:
    """The texts of a list: one a line, or with `|`, `;` or `,` between them; also a list of JSON."""
    text = text_of(cell).strip()
    if text.startswith("["):
        found = parsed(text)
        if isinstance(found, list) and all(isinstance(item, str) for item in found):
            return found
    separator = next((mark for mark in SEPARATORS if mark in text), None)
    return [part.strip() for part in text.split(separator) if part.strip()] if separator else [text] if text else []


def write_list(items: Sequence[str]) -> str:
    """The text that `read_list` reads as these items."""
    for joint in (", ", "; ", " | ", "\n"):
        text = joint.join(items)
        if read_list(text) == list(items):
            return text
    return json.dumps(list(items), ensure_ascii=False)


def parsed(text: str) -> Any:
    """The value of a JSON text; None for anything else."""
    try:
        return json_bounded(text)
    except ValueError:
        return None


def as_json(cell: Cell) -> Any:
    """The cell as JSON, from which `from_json` gives it back."""
    if isinstance(cell, date | time):
        return {DATE: cell.isoformat()}
    if isinstance(cell, Percent):
        return {PERCENT: float(cell)}
    return {SECONDS: cell.total_seconds()} if isinstance(cell, timedelta) else cell


def from_json(value: Any) -> Cell:
    """Raises ValueError for a damaged one."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    if isinstance(seconds := value.get(SECONDS), int | float):
        return timedelta(seconds=seconds)
    if isinstance(share := value.get(PERCENT), int | float):
        return Percent(share)
    text = value.get(DATE)
    if not isinstance(text, str):
        return value
    if "T" in text:
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if re.match(r"\d{4}-", text) else time.fromisoformat(text)
