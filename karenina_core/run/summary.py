"""Counts and rates over results. Errors are in no rate's denominator, and always in the counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

from attrs import asdict, define, field

from ..model.result import VerificationResult
from ..model.trait_rows import TraitOutcome, read_traits
from ..model.trait_scale import is_number
from ..model.usage_rows import is_cost_unknown, replies_of
from .exact import ExactSum
from .prepare import LeftOut
from .totals import TotalsTally, tokens
from .trait_summary import TraitTally
from .usage import UsageTally

__all__ = ["DECIDED", "Tally", "has_no_scores", "rates", "spent", "summarize", "wilson"]

RUBRIC_STAGES = ("RubricEvaluation", "AgenticRubricEvaluation")
DECIDED = ("passed", "failed", "auto_failed", "abstained", "insufficient")


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion (Wilson 1927, without continuity correction); None without trials."""
    if trials == 0:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def rates(outcomes: Counter[str]) -> dict[str, Any]:
    """Rates as fractions, None where nothing is in the denominator.

    `pass_rate` = passed / (passed + failed + auto_failed + abstained + insufficient), with its Wilson 95 % interval;
    `answered_accuracy` = passed / (passed + failed); `coverage` = (passed + failed) / all items.
    """
    passed, decided = outcomes["passed"], sum(outcomes[name] for name in DECIDED)
    answered, items = passed + outcomes["failed"], sum(outcomes.values())
    interval = wilson(passed, decided)
    return {
        "pass_rate": passed / decided if decided else None,
        "pass_rate_low": interval[0] if interval else None,
        "pass_rate_high": interval[1] if interval else None,
        "answered_accuracy": passed / answered if answered else None,
        "coverage": answered / items if items else None,
    }


def summarize(
    results: Iterable[VerificationResult],
    *,
    run_dir: Path | None = None,
    left_out: Sequence[LeftOut] = (),
    notes: Sequence[str] = (),
    times: bool = False,
) -> dict[str, Any]:
    """See `Tally.document`."""
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally.document(run_dir=run_dir, left_out=left_out, notes=notes, times=times)


@define(eq=False)
class _Pair:
    """An answering model and a judge."""

    outcomes: Counter[str] = field(factory=Counter)
    errors: Counter[str] = field(factory=Counter)
    traits: TraitTally = field(factory=TraitTally)
    usage: UsageTally = field(factory=UsageTally)
    seconds: ExactSum = field(factory=ExactSum)
    completed: int = 0
    without_scores: int = 0
    verdicts_due: bool = False

    def add(self, result: VerificationResult, traits: Sequence[TraitOutcome], position: int | None) -> None:
        about = result.metadata
        self.outcomes[about.outcome] += 1
        if about.outcome == "error":
            self.errors[about.outcome_detail or "unknown"] += 1
        self.traits.add(traits, position)
        self.usage.add(result)
        self.seconds.add(about.execution_time)
        self.completed += about.completed_without_errors
        self.without_scores += not traits and has_no_scores(result)
        self.verdicts_due = self.verdicts_due or about.evaluation_mode != "rubric_only"

    def row(self, names: tuple[str, str], *, times: bool) -> dict[str, Any]:
        return {
            "answering": names[0],
            "parsing": names[1],
            "items": self.outcomes.total(),
            **rates(self.outcomes),
            "outcomes": dict(self.outcomes),
            "errors": dict(self.errors),
            "traits": self.traits.lines(),
            "items_without_scores": self.without_scores,
            "completed": self.completed,
            "tokens": tokens(self.usage),
            **({"execution_time": self.seconds.total} if times else {}),
        }


