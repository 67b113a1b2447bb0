"""The statistics of one row: which procedures its data allow, and which of them is the one to go by."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import evolve, field, frozen
from karenina_runs.summaries.intervals import Interval

from ..measures import Measure
from ..statistics.paired import flips, mcnemar, paired_rate_difference, paired_test
from ..statistics.planning import detectable_difference
from ..statistics.resampling import paired_bootstrap, permutation_test
from .values import Test

Values = Sequence[float]
"""Of one side, question by question."""


@frozen(kw_only=True)
class Effect:
    """The difference B - A and how sure it is."""

    difference: float
    interval: Interval | None
    test: str
    p_value: float
    tests: tuple[Test, ...] = field(default=())
    standard_error: float | None = None
    df: float | None = None
    smallest_p: float = 1.0
    units: int = 0
    """What is taken as independent: questions, or groups of them."""

    def detectable(self, alpha: float) -> float | None:
        """The smallest true difference that is found with a probability of 80 % at level alpha."""
        if not self.standard_error:
            return None
        return detectable_difference(self.standard_error, self.df, alpha)


def effect(
    a: Values, b: Values, clusters: Sequence[Hashable] | None, measure: Measure, *, single: bool, level: float
) -> Effect | None:
    """None without questions. `clusters` are their groups, None where every question is independent; `single`: whether
    every value is that of one answer.

    Passes and failures of one answer to each of independent questions: McNemar's exact test with the interval of Bonett
    and Price. Everything else: the permutation test by question, or by group of questions, with the interval of
    Student's t or its cluster-robust form.
    """
    if not a:
        return None
    units = len(a) if clusters is None else len(set(clusters))
    signs = permutation_test(b, a, clusters)
    student = paired_test(b, a, clusters, level)
    kind = "" if clusters is None else "cluster "
    permutation = Test(name=f"{kind}permutation", p_value=signs.p_value)
    tests = [
        permutation,
        Test(name=f"{kind}t", p_value=student.p_value, interval=_cut(student.difference.interval, measure)),
        Test(name=f"{kind}bootstrap", interval=_cut(_bootstrap(a, b, clusters, level), measure)),
    ]
    chosen, estimate = permutation, student.difference
    if measure.is_rate and single and clusters is None:
        only_b, only_a = flips(b, a)
        estimate = paired_rate_difference(only_b, only_a, len(a), level)
        chosen = Test(name="mcnemar", p_value=mcnemar(only_b, only_a).p_value, interval=estimate.interval)
        tests.insert(0, chosen)
    elif measure.is_rate and estimate.interval is None and estimate.value == 0:
        estimate = paired_rate_difference(0, 0, units, level)  # as many alike units say so much
    return Effect(
        difference=signs.difference or 0.0,
        interval=_cut(estimate.interval, measure),
        test=chosen.name,
        p_value=signs.p_value if chosen.p_value is None else chosen.p_value,
        tests=tuple(tests),
        standard_error=estimate.standard_error,
        df=estimate.df,
        smallest_p=min(1.0, 2.0 ** (1 - units)),  # that of equal differences, which every number of units can have
        units=units,
    )


def _bootstrap(a: Values, b: Values, clusters: Sequence[Hashable] | None, level: float) -> Interval | None:
    """The same for A against B as for B against A, mirrored: random draws alone would make a difference."""
    totals: dict[Hashable, tuple[float, int]] = {}
    for label, x, y in zip(range(len(a)) if clusters is None else clusters, a, b, strict=True):
        total, size = totals.get(label, (0.0, 0))
        totals[label] = (total + (y - x), size + 1)
    units, mirrored = sorted(totals.values()), sorted((-total, size) for total, size in totals.values())
    turned = mirrored > units
    first, second = (a, b) if turned else (b, a)
    found = paired_bootstrap(first, second, clusters, level=level).interval
    if found is None or not (turned or units == mirrored):
        return found
    if turned:
        return evolve(found, low=-found.high, high=-found.low)
    half = (found.high - found.low) / 2
    return evolve(found, low=-half, high=half)


def _cut(interval: Interval | None, measure: Measure) -> Interval | None:
    """No difference is larger than the scale."""
    if interval is None or measure.lowest is None or measure.highest is None:
        return interval
    width = float(measure.highest - measure.lowest)
    return evolve(interval, low=max(-width, interval.low), high=min(width, interval.high))
