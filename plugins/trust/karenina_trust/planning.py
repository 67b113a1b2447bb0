"""How many labels of people a wanted width takes, of which answers, and what a judge can save of them.

The variances are those of the estimators (`karenina_trust.estimators`), for passes and failures:

- people alone, n answers drawn at random: var(Y) / n;
- PPI++, n answers drawn at random: with V the mean of var(Y | f) over the judge's verdicts f, and B = var(Y) - V the
  part that the judge explains, V / n + B / N. A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++: Efficient
  prediction-powered inference", arXiv:2311.01453 (2023), with the best share L written out for two verdicts;
- as many answers that passed as that did not: the sum over both of W² var(Y | f) / n_f, and B / N, W being the share of
  a verdict. W. G. Cochran, "Sampling Techniques" (1977), 5.3.

Answers to one question are alike by rho: the n-th of a question says less by 1 + (n - 1) rho (L. Kish, "Survey
Sampling" (1965), 5.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from attrs import field, frozen
from karenina_compare.statistics.inputs import StatisticsError, fraction
from karenina_runs.summaries.intervals import Clusters, cluster_rate, t_quantile

__all__ = ["LEAST", "Design", "Situation", "assumed", "likeness", "observed"]

LEAST = 20
"""Labels below which nothing is certified. Chosen, as in the literature on small samples of annotations: an interval
of a rate is then 40 points wide."""
Design = Literal["people", "random", "by outcome"]
"""Without the judge; with it and answers drawn at random; with it and as many that passed as that did not."""


@frozen(kw_only=True)
class Situation:
    """The answers of a run, and what is known or assumed of a judge's verdicts on them."""

    items: int
    """Answers that the judge has a verdict of."""
    questions: int
    passed: float
    """The share that the judge passes."""
    right_passed: float
    """The share of these that people would pass, too."""
    right_failed: float
    """The share of the others that people would fail, too."""
    alike: float = field(default=0.0)
    """rho: how alike answers to one question are, from 0 to 1; see `likeness`."""

    def __attrs_post_init__(self) -> None:
        for name in ("passed", "right_passed", "right_failed", "alike"):
            if not 0 <= getattr(self, name) <= 1:
                raise StatisticsError(f"{name} is {getattr(self, name)!r}; give a share from 0 to 1")
        if not 1 <= self.questions <= self.items:
            raise StatisticsError(f"{self.items} answers to {self.questions} questions are impossible")

    @property
    def rate(self) -> float:
        """What people would say of all answers."""
        return self.passed * self.right_passed + (1 - self.passed) * (1 - self.right_failed)

    @property
    def accuracy(self) -> float:
        """How often the judge agrees with people."""
        return self.passed * self.right_passed + (1 - self.passed) * self.right_failed

    @property
    def explained(self) -> float:
        """The share of the variance of people's verdicts that the judge's explain: rho² of the two. The labels that a
        judge can save, where all else of the run is large."""
        total = self.rate * (1 - self.rate)
        return self._between / total if total else 0.0

    @property
    def no_better_than_the_model(self) -> bool:
        """Whether the judge is right no more often than the judged model. Then no method saves more than half of the
        labels: F. E. Dorner, V. Y. Nastl, M. Hardt, "Limits to scalable evaluation at the frontier: LLM as judge won't
        beat twice the data", arXiv:2410.13341 (2024)."""
        return self.accuracy <= self.rate

    @property
    def _between(self) -> float:
        return self.passed * (1 - self.passed) * (self.right_passed + self.right_failed - 1) ** 2

    def width(self, labels: int, design: Design = "random", level: float = 0.95) -> float:
        """Of the interval that so many labels are expected to give, both sides together; Student's t."""
        if not 2 <= labels <= self.items:
            raise StatisticsError(f"{labels} labels of {self.items} answers are impossible; give 2 to {self.items}")
        quantile = t_quantile((1 + fraction(level, "level")) / 2, max(min(labels, self.questions) - 1, 1))
        return 2 * quantile * math.sqrt(self._variance(labels, design))

    def _variance(self, labels: int, design: Design) -> float:
        repeated = 1 + (max(labels / self.questions, 1) - 1) * self.alike
        whole = 1 + (self.items / self.questions - 1) * self.alike
        if design == "people":
            return self.rate * (1 - self.rate) / labels * repeated
        shares = (self.passed, 1 - self.passed)
        within = [right * (1 - right) for right in (self.right_passed, self.right_failed)]
        if design == "random":
            own = sum(share * part for share, part in zip(shares, within, strict=True)) / labels
        else:
            counts = self._halves(labels)
            own = sum(w * w * v / n for w, v, n in zip(shares, within, counts, strict=True) if w)
        return own * repeated + self._between / self.items * whole

    def _halves(self, labels: int) -> tuple[float, float]:
        """How many that passed and that did not; one kind has what the other has too few for."""
        there = [max(round(share * self.items), 1) for share in (self.passed, 1 - self.passed)]
        passed = min(there[0], max(labels / 2, labels - there[1]))
        return passed, max(labels - passed, 1)

    def labels(self, width: float, design: Design = "random", level: float = 0.95) -> int | None:
        """The fewest that give an interval no wider than this, `LEAST` at least; None where all labels do not."""
        if not 0 < width < 1:
            raise StatisticsError(f"width is {width!r}; give one between 0 and 1, such as 0.1")
        low, high = min(LEAST, self.items), self.items
        if high < 2 or self.width(high, design, level) > width:
            return None
        while low < high:
            middle = (low + high) // 2
            if self.width(max(middle, 2), design, level) <= width:
                high = middle
            else:
                low = middle + 1
        return low


