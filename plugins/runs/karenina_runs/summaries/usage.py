"""What the calls of many items came to, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field
from karenina_calls.usage_totals import is_cost_unknown, replies_of

from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from .exact import ExactSum

TOTAL = "total"
COUNTED = (
    *("calls", "attempts", "repairs", "input_tokens", "output_tokens", "total_tokens"),
    "unknown_cost_attempts",
)
TOKENS = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}


def tokens(result: VerificationResult) -> dict[str, int]:
    """`{"input", "output", "total"}` of the calls for a result; 0 where they are unknown."""
    rows = _rows(result).values()
    return {name: sum(row[key] for row in rows if is_number(row.get(key))) for name, key in TOKENS.items()}


def _rows(result: VerificationResult) -> dict[str, Mapping[str, Any]]:
    """The usage of a result by task, without what was used for another result that shares its answer."""
    rows = result.generation.usage_metadata.items()
    return {task: row for task, row in rows if task != TOTAL and isinstance(row, Mapping) and not row.get("cached")}


def usage_by_task(results: Iterable[VerificationResult]) -> dict[str, dict[str, Any]]:
    """See `VerificationResultSet.usage_by_task`. The order of the results changes nothing."""
    tally = UsageTally()
    for result in results:
        tally.add(result)
    return tally.by_task()


@define(eq=False)
class TaskUsage:
    """Of one task, or of all."""

    items: int = 0
    counts: dict[str, int] = field(factory=lambda: dict.fromkeys(COUNTED, 0))
    seconds: ExactSum = field(factory=ExactSum)
    cost: ExactSum = field(factory=ExactSum)
    cost_unknown: bool = False
    replies: int = 0
    unavailable: bool = False
    models: set[str] = field(factory=set)

    def add(self, row: Mapping[str, Any]) -> None:
        """What is no number is not counted: rows may come from other tools' files."""
        get, counts = row.get, self.counts
        self.items += 1
        for name in COUNTED:
            count: Any = get(name)
            counts[name] += count if is_number(count) else 0
        seconds: Any = get("seconds")
        self.seconds.add(seconds if is_number(seconds) else 0)
        cost: Any = get("cost_usd")
        if is_number(cost):
            self.cost.add(cost)
        else:
            self.cost_unknown = self.cost_unknown or is_cost_unknown(row)
        self.replies += replies_of(row)
        self.unavailable = self.unavailable or bool(get("usage_unavailable"))
        if (model := get("model")) is not None:
            self.models.add(str(model))


@define(eq=False)
class UsageTally:
    """The same, result by result."""

    tasks: dict[str, TaskUsage] = field(factory=dict)

    def add(self, result: VerificationResult) -> None:
        for task, row in _rows(result).items():
            self.tasks.setdefault(task, TaskUsage()).add(row)

    def by_task(self) -> dict[str, dict[str, Any]]:
        """See `VerificationResultSet.usage_by_task`."""
        return {
            name: {
                "items": task.items,
                **task.counts,
                "replies": task.replies,
                "seconds": task.seconds.total,
                "cost_usd": task.cost.total if task.cost.count and not task.cost_unknown else None,
                "usage_unavailable": task.unavailable,
                "models": sorted(task.models),
            }
            for name, task in self.tasks.items()
        }
