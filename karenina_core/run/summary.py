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
from ..model.trait_scale import is_number
from .prepare import LeftOut
from .totals import seconds, tokens, totals
from .trait_summary import trait_lines

__all__ = ["DECIDED", "has_no_scores", "rates", "summarize", "wilson"]

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
    """The JSON document of `karenina verify`. `cost_usd` is None where the price of some call is unknown,
    `usage_unavailable` says that somebody did not tell how many tokens some call took.

    `times` adds how long items, pairs of models and tasks took.

    Items that count in no trait's numbers, because nothing could be scored, are a model's `items_without_scores`. What
    the set holds is told as `totals` names it; `replicate_stats` has the rates of each replicate.
    """
    results = list(results)
    pairs: dict[tuple[str, str], list[VerificationResult]] = {}
    for result in results:
        pairs.setdefault((str(result.metadata.answering), str(result.metadata.parsing)), []).append(result)
    sums = [result.generation.usage_metadata.get("total", {}) for result in results]
    costs = [total.get("cost_usd") for total in sums if total]
    return {
        "run_dir": str(run_dir) if run_dir else None,
        "outcomes": dict(Counter(result.metadata.outcome for result in results)),
        "models": [_row(answering, parsing, rows, times) for (answering, parsing), rows in pairs.items()],
        "left_out": [asdict(left) for left in left_out],
        "notes": list(notes),
        "calls": sum(calls for total in sums if is_number(calls := total.get("attempts"))),
        "cost_usd": float(sum(costs)) if all(map(is_number, costs)) else None,
        "usage_unavailable": any(total.get("usage_unavailable") for total in sums),
        "replicate_stats": _replicates(results),
        **totals(results, times=times),
    }


def _replicates(results: Sequence[VerificationResult]) -> list[dict[str, Any]]:
    outcomes: dict[int, Counter[str]] = {}
    for result in results:
        outcomes.setdefault(result.metadata.replicate, Counter())[result.metadata.outcome] += 1
    return [
        {"replicate": number, "items": sum(found.values()), **rates(found), "outcomes": dict(found)}
        for number, found in sorted(outcomes.items())
    ]


def _row(answering: str, parsing: str, results: Sequence[VerificationResult], times: bool) -> dict[str, Any]:
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
        "items_without_scores": sum(map(has_no_scores, results)),
        "completed": sum(result.metadata.completed_without_errors for result in results),
        "tokens": tokens(results),
        **({"execution_time": seconds(results)} if times else {}),
    }


def has_no_scores(result: VerificationResult) -> bool:
    """Whether a rubric was due and nothing was scored: no answer came, or a stage before failed.

    The trail tells an item whose rubric was due from one that has none; without a trail, an error is taken for that.
    """
    if result.metadata.evaluation_mode == "template_only" or (result.rubric and read_traits(result.rubric)):
        return False
    due = any(entry.stage in RUBRIC_STAGES for entry in result.trail)
    return due or (not result.trail and result.metadata.outcome == "error")
