"""Which items a rate is of, what each of them counts, and how sure the rate is: for everything that shows one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, evolve, field

from ..model.result import MetadataPart, VerificationResult
from .estimates import Estimate, mean_of, rate_of

__all__ = ["CREDIT_UNIT", "DECIDED", "RateTally", "credit", "credit_of", "is_due", "planned_of", "rates_of"]

DECIDED = ("passed", "failed", "auto_failed", "abstained", "insufficient")
"""Outcomes that are the verdict of an item where one is due."""
CREDIT_UNIT = 1 << 52
"""Credits are added as whole numbers of this share, so that their order makes no difference: a float has no more
digits."""


def is_due(about: MetadataPart) -> bool:
    """Whether a verdict is due: not where only a rubric is evaluated, whatever a check or a guard says of the item."""
    return about.evaluation_mode != "rubric_only" and about.outcome != "scored"


def credit(result: VerificationResult) -> float | None:
    """What an item with a verdict earns, from 0 to 1; None without one.

    That is `verify_granular_result` of a right or a wrong answer, and the verdict where there is no such result. An
    answer that a guard, a check or a pattern of its template has failed earns nothing.
    """
    outcome = result.metadata.outcome
    if not is_due(result.metadata) or outcome not in DECIDED:
        return None
    template = result.template
    if outcome == "failed" and template is not None and template.regex_overall_success is False:
        return 0.0
    granular = template.verify_granular_result if template is not None else None
    if granular is None or outcome not in ("passed", "failed"):
        return float(outcome == "passed")
    return min(max(float(granular), 0.0), 1.0)


def planned_of(manifest: Mapping[str, Any]) -> dict[str, int] | None:
    """How often a run was to ask each question of every pair of models, as its manifest says; None where it does not
    say."""
    try:
        replicates = int(manifest["config"].get("replicate_count") or 1)
        return {str(question): replicates for question in manifest["questions"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def credit_of(clusters: Iterable[tuple[int, int]], *, whole: bool, level: float = 0.95) -> Estimate:
    """The mean credit of all items, given as `(credits, items)` of each cluster, credits in 1/CREDIT_UNIT.

    Where every item earns all or nothing (`whole`) it is a rate and has the interval of one; else Student's t, whose
    limits are kept within 0 and 1.
    """
    if whole:
        return rate_of(((earned // CREDIT_UNIT, items) for earned, items in clusters), level)
    found = mean_of(clusters, CREDIT_UNIT, level)
    if found.interval is None:
        return found
    low, high = max(found.interval.low, 0.0), min(found.interval.high, 1.0)
    return evolve(found, interval=evolve(found.interval, low=low, high=high))


def rates_of(results: Iterable[VerificationResult], absent: int = 0) -> dict[str, Any]:
    """See `RateTally.rates`."""
    tally = RateTally()
    for result in results:
        tally.add(result)
    return tally.rates(absent)


@define(eq=False)
class RateTally:
    """Verdicts by question, result by result. It keeps some 50 bytes for each question, and nothing for an item."""

    places: dict[str, int] = field(factory=dict)
    """Of questions, counted from 0. Tallies may share it."""
    outcomes: Counter[str] = field(factory=Counter)
    """Of items whose verdict is due."""
    has_parts: bool = False
    """Whether some item earns a part of its credit, or another one than its verdict says."""
    _whole: bool = True
    """Whether every item earns all or nothing."""
    _items: array[int] = field(factory=lambda: array("I"))
    _passed: array[int] = field(factory=lambda: array("I"))
    _decided: array[int] = field(factory=lambda: array("I"))
    _credits: list[int] = field(factory=list)

    def add(self, result: VerificationResult) -> None:
        about = result.metadata
        place = self.places.setdefault(about.question_id, len(self.places))
        if (more := place + 1 - len(self._items)) > 0:
            for counts in (self._items, self._passed, self._decided, self._credits):
                counts.extend([0] * more)
        self._items[place] += 1
        if not is_due(about):
            return
        self.outcomes[about.outcome] += 1
        earned = credit(result)
        if earned is not None:
            passed = about.outcome == "passed"
            self._decided[place] += 1
            self._passed[place] += passed
            self._credits[place] += int(earned * CREDIT_UNIT)
            self.has_parts = self.has_parts or earned != passed
            self._whole = self._whole and earned in (0, 1)

    def absent(self, planned: Mapping[str, int] | None) -> int:
        """How many of the planned items (question id -> how often) are not there."""
        there = ((often, self.places.get(question, len(self._items))) for question, often in (planned or {}).items())
        return sum(max(0, often - (self._items[at] if at < len(self._items) else 0)) for often, at in there)

    @property
    def pass_rate(self) -> Estimate:
        return rate_of(zip(self._passed, self._decided, strict=True))

    @property
    def partial_credit(self) -> Estimate:
        return credit_of(zip(self._credits, self._decided, strict=True), whole=self._whole)

    def rates(self, absent: int = 0) -> dict[str, Any]:
        """Rates as fractions over the items whose verdict is due; None where nothing is in the denominator.

        `pass_rate` = passed / (passed + failed + auto_failed + abstained + insufficient); `partial_credit` is the mean
        of what the same items earn (see `credit`), and `has_parts` says whether any of them earns a part. Both have a
        95 % interval (`_low`, `_high`) that takes the items of one question as a cluster. `answered_accuracy` =
        passed / (passed + failed); `coverage` = (passed + failed) / all items, errors and `absent` ones included, which
        were planned and are not there.
        """
        passed, answered = self.outcomes["passed"], self.outcomes["passed"] + self.outcomes["failed"]
        items = self.outcomes.total()
        return {
            **_with_limits("pass_rate", self.pass_rate),
            **_with_limits("partial_credit", self.partial_credit),
            "has_parts": self.has_parts,
            "answered_accuracy": passed / answered if answered else None,
            "coverage": answered / (items + absent) if items else None,
        }


def _with_limits(name: str, found: Estimate) -> dict[str, float | None]:
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return {name: found.value, f"{name}_low": low, f"{name}_high": high}
