"""Which items a rate is of, what each of them counts, and how sure the rate is: for everything that shows one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from functools import lru_cache
from typing import Any, Protocol

from attrs import define, evolve, field, frozen

from karenina_core.values.outcome import OutcomeName
from karenina_core.values.result import MetadataPart, VerificationResult

from .intervals import Clusters, Estimate, mean_of, rate_of

DECIDED = ("passed", "failed", "auto_failed", "abstained", "insufficient")
"""Outcomes that are the verdict of an item where one is due."""
CREDIT_UNIT = 1 << 52
"""Credits are added as whole numbers of this share, so that their order makes no difference: a float has no more
digits."""
NOTHING = (0, 0, 0, 0)


@lru_cache(maxsize=4096)  # of a hundred thousand questions few have different ones, unless credits are odd numbers
def _shared(items: int, decided: int, passed: int, credits: int) -> tuple[int, int, int, int]:
    """The same object for the same counts."""
    return items, decided, passed, credits


class Ended(Protocol):
    """What says how an item ended: metadata, or what is kept of them."""

    @property
    def outcome(self) -> OutcomeName: ...
    @property
    def evaluation_mode(self) -> str: ...


def is_due(about: Ended) -> bool:
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


@frozen
class LeftOut:
    """A question that is not run, and why."""

    question_id: str
    reason: str


@frozen
class Planned:
    """The items of a run: every pair of models was to answer every question in every replicate."""

    questions: Collection[str] = field(repr=False)
    """Ids; a mapping or a set where there are many."""
    replicates: Collection[int] = (1,)
    pairs: tuple[tuple[str, str], ...] = ()
    """Answering models and judges; empty where they are not known."""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Planned | None:
        """What a run's manifest says; None where it does not."""
        try:
            replicates = int(manifest["config"].get("replicate_count") or 1)
            pairs = tuple((str(answering), str(parsing)) for answering, parsing in manifest.get("pairs", ()))
            return cls(dict.fromkeys(map(str, manifest["questions"])), range(1, replicates + 1), pairs)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    @property
    def items(self) -> int:
        """How many they are."""
        return len(self.questions) * len(self.replicates) * len(self.pairs)

    def part(
        self,
        questions: Collection[str] | None = None,
        replicates: Collection[int] | None = None,
        answering: Collection[str] | None = None,
        parsing: Collection[str] | None = None,
    ) -> Planned:
        """Of these questions, replicates and models only; None: of all."""
        return Planned(
            self.questions if questions is None else tuple(q for q in questions if q in self.questions),
            self.replicates if replicates is None else tuple(n for n in self.replicates if n in replicates),
            tuple(
                pair
                for pair in self.pairs
                if (answering is None or pair[0] in answering) and (parsing is None or pair[1] in parsing)
            ),
        )


def credit_of(clusters: Clusters, *, whole: bool, level: float = 0.95) -> Estimate:
    """The mean credit of all items, which `clusters` has in 1/CREDIT_UNIT.

    Where every item earns all or nothing (`whole`) it is a rate and has the interval of one; else Student's t, whose
    limits are kept within 0 and 1.
    """
    if whole:
        return rate_of(clusters, CREDIT_UNIT, level)
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
    """Verdicts by question, result by result. A question all of whose items are there takes no memory any more."""

    each: int = 0
    """Items that every question is to have; 0 where that is not known."""
    planned: Collection[str] = ()
    """Ids of the questions that are to have them."""
    items: int = 0
    due: int = 0
    """Items whose verdict is due, and those of them that have passed or failed."""
    passed: int = 0
    failed: int = 0
    has_parts: bool = False
    """Whether some item earns a part of its credit, or another one than its verdict says."""
    _whole: bool = True
    """Whether every item earns all or nothing."""
    _complete: int = 0
    """Questions that have all their items."""
    _verdicts: Clusters = field(factory=Clusters)
    """Of these questions: items that have passed, of those with a verdict."""
    _credits: Clusters = field(factory=Clusters)
    _open: dict[str, tuple[int, int, int, int]] = field(factory=dict)
    """Of the other questions: items, those with a verdict, those that have passed, and credits."""

    def add(self, result: VerificationResult) -> None:
        self.count(result.metadata, credit(result))

    def count(self, about: MetadataPart, earned: float | None) -> None:
        """A result, and its `credit`."""
        items, decided, passed, credits = self._open.pop(about.question_id, NOTHING)
        items += 1
        self.items += 1
        if is_due(about):
            self.due += 1
            self.passed += about.outcome == "passed"
            self.failed += about.outcome == "failed"
            if earned is not None:
                decided += 1
                passed += about.outcome == "passed"
                credits += int(earned * CREDIT_UNIT)
                self.has_parts = self.has_parts or earned != (about.outcome == "passed")
                self._whole = self._whole and earned in (0, 1)
        if items == self.each and about.question_id in self.planned:
            self._complete += 1
            self._verdicts.add(passed, decided)
            self._credits.add(credits, decided)
        else:
            self._open[about.question_id] = _shared(items, decided, passed, credits)

    @property
    def absent(self) -> int:
        """How many of the planned items are not there."""
        if not self.each:
            return 0
        there = sum(min(of[0], self.each) for question, of in self._open.items() if question in self.planned)
        return max(0, (len(self.planned) - self._complete) * self.each - there)  # files may have a line twice

    @property
    def pass_rate(self) -> Estimate:
        found = copy(self._verdicts)
        for _, decided, passed, _ in self._open.values():
            found.add(passed, decided)
        return rate_of(found)

    @property
    def partial_credit(self) -> Estimate:
        found = copy(self._credits)
        for _, decided, _, credits in self._open.values():
            found.add(credits, decided)
        return credit_of(found, whole=self._whole)

    def rates(self, absent: int = 0) -> dict[str, Any]:
        """Rates as fractions over the items whose verdict is due; None where nothing is in the denominator.

        `pass_rate` = passed / (passed + failed + auto_failed + abstained + insufficient); `partial_credit` is the mean
        of what the same items earn (see `credit`), and `has_parts` says whether any of them earns a part. Both have a
        95 % interval (`_low`, `_high`) that takes the items of one question as a cluster. `answered_accuracy` =
        passed / (passed + failed); `coverage` = (passed + failed) / all items, errors and `absent` ones included, which
        were planned and are not there.
        """
        answered = self.passed + self.failed
        return {
            **_with_limits("pass_rate", self.pass_rate),
            **_with_limits("partial_credit", self.partial_credit),
            "has_parts": self.has_parts,
            "answered_accuracy": self.passed / answered if answered else None,
            "coverage": answered / (self.due + absent) if self.due else None,
        }


def _with_limits(name: str, found: Estimate) -> dict[str, float | None]:
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return {name: found.value, f"{name}_low": low, f"{name}_high": high}
