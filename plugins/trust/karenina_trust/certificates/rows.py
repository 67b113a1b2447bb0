"""One certified number: every estimate with its interval, the recommended one with the reason, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from karenina_compare.statistics.arrays import Integers, np
from karenina_compare.statistics.inputs import StatisticsError
from karenina_runs.summaries.intervals import Estimate

from karenina_core.errors import plural

from ..estimators import (
    COEFFICIENTS,
    ClassRates,
    Sample,
    agreement,
    class_rates,
    drawn_interval,
    influence,
    judge_alone,
    people_alone,
    power_tuning,
    ppi,
    ppi_plus,
    rogan_gladen,
)
from ..judges.rates import rate_of_rows
from ..planning import LEAST
from .samples import Beside

__all__ = ["Row", "recommended", "row_of"]

FEW_LABELS = 30
"""Labels below which intervals of normal theory are compared with those of draws of whole questions. Chosen."""
RESAMPLES = 400
"""Draws of questions: enough for limits of 95 % to a tenth of their width."""
SAME = 1e-7
"""Logarithms of chances that differ by less are equal."""
UNEVEN = "strata drew some kinds of answers more often, and with them some errors of the judge"
SAMPLE = "agreement, sensitivity and specificity are of the labelled answers, which strata drew unevenly"
UNLIKELY = 0.001
"""Chance below which labels do not look like a draw."""
ESTIMATORS: Mapping[str, Callable[[Sample], Estimate]] = {
    "people": people_alone,
    "judge": judge_alone,
    "ppi": ppi,
    "ppi++": ppi_plus,
    "rogan-gladen": rogan_gladen,
}


@frozen(kw_only=True)
class Row:
    """One target, as one judge sees it, of one model or of all."""

    target: str
    judge: str
    model: str | None
    items: int
    """Answers that the judge says something of."""
    labels: int
    """Those of them with a label."""
    questions: int
    """Questions with a label."""
    annotators: int
    estimates: Mapping[str, Estimate] = field(factory=dict)
    """`people`, `judge`, `ppi`, `ppi++` and `rogan-gladen`."""
    recommended: str | None = None
    """Which of them; None where nothing is certified."""
    reason: str = ""
    """Why this one, or why none."""
    warnings: tuple[str, ...] = ()
    classes: ClassRates | None = None
    agreement: Mapping[str, Estimate] = field(factory=dict)
    """Of the judge with people: the coefficients, and sensitivity, specificity and predictive values of verdicts."""
    influence: Mapping[str, float] = field(factory=dict)
    """`{question: what it adds to the recommended estimate}`, for differences."""

    @property
    def certified(self) -> Estimate | None:
        return self.estimates.get(self.recommended or "")


def row_of(found: Beside, *, drawn: bool, agreed: bool = True) -> Row:
    """Estimates and agreement of one target. `drawn`: by a plan; labels of answers that somebody chose give agreement
    on these answers and no rate of all. `agreed`: with agreement, of all models together."""
    labelled = found.labelled
    row = Row(
        target=found.target,
        judge=found.judge,
        model=found.model,
        items=len(found.ids),
        labels=len(labelled),
        questions=len({found.questions[place] for place in labelled}),
        annotators=len(found.annotators),
        agreement=_agreement(found) if agreed and found.model is None else {},
    )
    if not drawn:
        return evolve(row, reason="the answers were chosen by hand: this is agreement on these answers, no rate of all")
    if not found.numeric:
        return evolve(row, reason="classes have no mean; look at the agreement of the judge with people")
    if len(labelled) < LEAST:
        missing = LEAST - len(labelled)
        more = f"label at least {missing} more" if row.items >= LEAST else f"{LEAST} are needed, so judge more answers"
        there = "" if row.items >= LEAST else f" of {plural(row.items, 'answer')}"
        return evolve(row, reason=f"too few labels: {len(labelled)}{there}; {more}")
    if row.questions < 2:
        return evolve(row, reason="labels of one question say nothing about others; label answers to other questions")
    try:
        sample = found.sample()
    except StatisticsError as error:
        return evolve(row, reason=f"a part of the answers has no label: {error}")
    return _estimated(row, found, sample)


def _estimated(row: Row, found: Beside, sample: Sample) -> Row:
    """With every estimate, and one of them recommended."""
    classes, unusable = _classes(sample)
    few = _few(sample)
    estimates: dict[str, Estimate] = {}
    strata = len(sample.strata_used) > 1
    for name, estimator in ESTIMATORS.items():
        if name == "rogan-gladen" and (classes is None or strata):
            note = UNEVEN if strata else unusable
            estimates[name] = Estimate(value=None, n=row.labels, method=name, note=note)
        elif name == "rogan-gladen":
            estimates[name] = estimator(_decided(sample))
        elif few and name != "judge":
            estimates[name] = _widened(estimator, sample)
        else:
            estimates[name] = estimator(sample)
    name, reason = recommended(sample, classes)
    if estimates[name].interval is None:
        return evolve(row, estimates=estimates, classes=classes, reason=estimates[name].note)
    by_question = dict.fromkeys(found.questions)
    shares = influence(sample, power_tuning(sample) if name == "ppi++" else 0.0)
    return evolve(
        row,
        estimates=estimates,
        recommended=name,
        reason=reason,
        classes=None if strata else classes,
        warnings=(*_warnings(found, sample), *([few] if few else []), *([SAMPLE] if strata else [])),
        influence={question: float(share) for question, share in zip(by_question, shares, strict=True)},
    )


def recommended(sample: Sample, classes: ClassRates | None) -> tuple[str, str]:
    """The name of the estimate that is recommended, and why; `classes` is how often the judge is right, if known."""
    if classes is not None and (why := classes.refusal()).startswith("the judge says little"):
        return "people", f"{why}; only labels count"
    if len(sample.labelled) == len(sample.judge):
        return "people", "every answer is labelled, so the judge has nothing to add"
    if power := power_tuning(sample):
        return "ppi++", f"uses the judge as far as it correlates with people's labels ({power:.2f} of its correction)"
    if len(set(zip(sample.strata, sample.judge, strict=True))) == len(sample.strata_used) > 1:
        return "people", "answers were drawn by the judge's outcome, so the weighted labels already use it"
    return "people", "the judge does not correlate with people's labels, so it adds nothing to them"


def _classes(sample: Sample) -> tuple[ClassRates | None, str]:
    """How often the judge is right on either class; None with the reason where that is not known."""
    try:
        return class_rates(_decided(sample)), ""
    except StatisticsError as error:
        return None, str(error)


def _decided(sample: Sample) -> Sample:
    """With what most people say of each answer, where all say 0 or 1; answers on which they are split have no label."""
    people = sample.people
    if sample.binary or not (np.isin(sample.judge, (0, 1)).all() and np.nanmin(people) >= 0 and np.nanmax(people) <= 1):
        return sample
    return evolve(sample, people=np.where(people == 0.5, np.nan, np.round(people)))


def _few(sample: Sample) -> str:
    """What is said where intervals are of normal theory and labels too few for it; empty where they are not."""
    labels = len(sample.labelled)
    if sample.binary or labels >= FEW_LABELS:
        return ""
    return f"few labels ({labels}): intervals are the wider ones of normal theory and of draws of whole questions"


def _widened(estimator: Callable[[Sample], Estimate], sample: Sample) -> Estimate:
    """With the interval of the percentiles of draws where it reaches further."""
    found, strata = estimator(sample), len(sample.strata_used)
    if (own := found.interval) is None:
        return found

    def again(places: Integers, questions: Integers) -> float | None:
        drawn = sample.at(places, questions)
        every = (drawn.strata, drawn.strata[drawn.labelled])  # one with one or two labels is often missing
        complete = all(np.count_nonzero(np.bincount(there)) == strata for there in every)
        return estimator(drawn).value if complete else None

    limits = drawn_interval(
        again, sample.questions, own.method, apart=sample.labelled, level=own.level, resamples=RESAMPLES
    )
    if limits is None:
        return found
    return evolve(found, interval=evolve(limits, low=min(limits.low, own.low), high=max(limits.high, own.high)))


def _warnings(found: Beside, sample: Sample) -> list[str]:
    said = []
    if (chance := _chance_of_draw(sample)) < UNLIKELY:
        said.append(
            f"the judge passes the labelled answers at another rate than the rest (chance {chance:.2g}): were they "
            "labelled in the order in which they were drawn?"
        )
    people, judge = _disagreement(found)
    if people is not None and people > judge:
        said.append(
            f"people disagree with each other ({people:.0%} of pairs) more than with the judge ({judge:.0%}): the rate "
            "is what they would say on average"
        )
    return said


def _chance_of_draw(sample: Sample) -> float:
    """Of a draw in which the judge passes as many of the labelled answers, or a less likely number, in some stratum:
    the smallest one, times the strata."""
    if not sample.binary:
        return 1.0
    labelled, strata, found = ~np.isnan(sample.people), sample.strata_used, []
    for stratum in strata:
        inside = sample.strata == stratum
        passes, chosen = sample.judge[inside] == 1, labelled[inside]
        counts = (passes & chosen).sum(), chosen.sum(), passes.sum(), len(passes)
        found.append(exact_chance(*map(int, counts)))
    return min(min(found) * len(strata), 1.0)


def exact_chance(seen: int, drawn: int, passes: int, items: int) -> float:
    """Fisher's exact test, two-sided: of as many passes among `drawn` of `items`, `passes` of which pass, or of a
    number that is less likely. R. A. Fisher, Journal of the Royal Statistical Society 98 (1935) 39-82. `scipy.stats`
    has it, too, and takes longer to import than all of a certificate."""

    def log_ways(of: int, chosen: int) -> float:
        return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)

    possible = range(max(0, drawn + passes - items), min(drawn, passes) + 1)
    logs = {k: log_ways(passes, k) + log_ways(items - passes, drawn - k) - log_ways(items, drawn) for k in possible}
    return min(sum(math.exp(own) for own in logs.values() if own <= logs[seen] + SAME), 1.0)


def _disagreement(found: Beside) -> tuple[float | None, float]:
    """The share of pairs of people who say something else of an answer, and of pairs of a person and the judge."""
    pairs = apart = other = total = 0
    for place in found.labelled:
        values = list(found.people[place].values())
        pairs += len(values) * (len(values) - 1) // 2
        apart += sum(one != two for at, one in enumerate(values) for two in values[:at])
        other += sum(value != found.said[place] for value in values)
        total += len(values)
    return (apart / pairs if pairs else None), (other / total if total else 0.0)


def _agreement(found: Beside) -> dict[str, Estimate]:
    """Coefficients over pairs of the judge and each person, and rates of the judge by class where values are 0 or 1."""
    pairs: list[tuple[float | str, float | str, str]] = [
        (found.said[place], value, found.questions[place])
        for place in found.labelled
        for value in found.people[place].values()
    ]
    if not pairs:
        return {}
    rows, questions = [pair[:2] for pair in pairs], [pair[2] for pair in pairs]
    scores = {value for row in rows for value in row}
    scale: Any = "interval" if found.numeric and not scores <= {0.0, 1.0} else "nominal"
    try:
        table = {
            name: agreement(rows, coefficient, scale, questions, resamples=RESAMPLES)
            for name, coefficient in COEFFICIENTS.items()
        }
    except StatisticsError:  # words beside numbers
        return {}
    return {**table, **(_by_class(pairs) if scores <= {0.0, 1.0} else {})}


def _by_class(pairs: Sequence[tuple[float | str, float | str, str]]) -> dict[str, Estimate]:
    """Labels of one question, such as those of several people, are a cluster."""
    of_person = {
        name: rate_of_rows((question, said == person) for said, person, question in pairs if person == value)
        for name, value in (("sensitivity", 1.0), ("specificity", 0.0))
    }
    of_judge = {
        name: rate_of_rows((question, said == person) for said, person, question in pairs if said == value)
        for name, value in (("positive predictive value", 1.0), ("negative predictive value", 0.0))
    }
    return {**of_person, **of_judge}
