"""Gates: what a comparison must come to. A gate that cannot be decided fails, and says so."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from karenina_cli.summary import percent
from karenina_runs.summaries.gates import SLACK, Gate

from karenina_core.errors import plural

from ..headline import Numbers
from .values import Comparison, Row
from .wording import counts, models, signed


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


def gates(comparison: Comparison, limits: Limits) -> tuple[Gate, ...]:
    """Every gate that `limits` asks for, in a fixed order. Nothing to compare fails each of them."""
    found: list[Gate] = []
    if limits.no_regression:
        found += [Gate("regression", _about(row), *_regression(row, comparison.alpha)) for row in comparison.rows]
        details = "B has no results of it; name the models to compare (--models)"
        found += [Gate("regression", name, False, details) for name in comparison.unpaired_a]
        if not comparison.rows:
            found.append(Gate("regression", "all models", False, f"cannot be decided: {comparison.nothing}"))
    if limits.coverage is not None:
        found += _coverages(comparison, limits.coverage)
    if limits.pass_rate is not None:
        found += _pass_rates(comparison, limits.pass_rate)
    return tuple(found)


def _regression(row: Row, alpha: float) -> tuple[bool, str]:
    if row.verdict == "not compared" or row.difference is None:
        return False, f"cannot be decided: none of {plural(row.questions, 'question')} has a value on both sides"
    details = f"{signed(row.difference, row)} on {plural(row.compared, 'question')}, adjusted p = {row.p_adjusted:.3g}"
    if row.verdict == "too few pairs":
        few = plural(row.compared, "question") + (f" in {plural(row.clusters, 'group')}" if row.clusters else "")
        return False, f"cannot be decided: no result of {few} could be significant ({details})"
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
    return True, f"{row.verdict}: {details}"


def _coverages(comparison: Comparison, least: float) -> Iterator[Gate]:
    for row in comparison.rows:
        share = row.coverage or 0.0
        partly = share < row.compared / max(1, row.questions) - SLACK
        counted = f"{percent(share)}{', with the answers that have no value' if partly else ''}"
        about = (
            f"{row.compared} of {plural(row.questions, 'question')} compared ({counted}), {percent(least)} asked for"
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
    details = f"{percent(rate.value)} of {plural(rate.items, 'item')} with a verdict pass, {percent(least)} asked for"
    if rate.bounds is None:
        return rate.value >= least - SLACK, details
    worst, missing = rate.bounds.worst, counts(rate.missing)
    details += f"; {percent(worst)} if none of those without one passed ({missing})"
    undecided = worst < least - SLACK and rate.bounds.best >= least - SLACK
    return worst >= least - SLACK, f"cannot be decided: {details}" if undecided else details


def _about(row: Row) -> str:
    return f"{models(row.pair)}: {row.metric}"
