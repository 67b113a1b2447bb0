"""Gates: what a comparison must come to. A gate that cannot be decided fails, and says so; where the questions are too
few for that, `[plugins.compare]` says what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from karenina_cli.summary import percent
from karenina_runs.summaries.gates import SLACK, Gate

from karenina_core.errors import plural

from ..headline import Numbers
from ..settings import Undecided
from .values import Comparison, Row
from .wording import counts, interval, models, points, sight, signed


@frozen(kw_only=True)
class Limits:
    """Which gates there are; None and False ask for nothing."""

    no_regression: bool = False
    """No row is significantly worse in B, as it is and if every answer that is missing were as bad for B as it can be,
    or loses significantly more answers to errors; every row has enough questions, and a direction if it differs
    significantly, and every model of A is in B."""
    coverage: float | None = None
    """The smallest share of the questions of either side that must be compared, in every row."""
    pass_rate: float | None = None
    """The smallest pass rate of every model in B, of all items: one without a verdict counts as one that fails."""
    max_drop: float | None = None
    """How much worse B may be in every row: a part of 1 for rates, points of the scale for scores. Answers without a
    value, to questions that both sides were asked, are as bad for B as they can be."""
    undecided: Undecided = "fail"
    """What becomes of `no_regression` where so few questions decide nothing; see `CompareSettings`."""
    tolerated_drop: float = 0.1


def gates(comparison: Comparison, limits: Limits) -> tuple[Gate, ...]:
    """Every gate that `limits` asks for, in a fixed order. Nothing to compare fails each of them."""
    found: list[Gate] = []
    if limits.no_regression:
        found += [_regression(row, comparison.alpha, limits) for row in comparison.rows]
        found += _unpaired("regression", comparison)
    if limits.max_drop is not None:
        found += [Gate("drop", _about(row), *_drop(row, limits.max_drop)) for row in comparison.rows]
        found += _unpaired("drop", comparison)
    if limits.coverage is not None:
        found += _coverages(comparison, limits.coverage)
    if limits.pass_rate is not None:
        found += _pass_rates(comparison, limits.pass_rate)
    return tuple(found)


def _unpaired(name: str, comparison: Comparison) -> Iterator[Gate]:
    """Models of A that nothing is compared with."""
    for model in comparison.unpaired_a:
        yield Gate(name, model, False, "B has no results of it; name the models to compare (--models)")
    if not comparison.rows:
        yield Gate(name, "all models", False, f"cannot be decided: {comparison.nothing}")


def _regression(row: Row, alpha: float, limits: Limits) -> Gate:
    """What so few questions cannot decide, and what else is said of it."""
    if why := _too_few(row, limits.tolerated_drop):
        verdict, passed = f"cannot be decided: {why}", limits.undecided != "fail"
        by = f"; it passes because undecided = {limits.undecided!r} is set in [plugins.compare]" if passed else ""
        return Gate("regression", _about(row), passed, f"{verdict}{by}", limits.undecided == "warn")
    return Gate("regression", _about(row), *_decided(row, alpha))


def _too_few(row: Row, tolerated: float) -> str:
    """Why nothing is known; empty where something is."""
    if row.difference is None or row.verdict not in ("too few pairs", "no difference found"):
        return ""
    few = plural(row.compared, "question") + (f" in {plural(row.clusters, 'group')}" if row.clusters else "")
    if row.verdict == "too few pairs":
        return f"no result of {few} could be significant ({_details(row)})"
    drop = _worsening(row, row.difference)
    if drop is None or row.scale is None or drop <= tolerated * row.scale + SLACK:
        return ""
    return f"worse, but not significant ({_details(row)}); {few} show too little: {sight(row)}"


def _worsening(row: Row, difference: float) -> float | None:
    """By how much B is worse; negative where it is better, None where that is not known."""
    return None if row.higher_is_better is None else -difference if row.higher_is_better else difference


def _details(row: Row) -> str:
    return f"{signed(row.difference, row)} on {plural(row.compared, 'question')}, adjusted p = {row.p_adjusted:.3g}"


def _drop(row: Row, most: float) -> tuple[bool, str]:
    if row.difference is None:
        return False, f"cannot be decided: none of {plural(row.questions, 'question')} has a value on both sides"
    details = f"{signed(row.difference, row)} on {plural(row.compared, 'question')}"
    details += f" ({interval(row.interval, row)})" if row.interval else ""
    details += f", a drop of at most {points(most, row)} allowed"
    drop = _worsening(row, row.difference)
    if drop is None:
        what = "which value is better is unknown; name the metrics that decide (--metric)"
        return False, f"cannot be decided: {details}; {what}"
    if drop > most + SLACK:
        return False, details
    if not row.worst_known:
        return False, f"cannot be decided: {details}; the worst value of answers without one is unknown"
    worst = None if row.worst_asked is None else _worsening(row, row.worst_asked)
    if row.worst_asked is not None and worst is not None and worst > most + SLACK:
        what = f"{signed(row.worst_asked, row)} if every answer without a value were as bad for B as it can be"
        return False, f"cannot be decided: {details}; {what}"
    return True, details


def _decided(row: Row, alpha: float) -> tuple[bool, str]:
    if row.verdict == "not compared" or row.difference is None:
        return False, f"cannot be decided: none of {plural(row.questions, 'question')} has a value on both sides"
    details = _details(row)
    if row.verdict == "worse":
        return False, f"significantly worse: {details}"
    if row.verdict == "different":
        what = "which value is better is unknown; name the metrics that decide (--metric)"
        return False, f"cannot be decided: significantly different, and {what} ({details})"
    if row.lost_p <= alpha and row.lost > 0:
        lost = f"more than A on {plural(row.lost_b, 'question')}, less on {row.lost_a}"
        return (
            False,
            f"B has significantly more answers without a value: {lost}, adjusted p = {row.lost_p:.3g} ({details})",
        )
    if not row.worst_known:
        return False, f"cannot be decided: answers without a value, whose worst value is unknown ({details})"
    if row.worst_p is not None and row.worst_p <= alpha:
        worst = f"if every answer without a value were as bad for B as it can be, adjusted p = {row.worst_p:.3g}"
        return False, f"cannot be decided: B would be significantly worse {worst} ({details})"
    seen = f"; {sight(row)}" if row.verdict == "no difference found" else ""
    return True, f"{row.verdict}: {details}{seen}"


def _coverages(comparison: Comparison, least: float) -> Iterator[Gate]:
    for row in comparison.rows:
        share = row.coverage or 0.0
        partly = share < row.compared / max(1, row.questions) - SLACK
        counted = f"{percent(share)}{', with the answers that have no value' if partly else ''}"
        about = (
            f"{row.compared} of {plural(row.questions, 'question')} compared ({counted}), at least {percent(least)} "
            "required"
        )
        yield Gate("coverage", _about(row), share >= least - SLACK, about)
    for name in comparison.unpaired_a:
        yield Gate("coverage", name, False, "B has no results of it")
    if comparison.within:
        yield from _unasked("coverage", comparison)
    if not comparison.rows:
        yield Gate("coverage", "all models", False, f"cannot be decided: {comparison.nothing}")


def _pass_rates(comparison: Comparison, least: float) -> Iterator[Gate]:
    for numbers in comparison.numbers_b.pairs:
        about = f"{numbers.answering}, judged by {numbers.parsing}"
        yield Gate("pass rate", about, *_pass_rate(numbers, least))
    yield from _unasked("pass rate", comparison)
    if not comparison.numbers_b.pairs:
        yield Gate("pass rate", "all models", False, f"cannot be decided: {comparison.nothing or 'B has no items'}")


def _unasked(name: str, comparison: Comparison) -> Iterator[Gate]:
    if comparison.unasked_b:
        details = f"cannot be decided: {plural(comparison.unasked_b, 'planned item')} of models without any result"
        yield Gate(name, "other models", False, details)


def _pass_rate(numbers: Numbers, least: float) -> tuple[bool, str]:
    rate = numbers.pass_rate
    if rate.value is None:
        return False, f"cannot be decided: none of {plural(numbers.items, 'item')} has a verdict"
    details = (
        f"{percent(rate.value)} of {plural(rate.items, 'item')} with a verdict pass, at least {percent(least)} required"
    )
    if rate.bounds is None:
        return rate.value >= least - SLACK, details
    worst, missing = rate.bounds.worst, counts(rate.missing)
    details += f"; {percent(worst)} if none of those without one passed ({missing})"
    undecided = worst < least - SLACK and rate.bounds.best >= least - SLACK
    return worst >= least - SLACK, f"cannot be decided: {details}" if undecided else details


def _about(row: Row) -> str:
    return f"{models(row.pair)}: {row.metric}"
