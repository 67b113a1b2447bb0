"""What the calls of a run took: by stage, trait, task and model."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Literal, get_args

from attrs import define, field, fields
from karenina_vocabulary.tasks import SEARCH

Dimension = Literal["stage", "trait", "task", "model"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
BY = itemgetter(*DIMENSIONS)
UNIT = 10**12
"""Costs are added as whole numbers of this part of a dollar: sums are the same in whatever order calls end. Providers'
prices of a token have up to 10 digits."""


@define(kw_only=True)
class Sums:
    """Sums over calls. What was taken over from another run was paid for there and counts as `reused` alone."""

    calls: int = 0
    """Replies that were paid for here."""
    reused: int = 0
    failed: int = 0
    """Attempts that failed."""
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    unknown_usage: int = 0
    """Calls whose tokens are not all known."""
    unknown_costs: int = 0
    """Calls whose cost is not known. A failed attempt is one of them only where its tokens are known, and a search
    never: no provider reports what it costs, and no cost includes it."""
    unknown_cost_attempts: int = 0
    """Failed attempts that may have been billed, and whose tokens and cost are unknown. They leave the cost known."""
    counted: int = 0
    """Calls and failed attempts that count against a budget."""
    estimated_tokens: int = 0
    """What those of them count as whose tokens are unknown."""
    seconds: float = 0.0
    _cost: int = 0
    _reused_cost: int = 0
    _unknown_reused_costs: int = 0
    _estimated_cost: int = 0

    @property
    def known_cost_usd(self) -> float:
        """The known part of the cost."""
        return self._cost / UNIT

    @property
    def cost_usd(self) -> float | None:
        """None where a part is unknown."""
        return None if self.unknown_costs else self.known_cost_usd

    @property
    def reused_cost_usd(self) -> float | None:
        """What reused calls had cost where they were paid for. None where a part is unknown."""
        return None if self._unknown_reused_costs else self._reused_cost / UNIT

    @property
    def counted_tokens(self) -> int:
        """What counts against a budget."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens

    @property
    def counted_usd(self) -> float:
        return (self._cost + self._estimated_cost) / UNIT

    def to_dict(self) -> dict[str, Any]:
        """Everything but times, and what only a budget counts."""
        return {name: getattr(self, name) for name in REPORTED}

    def add(self, other: Sums) -> None:
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def called(self, facts: Mapping[str, Any]) -> None:
        """Count a row of `calls`."""
        if facts["reused_from"] is not None:
            self.reused += 1
            self._unknown_reused_costs += _is_unknown(facts)
            self._reused_cost += _units(facts["cost_usd"])
            return
        self.calls += 1
        self.counted += 1
        self.unknown_costs += _is_unknown(facts)
        self._took(facts)

    def failed_once(self, facts: Mapping[str, Any]) -> None:
        """Count a row of `failures`."""
        known_tokens, known_cost = facts["total_tokens"] > 0, facts["cost_usd"] is not None
        may_have_cost = facts["estimated_tokens"] is not None
        self.failed += 1
        self.counted += known_tokens or known_cost or may_have_cost
        self.unknown_costs += known_tokens and not known_cost
        self.unknown_cost_attempts += may_have_cost and not known_tokens and not known_cost
        self._took(facts)

    def _took(self, facts: Mapping[str, Any]) -> None:
        self.input_tokens += facts["input_tokens"]
        self.output_tokens += facts["output_tokens"]
        self.total_tokens += facts["total_tokens"]
        self.seconds += facts["seconds"]
        self.unknown_usage += facts["usage_unavailable"]
        self.estimated_tokens += facts["estimated_tokens"] or 0
        self._cost += _units(facts["cost_usd"])
        self._estimated_cost += _units(facts["estimated_usd"])


SUMMED = tuple(attribute.name for attribute in fields(Sums))
REPORTED = (
    *("calls", "reused", "reused_cost_usd", "failed", "input_tokens", "output_tokens", "total_tokens"),
    *("unknown_usage", "cost_usd", "known_cost_usd", "unknown_costs", "unknown_cost_attempts"),
)


def _units(usd: float | None) -> int:
    return round((usd or 0.0) * UNIT)


def _is_unknown(facts: Mapping[str, Any]) -> bool:
    """Whether a cost lacks what this call took."""
    return facts["cost_usd"] is None and facts["task"] != SEARCH


@define(eq=False)
class Ledger:
    """Grows with the journal, not with the run: one sum for each stage, trait, task and model that occurs."""

    _sums: dict[tuple[str, ...], Sums] = field(factory=dict)

    def add(self, table: str, facts: Mapping[str, Any]) -> None:
        """Count a row of this table; those of other tables are no calls."""
        if table in ("calls", "failures"):
            values = BY(facts)
            if (sums := self._sums.get(values)) is None:
                sums = self._sums[values] = Sums()
            (sums.called if table == "calls" else sums.failed_once)(facts)

    @property
    def total(self) -> Sums:
        return self.by().get((), Sums())

    def by(self, *dimensions: Dimension) -> dict[tuple[str, ...], Sums]:
        """Sums by the values of these, sorted: `by("stage", "model")` gives `{(stage, model): Sums}`."""
        places = [DIMENSIONS.index(dimension) for dimension in dimensions]
        groups: dict[tuple[str, ...], Sums] = {}
        for values, sums in self._sums.items():
            groups.setdefault(tuple(values[place] for place in places), Sums()).add(sums)
        return dict(sorted(groups.items(), key=lambda group: group[0]))

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
