"""What the calls of a run took: by stage, trait, task and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from attrs import define, field, fields, frozen

from ..prompts.tasks import SEARCH
from .journal_rows import Row

__all__ = ["Dimension", "Ledger", "Sums"]

Dimension = Literal["stage", "trait", "task", "model"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
UNIT = 10**12
"""Costs are added as whole numbers of this part of a dollar: sums are the same in whatever order calls end."""


@frozen(kw_only=True)
class Sums:
    """Sums over calls. What was taken over from another run was paid for there and counts as `reused` alone."""

    calls: int = 0
    """Replies that were paid for here."""
    reused: int = 0
    reused_cost_usd: float | None = 0.0
    """What they had cost where they were paid for. None where a part is unknown."""
    failed: int = 0
    """Attempts that failed."""
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    unknown_usage: int = 0
    """Calls of which the provider did not tell all tokens."""
    known_cost_usd: float = 0.0
    """What is known of the cost."""
    unknown_costs: int = 0
    """Calls whose cost is not known. A failed attempt is one of them only where the provider told what it took, and a
    search never: nobody tells what it costs, and no cost includes it."""
    unknown_cost_attempts: int = 0
    """Failed attempts that may have been billed, and of which nobody told anything. They leave the cost known."""
    counted: int = 0
    """Calls and failed attempts that count against a budget."""
    estimated_tokens: int = 0
    """What those count as of which nobody told the tokens."""
    estimated_usd: float = 0.0
    """What those count as of which nobody told the cost."""
    seconds: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """None where a part is unknown."""
        return None if self.unknown_costs else self.known_cost_usd

    @property
    def counted_tokens(self) -> int:
        """What counts against a budget."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens

    @property
    def counted_usd(self) -> float:
        return self.known_cost_usd + self.estimated_usd

    def to_dict(self) -> dict[str, Any]:
        """Everything but times, and what only a budget counts."""
        return {
            "calls": self.calls,
            "reused": self.reused,
            "reused_cost_usd": self.reused_cost_usd,
            "failed": self.failed,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "unknown_usage": self.unknown_usage,
            "cost_usd": self.cost_usd,
            "known_cost_usd": self.known_cost_usd,
            "unknown_costs": self.unknown_costs,
            "unknown_cost_attempts": self.unknown_cost_attempts,
        }


@define
class _Count:
    calls: int = 0
    reused: int = 0
    reused_cost: int = 0
    unknown_reused_costs: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    unknown_usage: int = 0
    cost: int = 0
    unknown_costs: int = 0
    unknown_cost_attempts: int = 0
    counted: int = 0
    estimated_tokens: int = 0
    estimated_cost: int = 0
    seconds: float = 0.0

    def paid(self, facts: Mapping[str, Any]) -> None:
        self.input_tokens += facts["input_tokens"]
        self.output_tokens += facts["output_tokens"]
        self.total_tokens += facts["total_tokens"]
        self.seconds += facts["seconds"]
        self.unknown_usage += facts["usage_unavailable"]
        if (cost := facts["cost_usd"]) is not None:
            self.cost += round(cost * UNIT)
        self.estimated_tokens += facts["estimated_tokens"] or 0
        self.estimated_cost += round((facts["estimated_usd"] or 0.0) * UNIT)

    def taken_over(self, facts: Mapping[str, Any]) -> None:
        self.reused += 1
        self.unknown_reused_costs += _is_unknown(facts)
        self.reused_cost += round((facts["cost_usd"] or 0.0) * UNIT)

    def sums(self) -> Sums:
        return Sums(
            calls=self.calls,
            reused=self.reused,
            reused_cost_usd=None if self.unknown_reused_costs else self.reused_cost / UNIT,
            failed=self.failed,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            total_tokens=self.total_tokens,
            unknown_usage=self.unknown_usage,
            known_cost_usd=self.cost / UNIT,
            unknown_costs=self.unknown_costs,
            unknown_cost_attempts=self.unknown_cost_attempts,
            counted=self.counted,
            estimated_tokens=self.estimated_tokens,
            estimated_usd=self.estimated_cost / UNIT,
            seconds=self.seconds,
        )

    def add(self, other: _Count) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _is_unknown(facts: Mapping[str, Any]) -> bool:
    """Whether a cost lacks what this call took."""
    return facts["cost_usd"] is None and facts["task"] != SEARCH


_SUMMED = tuple(attribute.name for attribute in fields(_Count))


@define(eq=False)
class Ledger:
    """Grows with the journal, not with the run: one count for each stage, trait, task and model that occurs."""

    _counts: dict[tuple[str, ...], _Count] = field(factory=dict)

    def called(self, facts: Mapping[str, Any]) -> None:
        """A row of `calls`."""
        count = self._count(facts)
        if facts["reused_from"] is not None:
            count.taken_over(facts)
            return
        count.calls += 1
        count.counted += 1
        count.paid(facts)
        count.unknown_costs += _is_unknown(facts)

    def failed(self, facts: Mapping[str, Any]) -> None:
        """A row of `failures`."""
        count = self._count(facts)
        count.failed += 1
        count.paid(facts)
        told, cost_is_known = facts["total_tokens"] > 0, facts["cost_usd"] is not None
        may_have_cost = facts["estimated_tokens"] is not None
        count.counted += told or cost_is_known or may_have_cost
        count.unknown_costs += told and not cost_is_known
        count.unknown_cost_attempts += may_have_cost and not told and not cost_is_known

    def take(self, table: str, row: Row) -> None:
        if table == "calls":
            self.called(row.facts)
        elif table == "failures":
            self.failed(row.facts)

    @property
    def total(self) -> Sums:
        whole = _Count()
        for count in self._counts.values():
            whole.add(count)
        return whole.sums()

    def by(self, *dimensions: Dimension) -> dict[tuple[str, ...], Sums]:
        """Sums by the values of these, sorted: `by("stage", "model")` gives `{(stage, model): Sums}`."""
        places = [DIMENSIONS.index(dimension) for dimension in dimensions]
        groups: dict[tuple[str, ...], _Count] = {}
        for values, count in self._counts.items():
            groups.setdefault(tuple(values[place] for place in places), _Count()).add(count)
        return {values: groups[values].sums() for values in sorted(groups)}

    def to_dict(self) -> dict[str, Any]:
        """`{"total": {...}, "by_stage": {name: {...}}, "by_trait": ..., "by_task": ..., "by_model": ...}`. Calls that
        belong to no trait are left out of `by_trait`."""
        return {
            "total": self.total.to_dict(),
            **{
                f"by_{dimension}": {name: sums.to_dict() for (name,), sums in self.by(dimension).items() if name}
                for dimension in DIMENSIONS
            },
        }

    def _count(self, facts: Mapping[str, Any]) -> _Count:
        values = tuple(facts[dimension] for dimension in DIMENSIONS)
        if (count := self._counts.get(values)) is None:
            count = self._counts[values] = _Count()
        return count