@define(eq=False)
class Tally:
    """Everything that is counted over results, while they come: none of them is kept."""

    order: Sequence[tuple[str, str]] = ()
    """Pairs as they are to be told, whichever item ends first; others follow as they come."""
    outcomes: Counter[str] = field(factory=Counter)
    pairs: dict[tuple[str, str], _Pair] = field(factory=dict)
    """By the names of the answering model and the judge."""
    replicates: dict[int, Counter[str]] = field(factory=dict)
    models: dict[str, str] = field(factory=dict)
    """Answering models: the models' own names by those of the metadata."""
    totals: TotalsTally = field(factory=TotalsTally)
    calls: int = 0
    failed_attempts: int = 0
    unknown_cost_attempts: int = 0
    cost: ExactSum = field(factory=ExactSum)
    cost_unknown: bool = False
    usage_unavailable: bool = False

    def add(self, result: VerificationResult, position: int | None = None) -> None:
        """`position` is the result's place among all; by default they come in their order."""
        about = result.metadata
        self.outcomes[about.outcome] += 1
        self.replicates.setdefault(about.replicate, Counter())[about.outcome] += 1
        pair = (about.answering_model, about.parsing_model)
        self.models[pair[0]] = about.answering.model_name
        if (found := self.pairs.get(pair)) is None:
            found = self.pairs[pair] = _Pair()
        traits = read_traits(result.rubric) if result.rubric is not None else []
        found.add(result, traits, position)
        self.totals.add(result, traits)
        if total := result.generation.usage_metadata.get("total"):
            self._add_usage(total)

    def _add_usage(self, total: Mapping[str, Any]) -> None:
        replies = replies_of(total)
        attempts, unknown = total.get("attempts", replies), total.get("unknown_cost_attempts", 0)
        self.calls += replies
        self.failed_attempts += attempts - replies if is_number(attempts) else 0
        self.unknown_cost_attempts += unknown if is_number(unknown) else 0
        self.usage_unavailable = self.usage_unavailable or bool(total.get("usage_unavailable"))
        cost: Any = total.get("cost_usd")
        if is_number(cost):
            self.cost.add(cost)
        else:
            self.cost_unknown = self.cost_unknown or is_cost_unknown(total)

    @property
    def usage(self) -> UsageTally:
        """Of all pairs together."""
        merged = UsageTally()
        for found in self.pairs.values():
            merged.merge(found.usage)
        return merged

    @property
    def seconds(self) -> ExactSum:
        """What the items took, added up."""
        merged = ExactSum()
        for found in self.pairs.values():
            merged.merge(found.seconds)
        return merged

    @property
    def judged(self) -> frozenset[tuple[str, str]]:
        """Answering models and judges for which a verdict was due."""
        return frozenset(names for names, found in self.pairs.items() if found.verdicts_due)

    def _in_order(self) -> list[tuple[str, str]]:
        places = {names: place for place, names in enumerate(self.order)}
        return sorted(self.pairs, key=lambda names: places.get(names, len(places)))

    def document(
        self,
        *,
        run_dir: Path | None = None,
        left_out: Sequence[LeftOut] = (),
        notes: Sequence[str] = (),
        ledger: Mapping[str, Any] | None = None,
        times: bool = False,
    ) -> dict[str, Any]:
        """The JSON document of `karenina verify`. `calls` are replies, `failed_attempts` requests without one.
        `cost_usd` is None where the price of some reply is unknown; beside it, `unknown_cost_attempts` of the failed
        ones may be on the provider's bill. `usage_unavailable` says that somebody did not tell how many tokens
        something took.

        All these say what the results took, whoever paid for it; `spent` says what this run paid for.

        `times` adds how long items, pairs of models and tasks took.

        Items that count in no trait's numbers, because nothing could be scored, are a model's `items_without_scores`.
        What the set holds is told as `totals` names it; `replicate_stats` has the rates of each replicate.
        """
        return {
            "run_dir": str(run_dir) if run_dir else None,
            "outcomes": dict(self.outcomes),
            "models": [self.pairs[names].row(names, times=times) for names in self._in_order()],
            "left_out": [asdict(left) for left in left_out],
            "notes": list(notes),
            "calls": self.calls,
            "failed_attempts": self.failed_attempts,
            "unknown_cost_attempts": self.unknown_cost_attempts,
            "cost_usd": None if self.cost_unknown else self.cost.total,
            "usage_unavailable": self.usage_unavailable,
            **spent(ledger),
            "replicate_stats": [
                {"replicate": number, "items": found.total(), **rates(found), "outcomes": dict(found)}
                for number, found in sorted(self.replicates.items())
            ],
            **self.totals.told(self.usage, self.seconds, times=times),
        }


def spent(ledger: Mapping[str, Any] | None) -> dict[str, Any]:
    """`{"reused_calls", "reused_cost_usd", "paid"}` of a run: its calls that other runs had paid for, what they cost
    there, and `{"calls", "failed_attempts", "unknown_cost_attempts", "cost_usd", "tokens"}` of those that were made in
    this run.

    A reply that several items share is one call. Costs are None where one is unknown. All three are None where nothing
    kept the calls, as in a run without a directory.
    """
    total = (ledger or {}).get("total")
    if not isinstance(total, Mapping):
        return {"reused_calls": None, "reused_cost_usd": None, "paid": None}
    return {
        "reused_calls": total["reused"],
        "reused_cost_usd": total.get("reused_cost_usd"),
        "paid": {
            "calls": total["calls"],
            "failed_attempts": total["failed"],
            "unknown_cost_attempts": total["unknown_cost_attempts"],
            "cost_usd": total["cost_usd"],
            "tokens": {name: total[f"{name}_tokens"] for name in ("input", "output", "total")},
        },
    }


def has_no_scores(result: VerificationResult) -> bool:
    """Whether a rubric was due and nothing was scored: no answer came, or a stage before failed.

    The trail tells an item whose rubric was due from one that has none; without a trail, an error is taken for that.
    """
    if result.metadata.evaluation_mode == "template_only" or (result.rubric and read_traits(result.rubric)):
        return False
    due = any(entry.stage in RUBRIC_STAGES for entry in result.trail)
    return due or (not result.trail and result.metadata.outcome == "error")
