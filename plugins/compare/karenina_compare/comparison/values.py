"""What a comparison says. Nothing here computes.

A is the side that was there before, B the one that is looked at: differences are B - A.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen
from karenina_runs.summaries.intervals import Interval

from ..headline import Headline

Verdict: TypeAlias = Literal["worse", "better", "different", "no difference found", "too few pairs", "not compared"]
"""What a row comes to. `different`: significant, and which direction is better is unknown. `too few pairs`: no result
of these questions could have been significant. `not compared`: no question has a value on both sides."""

Correction: TypeAlias = Literal["holm", "benjamini-hochberg", "benjamini-yekutieli"]


@frozen(order=True)
class Pair:
    """The models and judges that are compared."""

    answering: str
    parsing: str
    answering_b: str
    parsing_b: str


@frozen(kw_only=True)
class Test:
    """One procedure on the differences by question."""

    name: str
    p_value: float | None = None
    """None for procedures that only give an interval, and where it cannot be computed."""
    interval: Interval | None = None


@frozen
class Question:
    """One question of a row."""

    id: str
    a: float | None
    """The mean of its values on side A; None without any."""
    b: float | None
    missing_a: tuple[str, ...] = ()
    """Why its other items have no value."""
    missing_b: tuple[str, ...] = ()


@frozen(kw_only=True)
class Row:
    """One pair of models by one measure, question by question. Replicates are averaged by question first."""

    pair: Pair
    metric: str
    a: float | None
    """The mean over the compared questions; None without any."""
    b: float | None
    difference: float | None
    interval: Interval | None = None
    """Of the difference, for this row alone."""
    p_value: float | None = None
    p_adjusted: float | None = None
    """For all rows of the comparison that could be significant at all; 1 for the others."""
    test: str = ""
    """What `p_value` is from: `mcnemar`, `permutation` or `cluster permutation`."""
    tests: tuple[Test, ...] = ()
    """All procedures that these data allow."""
    compared: int = 0
    """Questions with a value on both sides."""
    questions: int = 0
    """Questions of either side."""
    missing_a: Mapping[str, int]
    """Items without a value on side A, by reason. `not asked`: A has no item of the question, which counts as one."""
    missing_b: Mapping[str, int]
    coverage: float | None = None
    """The share of the questions of either side that are compared. One of which not all answers have a value counts
    as the share that has, on the side where it is smaller. None without questions."""
    better: int | None = None
    """Compared questions of which B has the better value; None where the direction is unknown."""
    worse: int | None = None
    lost_a: int
    """Questions that both sides were asked and A lost more answers of: errors and their like."""
    lost_b: int
    lost: float = 0.0
    """The share of its answers that B lost, less that of A, over the questions that both were asked."""
    lost_p: float = 1.0
    """Adjusted p-value that one side loses more than the other, by question: exact (McNemar) for single answers."""
    worst: float | None = None
    """The difference if what is missing were as bad for B as it can be; None where the range is not known."""
    best: float | None = None
    worst_p: float | None = None
    """Adjusted p-value of the difference if every answer without a value, of a question that both sides were asked,
    were as bad for B as it can be; None where none is missing, where B would not be worse, or where that is not
    known."""
    worst_asked: float | None = None
    """The difference in that case, over the questions that both sides were asked."""
    worst_known: bool = True
    """Whether there is such a worst case: values without a known range have none."""
    detectable: float | None = None
    """The smallest true difference that is found with a probability of 80 %, at alpha divided by these rows."""
    noticeable: int | None = None
    """How many questions, or groups of them, would have to differ, all in one direction, for this row to be
    significant; None where nothing is compared."""
    clusters: int | None = None
    """Groups of questions, where there are any."""
    replicates: tuple[int, int]
    """The largest number of values of a question on either side."""
    smallest_p: float = 1.0
    """The smallest p-value that these questions could have given."""
    higher_is_better: bool | None = True
    is_rate: bool = True
    scale: float | None = None
    """The largest difference that two values can have; None where that is not known."""
    verdict: Verdict = "not compared"
    by_question: tuple[Question, ...] = field(default=(), repr=False)
    """Every question of either side, ordered by id."""


@frozen(kw_only=True)
class Answers:
    """What one side did with a question."""

    outcomes: Mapping[str, int]
    """Items by outcome."""
    excerpt: str
    """The beginning of the answer that is typical of the side's value; empty without an answer."""
    why: str = ""
    """Why that item ended as it did."""


@frozen(kw_only=True)
class Flip:
    """A question of which the two sides say different things."""

    pair: Pair
    metric: str
    question_id: str
    question: str
    a: float
    b: float
    change: Literal["worse", "better", "different"]
    of_a: Answers
    of_b: Answers


@frozen
class Tie:
    """Models that cannot be distinguished by one measure and one judge."""

    parsing: str
    metric: str
    groups: tuple[tuple[str, ...], ...]
    ranks: Mapping[str, tuple[int, int]]
    """The best and the worst rank that the comparisons leave open."""


@frozen(kw_only=True)
class Comparison:
    """Two runs, or the models of one run, question by question."""

    name_a: str
    name_b: str
    rows: tuple[Row, ...]
    flipped: tuple[Flip, ...]
    """Questions whose mean is not the same on both sides; the worst for B first."""
    within: bool = False
    """Whether it is of the models of one run."""
    ties: tuple[Tie, ...] = ()
    """Of comparisons of models within one run."""
    unpaired_a: tuple[str, ...] = ()
    """Answering and parsing models of A that nothing in B is compared with."""
    unpaired_b: tuple[str, ...] = ()
    unasked_b: int = 0
    """Items that B planned of models that have no result at all."""
    only_a: tuple[str, ...] = ()
    """Questions that only A has an item of, errors included."""
    only_b: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(factory=dict)
    """Questions that are other items in B under the same id, and what is another one: they are not compared."""
    numbers_a: Headline
    numbers_b: Headline
    correction: Correction
    alpha: float
    level: float
    notes: tuple[str, ...] = ()
    nothing: str = ""
    """Why there is no row, and what to do; empty where there are rows."""

    @property
    def pairs(self) -> int:
        """How many pairs of values are compared, all rows together."""
        return sum(row.compared for row in self.rows)
