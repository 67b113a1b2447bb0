"""Counts and rates over results. Errors are in no rate's denominator, and always in the counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

from attrs import asdict

from ..model.result import VerificationResult
from ..model.trait_rows import read_traits
from .prepare import LeftOut
from .trait_summary import trait_lines

__all__ = ["rates", "summarize", "wilson"]

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
) -> dict[str, Any]:
    """The JSON document of `karenina verify`. `cost_usd` is None where the price of some call is unknown,
    `usage_unavailable` says that somebody did not tell how many tokens some call took.

    Items that count in no trait's numbers, because nothing could be scored, are a model's `items_without_scores`.
    """
    results = list(results)
    pairs: dict[tuple[str, str], list[VerificationResult]] = {}
    for result in results:
        pairs.setdefault((str(result.metadata.answering), str(result.metadata.parsing)), []).append(result)
    totals = [result.generation.usage_metadata.get("total", {}) for result in results]
    costs = [total.get("cost_usd") for total in totals if total]
    return {
        "run_dir": str(run_dir) if run_dir else None,
        "outcomes": dict(Counter(result.metadata.outcome for result in results)),
        "models": [_row(answering, parsing, rows) for (answering, parsing), rows in pairs.items()],
        "left_out": [asdict(left) for left in left_out],
        "notes": list(notes),
        "calls": sum(total.get("attempts", 0) for total in totals),
        "cost_usd": None if any(cost is None for cost in costs) else float(sum(costs)),
        "usage_unavailable": any(total.get("usage_unavailable") for total in totals),
    }


def _row(answering: str, parsing: str, results: Sequence[VerificationResult]) -> dict[str, Any]:
    outcomes = Counter[str](result.metadata.outcome for result in results)
    errors = Counter(r.metadata.outcome_detail or "unknown" for r in results if r.metadata.outcome == "error")
    return {
        "answering": answering,
        "parsing": parsing,
        "items": len(results),
        **rates(outcomes),
        "outcomes": dict(outcomes),
        "errors": dict(errors),
        "traits": trait_lines(results),
        "items_without_scores": sum(map(_has_no_scores, results)),
    }


def _has_no_scores(result: VerificationResult) -> bool:
    """Whether a rubric was due and nothing was scored: no answer came, or a stage before failed.

    The trail tells an item whose rubric was due from one that has none; without a trail, an error is taken for that.
    """
    if result.metadata.evaluation_mode == "template_only" or (result.rubric and read_traits(result.rubric)):
        return False
    due = any(entry.stage in RUBRIC_STAGES for entry in result.trail)
    return due or (not result.trail and result.metadata.outcome == "error")
