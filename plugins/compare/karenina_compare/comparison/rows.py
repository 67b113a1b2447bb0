"""One row of a comparison: one pair of models by one measure, question by question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from attrs import evolve, frozen

from ..measures import Measure, mean
from ..question_groups import Groups, group_of
from ..statistics.multiplicity import benjamini_hochberg, benjamini_yekutieli, holm
from ..statistics.resampling import PermutationTest, permutation_test
from .effects import Effect, effect
from .sides import CHANGED, NOT_ASKED, NOT_DUE, Seen, Side
from .values import Correction, Pair, Question, Row, Verdict

CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg, "benjamini-yekutieli": benjamini_yekutieli}


@frozen(kw_only=True)
class Facing:
    """Two sides that face each other by one measure."""

    pair: Pair
    measure: Measure
    a: Side
    b: Side
    groups: Groups
    level: float
    changed: Collection[str] = ()
    """Questions that ask something else on the other side."""

    def seen(self, side: Side) -> dict[str, Seen]:
        """What a side says of every question that either side is due to speak of."""
        own = side.seen.get(self.measure.name, {})
        both = {*self.a.seen.get(self.measure.name, {}), *self.b.seen.get(self.measure.name, {})}
        found = {}
        for question in sorted(both):
            seen = own.get(question)
            if seen is None:
                seen = Seen(missing=(NOT_DUE if question in side.items else NOT_ASKED,))
            elif question in self.changed:
                seen = Seen(missing=(CHANGED,) * (len(seen.values) + len(seen.missing)))
            found[question] = seen
        return found

    def compared(self) -> dict[str, tuple[Seen, Seen]]:
        """The questions with a value on both sides."""
        a, b = self.seen(self.a), self.seen(self.b)
        return {question: (a[question], b[question]) for question in a if a[question].values and b[question].values}


def row(facing: Facing) -> tuple[Row, Effect | None]:
    """The row without what depends on the other rows."""
    a, b = facing.seen(facing.a), facing.seen(facing.b)
    compared = facing.compared()
    values_a = [one.mean or 0.0 for one, _ in compared.values()]
    values_b = [other.mean or 0.0 for _, other in compared.values()]
    often = [max((len(pair[side].values) for pair in compared.values()), default=1) for side in (0, 1)]
    clusters = _clusters(compared, facing.groups)
    found = effect(values_a, values_b, clusters, facing.measure, single=often == [1, 1], level=facing.level)
    lost_a, lost_b, losses = _losses(a, b, facing.groups)
    worst, best = _bounds(facing.measure, a, b)
    signs = [direction(x, y) for x, y in zip(values_a, values_b, strict=True)]
    better, worse = {True: (1, -1), False: (-1, 1), None: (None, None)}[facing.measure.higher_is_better]
    worst_p, worst_asked, worst_known = _worst_case(facing, a, b)
    low, high = facing.measure.lowest, facing.measure.highest
    # a question counts as much as its answers have values, on the side where fewer have one
    kept = [min(1 - (a[q].lost or 0), 1 - (b[q].lost or 0)) for q in a if a[q].values and b[q].values]
    made = Row(
        pair=facing.pair,
        metric=facing.measure.name,
        a=mean(values_a),
        b=mean(values_b),
        difference=found.difference if found else None,
        interval=found.interval if found else None,
        p_value=found.p_value if found else None,
        test=found.test if found else "",
        tests=found.tests if found else (),
        compared=len(compared),
        questions=len(a),
        missing_a=_reasons(a),
        missing_b=_reasons(b),
        coverage=sum(kept) / len(a) if a else None,
        better=None if better is None else signs.count(better),
        worse=None if worse is None else signs.count(worse),
        lost_a=lost_a,
        lost_b=lost_b,
        lost=losses.difference or 0.0,
        lost_p=losses.p_value,
        worst=worst,
        best=best,
        worst_p=worst_p,
        worst_asked=worst_asked,
        worst_known=worst_known,
        clusters=found.units if found and clusters is not None else None,
        replicates=(often[0], often[1]),
        smallest_p=found.smallest_p if found else 1.0,
        higher_is_better=facing.measure.higher_is_better,
        is_rate=facing.measure.is_rate,
        scale=None if low is None or high is None else float(high - low),
        by_question=tuple(Question(q, a[q].mean, b[q].mean, a[q].missing, b[q].missing) for q in a),
    )
    return made, found


def judged(rows: Sequence[tuple[Row, Effect | None]], correction: Correction, alpha: float) -> tuple[Row, ...]:
    """The rows with the p-values and verdicts of a whole family of comparisons.

    Rows of so few questions that they could not be significant even alone never are, and so cost the others nothing:
    R. E. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46 (1990) 515-522.
    """
    correct = CORRECTIONS[correction]
    family = [made for made, _ in rows if made.p_value is not None and made.smallest_p <= alpha]
    adjusted = iter(correct([made.p_value or 0.0 for made in family]))
    smallest = iter(correct([made.smallest_p for made in family]))
    losses = correct([made.lost_p for made, _ in rows])
    worst = correct([made.p_value or 1.0 if made.worst_p is None else made.worst_p for made, _ in rows])
    done = []
    for (made, found), loss, worst_p in zip(rows, losses, worst, strict=True):
        p, decidable = made.p_value, False
        if p is not None and made.smallest_p <= alpha:
            p, decidable = next(adjusted), next(smallest) <= alpha
        elif p is not None:
            p = 1.0
        detectable = found.detectable(alpha / max(1, len(family))) if found else None
        noticeable = math.ceil(1 - math.log2(alpha / max(1, len(family)))) if found else None  # see `smallest_p`
        made = evolve(made, p_adjusted=p, detectable=detectable, noticeable=noticeable, lost_p=loss)
        made = evolve(made, worst_p=None if made.worst_p is None else worst_p)
        done.append(evolve(made, verdict=_verdict(made, alpha, decidable)))
    return tuple(done)


def _verdict(made: Row, alpha: float, decidable: bool) -> Verdict:
    """`decidable`: whether the row could be significant if every row of the family differed as much as it can."""
    if made.p_adjusted is None or made.difference is None:
        return "not compared"
    if made.p_adjusted <= alpha and made.difference:
        if made.higher_is_better is None:
            return "different"
        return "better" if (made.difference > 0) == made.higher_is_better else "worse"
    return "no difference found" if decidable else "too few pairs"


def _clusters(questions: Iterable[str], groups: Groups) -> list[Hashable] | None:
    """The group of each question; None where every one has its own."""
    found = [group_of(question, groups) for question in questions]
    return found if len(set(found)) < len(found) else None


def _asked(a: Mapping[str, Seen], b: Mapping[str, Seen]) -> list[str]:
    """The questions that both sides were asked."""
    return [question for question in a if a[question].lost is not None and b[question].lost is not None]


def _losses(a: Mapping[str, Seen], b: Mapping[str, Seen], groups: Groups) -> tuple[int, int, PermutationTest]:
    """Of how many questions A, and B, loses more of its answers, and the test of that, by question: for single answers
    it is the exact test of McNemar."""
    asked = _asked(a, b)
    lost_a, lost_b = [a[q].lost or 0.0 for q in asked], [b[q].lost or 0.0 for q in asked]
    found = permutation_test(lost_b, lost_a, _clusters(asked, groups))
    more = [(y > x) - (x > y) for x, y in zip(lost_a, lost_b, strict=True)]
    return more.count(-1), more.count(1), found


def direction(a: float, b: float) -> int:
    """1 where the mean of a question is higher on side B, -1 where it is lower, 0 where both are the same."""
    return 0 if math.isclose(a, b, abs_tol=1e-9) else 1 if b > a else -1  # means of equal values differ by roundings


def _worst_case(
    facing: Facing, a: Mapping[str, Seen], b: Mapping[str, Seen]
) -> tuple[float | None, float | None, bool]:
    """`worst_p`, `worst_asked` and `worst_known` of a row: every answer that was lost is as good in A, and as bad in B,
    as it can be."""
    measure = facing.measure
    asked = _asked(a, b)
    if measure.higher_is_better is None or not any(a[q].lost or b[q].lost for q in asked):
        return None, None, True
    if measure.lowest is None or measure.highest is None:
        return None, None, False
    bad, good = (measure.lowest, measure.highest) if measure.higher_is_better else (measure.highest, measure.lowest)
    values_a, values_b = [a[q].filled(good) for q in asked], [b[q].filled(bad) for q in asked]
    found = permutation_test(values_b, values_a, _clusters(asked, facing.groups))
    is_worse = (found.difference or 0.0) * (good - bad) < 0
    return (found.p_value if is_worse else None), found.difference, True


def _bounds(measure: Measure, a: Mapping[str, Seen], b: Mapping[str, Seen]) -> tuple[float | None, float | None]:
    """The mean difference over all questions if every missing item had the value that is worst or best for B - A."""
    if measure.lowest is None or measure.highest is None or not a:
        return None, None
    low, high = measure.lowest, measure.highest
    if measure.higher_is_better is False:
        low, high = high, low
    worst = sum(b[q].filled(low) for q in a) - sum(a[q].filled(high) for q in a)
    best = sum(b[q].filled(high) for q in a) - sum(a[q].filled(low) for q in a)
    return worst / len(a), best / len(a)


def _reasons(seen: Mapping[str, Seen]) -> dict[str, int]:
    return dict(sorted(Counter(reason for one in seen.values() for reason in one.missing).items()))
