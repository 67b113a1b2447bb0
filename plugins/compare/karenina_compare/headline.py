"""What the headline numbers of a set of results say. Nothing here computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, field, frozen
from karenina_runs.summaries.intervals import Estimate, Interval


@frozen
class Bounds:
    """What a number would be if every missing item had the lowest value, and if every one had the highest."""

    worst: float
    best: float
    low: float | None
    """The lower limit of the worst case's interval; None where it has none."""
    high: float | None
    """The upper limit of the best case's interval."""


@frozen(kw_only=True)
class Number:
    """One number of a set, with everything that is needed to judge it."""

    name: str
    value: float | None
    """The mean over all items with a value; a rate as a fraction. None without such items."""
    interval: Interval | None = None
    standard_error: float | None = None
    """Robust for clusters; None for independent items that pass or fail."""
    method: str = ""
    items: int = 0
    """Items with a value."""
    questions: int = 0
    """Different questions of these."""
    clusters: int | None = None
    """What is taken as independent, where it is not the items."""
    missing: Mapping[str, int] = field(factory=dict)
    """Items that should have a value and have none, by reason."""
    bounds: Bounds | None = None
    """None where nothing is missing, or where the range of values is not known."""
    higher_is_better: bool | None = True
    note: str = ""


@frozen(kw_only=True)
class Repeated:
    """What k answers to each question come to."""

    k: int
    at_least_one: Estimate
    """pass@k."""
    all_of_them: Estimate
    """pass^k."""
    questions: int
    left_out: int
    """Questions with fewer than k answers that have a verdict: they have no unbiased estimate."""


@frozen(kw_only=True)
class Numbers:
    """The numbers of one pair of models, or of all results."""

    answering: str | None = None
    """None for all results."""
    parsing: str | None = None
    items: int
    absent: int = 0
    """Planned items that are not among the results."""
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    """Items that ended in an error, by kind."""
    guards: Mapping[str, int]
    """Items that a guard failed, by guard."""
    failures: Mapping[str, int] = field(factory=dict)
    """Failed items: those with something `wrong`, and those of which something was `not_found` and nothing is wrong."""
    pass_rate: Number
    partial_credit: Number
    """The mean of what the items of the pass rate earn: `verify_granular_result`, or the verdict where that is None."""
    answered_accuracy: Number
    coverage: Number
    """Items with a right or a wrong answer among all items, errors and absent ones included."""
    by_keyword: tuple[Number, ...] = ()
    """Pass rates of the questions with each keyword, ordered by the keyword, which is the name."""
    macro_questions: Number
    """The mean of the questions' pass rates: each question counts the same, however often it was answered."""
    macro_keywords: float | None = None
    """The mean of the pass rates of the keywords; without an interval, as they may share questions."""
    repeated: tuple[Repeated, ...] = ()
    unrepeated: str = ""
    """Why repeated answers are not estimated; empty where they are, or where no question was answered twice."""
    traits: tuple[Number, ...] = ()


@frozen(kw_only=True)
class Headline:
    """The numbers of a set of results."""

    pairs: tuple[Numbers, ...]
    """By answering and parsing model, ordered by name."""
    overall: Numbers
    level: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
