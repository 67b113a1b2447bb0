"""The usage of an item: of its calls by task, and in total. Rows of other tools' files may lack anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from karenina_core.ports.model_client import CallRecord
from karenina_core.values.fields import is_number

NUMBERS = (
    *("calls", "attempts", "replies", "seconds", "repairs", "input_tokens", "output_tokens", "total_tokens"),
    *("cost_usd", "unknown_cost_attempts", "usage_unavailable"),
)
"""What is added up over all tasks."""


def usage_metadata(calls: Sequence[CallRecord], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tokens, attempts, replies, channel and time by task, and in total.

    `attempts` are requests, `replies` those that had one. `usage_unavailable` says that it is unknown how many tokens
    some request took: those that are known are counted. `cost_usd` is None where a reply's cost is not known, or that
    of everything; `unknown_cost_attempts` are requests without a reply that may be on the provider's bill: the cost is
    what is known beside them.

    `earlier` is the usage of an answer that was generated for another judge: shown, marked `cached`, and not counted
    again. What is marked as not `cached` is the item's own, and counts.
    """
    usage = {task: _earlier(row) for task, row in (earlier or {}).items() if task != "total"}
    for call in calls:
        row = usage.get(call.task)
        if row is not None and row.get("cached"):
            row = None
        one = {
            "calls": 1,
            "attempts": call.attempts,
            "replies": call.replies,
            "seconds": call.seconds,
            "repairs": call.repairs,
            "channel": call.channel,
            **call.usage.to_dict(),
            "model": call.model,
            "unknown_cost_attempts": call.unknown_cost_attempts,
            "usage_unavailable": call.usage_unavailable,
        }
        if call.usage_unavailable and not call.unknown_cost_attempts:
            one["cost_usd"] = None
        usage[call.task] = one if row is None else _merged(row, one, one)
    if usage:
        usage["total"] = _total(usage)
    return usage


def _earlier(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("cached") is False:
        return {name: value for name, value in row.items() if name != "cached"}
    return {**row, "cached": True}


def _total(usage: Mapping[str, Any]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for row in [row for row in usage.values() if not row.get("cached")]:
        total = _merged(total, row, NUMBERS) if total else dict(zip(NUMBERS, map(row.get, NUMBERS), strict=True))
    return total


def usage_sum(usage: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of an item with that of calls which were made for it later; what `more` marks as `cached` is known."""
    found = {task: row for task, row in usage.items() if task != "total"}
    for task, row in more.items():
        if task == "total" or row.get("cached"):
            continue
        before = found.get(task)
        if before is None or before.get("cached"):
            found[task] = row
        else:
            found[task] = _merged(before, row, {**before, **row})
    return {**found, "total": _total(found)} if found else {}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key, a, b in zip(keys, map(first.get, keys), map(second.get, keys), strict=True):
        if type(a) is int and type(b) is int and key != "cost_usd":  # as most are
            merged[key] = a + b
        elif key == "cost_usd":
            merged[key] = _sum_of_costs(first, second)
        elif key == "usage_unavailable":
            merged[key] = bool(a or b)
        elif key == "channel" or key == "model" or isinstance(a, str) or isinstance(b, str):
            merged[key] = a if a == b else b
        else:
            merged[key] = b if a is None else a if b is None else a + b
    return merged


def _sum_of_costs(first: Mapping[str, Any], second: Mapping[str, Any]) -> float | None:
    """What a request without a reply may have cost leaves that of the others known."""
    a, b = first.get("cost_usd"), second.get("cost_usd")
    if a is not None and b is not None:
        return float(a + b)
    if a is None and is_cost_unknown(first):
        return None
    return None if b is None and is_cost_unknown(second) else b if a is None else a


def replies_of(row: Mapping[str, Any]) -> int:
    """Requests that had a reply; a row without this number had one for every attempt. What is no number is not
    counted."""
    replies = _replies(row)
    return int(replies) if is_number(replies) else 0


def is_cost_unknown(row: Mapping[str, Any]) -> bool:
    """Whether a sum with this row is unknown: what a reply cost is. What a request without one may have cost leaves a
    sum known."""
    if is_number(row.get("cost_usd")):
        return False
    return _replies(row) != 0 or bool(row.get("total_tokens"))


def _replies(row: Mapping[str, Any]) -> Any:
    return row.get("replies", row.get("attempts"))
