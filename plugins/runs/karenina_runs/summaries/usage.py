"""What calls for results came to: tokens, costs and replies, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from attrs import define, field
from karenina_calls.usage_totals import is_cost_unknown, replies_of

from karenina_core.values.fields import LARGEST, is_number
from karenina_core.values.result import VerificationResult

from .exact import ExactSum

TOTAL = "total"
TOKENS = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}
COUNTED = ("calls", "attempts", "repairs", *TOKENS.values(), "unknown_cost_attempts")


def tokens(result: VerificationResult) -> dict[str, int]:
    """`{"input", "output", "total"}` of the calls for a result; 0 where they are unknown."""
    total = result.generation.usage_metadata.get(TOTAL)
    if _is_row(total):
        return {name: total[key] if is_number(total.get(key)) else 0 for name, key in TOKENS.items()}
    rows = _rows(result).values()
    return {name: sum([row[key] for row in rows if is_number(row.get(key))]) for name, key in TOKENS.items()}


def _is_row(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)  # to ask about a `Mapping` takes long


def _rows(result: VerificationResult) -> dict[str, Mapping[str, Any]]:
    """The usage of a result by task, without what was used for another result that shares its answer."""
    rows = result.generation.usage_metadata.items()
    return {task: row for task, row in rows if task != TOTAL and _is_row(row) and not row.get("cached")}


def usage_by_task(results: Iterable[VerificationResult]) -> dict[str, dict[str, Any]]:
    """See `VerificationResultSet.usage_by_task`. The order of the results changes nothing."""
    tally = UsageTally()
    for result in results:
        tally.add(result)
    return tally.by_task()


@define(eq=False)
class CallTotals:
    """Replies to calls and what they cost."""

    replies: int = 0
    cost: ExactSum = field(factory=ExactSum)
    cost_unknown: bool = False
    unavailable: bool = False

    def add(self, row: Mapping[str, Any]) -> int:
        """Its replies. What is no number is not counted: rows may come from other tools' files."""
        cost: Any = row.get("cost_usd")
        if is_number(cost):
            self.cost.add(cost)
        else:
            self.cost_unknown = self.cost_unknown or is_cost_unknown(row)
        self.unavailable = self.unavailable or bool(row.get("usage_unavailable"))
        self.replies += (replies := replies_of(row))
        return replies


@define(eq=False)
class TaskUsage(CallTotals):
    """What the calls of one task came to."""

    items: int = 0
    counts: dict[str, int] = field(factory=lambda: dict.fromkeys(COUNTED, 0))
    cached: int | None = None
    """Input tokens that providers read from a cache; None where no reply says so."""
    seconds: ExactSum = field(factory=ExactSum)
    models: set[str] = field(factory=set)

    def add(self, row: Mapping[str, Any]) -> int:
        get, counts = row.get, self.counts
        self.items += 1
        count: Any
        for name, count in zip(COUNTED, map(get, COUNTED), strict=True):
            if (type(count) is int and -LARGEST <= count <= LARGEST) or is_number(count):  # most are
                counts[name] += count
        cached: Any = get("cache_read_tokens")
        if is_number(cached):
            self.cached = (self.cached or 0) + cached
        seconds: Any = get("seconds")
        self.seconds.add(seconds if is_number(seconds) else 0)
        if (model := get("model")) is not None:
            self.models.add(str(model))
        return CallTotals.add(self, row)


@define(eq=False)
class UsageTally:
    """What the calls of many results came to, task by task."""

    tasks: dict[str, TaskUsage] = field(factory=dict)

    def add(self, result: VerificationResult) -> None:
        for task, row in _rows(result).items():
            if (known := self.tasks.get(task)) is None:
                known = self.tasks[task] = TaskUsage()
            known.add(row)

    def by_task(self) -> dict[str, dict[str, Any]]:
        """See `VerificationResultSet.usage_by_task`."""
        return {
            name: {
                "items": task.items,
                **task.counts,
                "cache_read_tokens": task.cached,
                "replies": task.replies,
                "seconds": task.seconds.total,
                "cost_usd": task.cost.total if task.cost.count and not task.cost_unknown else None,
                "usage_unavailable": task.unavailable,
                "models": sorted(task.models),
            }
            for name, task in self.tasks.items()
        }
