"""What a row of an item's `usage_metadata` says. Rows of other tools' files may lack anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .fields import is_number

__all__ = ["is_cost_unknown", "replies_of"]


def replies_of(row: Mapping[str, Any]) -> int:
    """Requests that had a reply; a row that does not tell them had one for every attempt. What is no number is not
    counted."""
    replies = _told(row)
    return int(replies) if is_number(replies) else 0


def is_cost_unknown(row: Mapping[str, Any]) -> bool:
    """Whether a sum with this row is unknown: what a reply cost is. What a request without one may have cost leaves a
    sum known."""
    if is_number(row.get("cost_usd")):
        return False
    return _told(row) != 0 or bool(row.get("total_tokens"))


def _told(row: Mapping[str, Any]) -> Any:
    return row.get("replies", row.get("attempts"))