def observed(judge: Sequence[bool], people: Sequence[bool | None], questions: Sequence[str] | None = None) -> Situation:
    """What labels say of a judge, whether drawn at random or by its verdicts: only the shares within a verdict count.

    Half an error of the judge is added to either verdict, so that few labels make no judge perfect. Raises
    StatisticsError where one of its verdicts has no label.
    """
    names = list(range(len(judge))) if questions is None else list(questions)
    right = []
    for verdict in (True, False):
        labels = [label for said, label in zip(judge, people, strict=True) if said is verdict and label is not None]
        if not labels:
            kind = "passes" if verdict else "fails"
            raise StatisticsError(f"no answer that the judge {kind} has a label; label some of both kinds")
        right.append((sum(label is verdict for label in labels) + 0.5) / (len(labels) + 1))
    return Situation(
        items=len(judge),
        questions=len(set(names)),
        passed=sum(judge) / len(judge),
        right_passed=right[0],
        right_failed=right[1],
        alike=likeness(judge, names),
    )


def assumed(
    judge: Sequence[bool], sensitivity: float, specificity: float, questions: Sequence[str] | None = None
) -> Situation:
    """The same for a judge whose rates are assumed. Raises StatisticsError for rates that do not fit how often it
    passes answers: whoever is right on most wrong ones cannot pass hardly fewer or more than that leaves."""
    names = list(range(len(judge))) if questions is None else list(questions)
    passed = sum(judge) / len(judge)
    informed = fraction(sensitivity, "sensitivity") + fraction(specificity, "specificity") - 1
    if informed <= 0:
        raise StatisticsError("sensitivity plus specificity is 1 or less: such a judge guesses")
    rate = (passed + specificity - 1) / informed
    if not 0 < rate < 1 or not 0 < passed < 1:
        raise StatisticsError(
            f"a judge with sensitivity {sensitivity:.2f} and specificity {specificity:.2f} would not pass {passed:.1%}"
        )
    return Situation(
        items=len(judge),
        questions=len(set(names)),
        passed=passed,
        right_passed=min(rate * sensitivity / passed, 1.0),  # sums of rounded numbers
        right_failed=min((1 - rate) * specificity / (1 - passed), 1.0),
        alike=likeness(judge, names),
    )


def likeness(judge: Sequence[bool], questions: Sequence[object]) -> float:
    """rho of a judge's verdicts on answers to one question, from the cluster-robust error of their mean: (D - 1) / (m -
    1), D being its square by that of independent answers, and m the answers of a question on average, weighted by
    themselves. From 0 to 1."""
    groups: dict[object, list[int]] = {}
    for question, verdict in zip(questions, judge, strict=True):
        counts = groups.setdefault(question, [0, 0])
        counts[0] += verdict
        counts[1] += 1
    clusters = Clusters.of((total, items) for total, items in groups.values())
    found = cluster_rate(clusters)
    if not clusters.several or not found.standard_error or found.value is None:
        return 0.0
    independent = found.value * (1 - found.value) / clusters.items
    size = clusters.sizes / clusters.items
    return min(max((found.standard_error**2 / independent - 1) / (size - 1), 0.0), 1.0) if independent else 0.0
