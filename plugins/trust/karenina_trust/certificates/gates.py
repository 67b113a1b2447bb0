"""Gates on certified rates. One whose certificate does not hold for the run fails: nothing vouches for its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from karenina_core.errors import BenchmarkError, ConfigError, Problem

from .plugin import NAME

if TYPE_CHECKING:
    from karenina_runs.plan.items import Prepared
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.summaries.gates import Gate
    from karenina_runs.summaries.intervals import Estimate

    from ..labels.answers import Answer
    from .document import Certified, Held
    from .settings import CertificateSettings

__all__ = ["asked", "gates_of", "not_holding", "out_of_date"]

RATE = "certified rate"


def asked(prepared: Prepared) -> Callable[[VerificationResultSet], Sequence[Gate]] | None:
    """What gives the gates for the results of a run; None where none are asked for.

    Raises ConfigError, before a model is asked, where the certificate is missing, cannot be read, or is of another
    judge, prompt, template, rubric or model than the run will have.
    """
    settings: CertificateSettings | None = prepared.app.settings(NAME)
    if settings is None or (settings.certificate is None and settings.min_rate is None):
        return None
    if settings.certificate is None:
        raise ConfigError([Problem("--min-certified-rate", "needs a certificate; add --certificate FILE")])
    least = settings.min_rate
    if least is None:
        raise ConfigError([Problem("--certificate", "has no effect alone; add --min-certified-rate 0.8")])
    from ..labels.binding import planned_binding, stale
    from .document import read_certificate

    try:
        held = read_certificate(Path(settings.certificate))
    except BenchmarkError as error:
        raise ConfigError([Problem("--certificate", str(error))]) from None
    if changed := stale(held.binding, planned_binding(prepared)):
        what = f"{_other_run(held, changed)}; certify such a run (karenina certify), or leave --certificate out"
        raise ConfigError([Problem("--certificate", what)])
    return lambda results: gates_of(held, results, least)


def _other_run(held: Held, changed: Sequence[str]) -> str:
    from ..labels.binding import listed

    return f"{held.path} does not hold for this run: {listed(changed)}"


def not_holding(held: Held, run: Path) -> list[str]:
    """Why a certificate does not hold for a run, a line each; nothing where it does."""
    from ..labels.binding import binding_of, stale

    try:
        return stale(held.binding, binding_of(run))
    except ConfigError as error:
        return [str(error)]


def out_of_date(held: Held, run: Path) -> list[str]:
    """The same, and whether the results are still those that it is of."""
    from karenina_runs.results.results import VerificationResultSet

    from ..labels.answers import answers_of
    from .certify import results_digest

    if changed := not_holding(held, run):
        return changed
    same = results_digest(answers_of(VerificationResultSet.load(run))) == held.results
    return [] if same else [f"it is for other results than those in {run}; certify them again"]


def gates_of(held: Held, results: VerificationResultSet, least: float) -> Sequence[Gate]:
    """A gate for every answering model and judge of the results.

    For the very answers of the certificate, its own rate counts. For other answers of the same models to the same
    questions, the judge's rate is corrected by the sensitivity and the specificity that the labels have found.
    """
    from karenina_runs.summaries.gates import Gate

    from ..labels.answers import answers_of
    from .certify import results_digest

    if results.run_dir is None:
        return [Gate(RATE, "all models", False, "cannot be decided: the run has no directory (--out DIR)")]
    if changed := not_holding(held, results.run_dir):
        what = f"{_other_run(held, changed)}; label and certify this run"
        return [Gate(RATE, "all models", False, what)]
    answers = answers_of(results)
    same = results_digest(answers) == held.results
    pairs = sorted({(answer.model, judge) for answer in answers for judge in answer.judged})
    if not pairs:
        return [Gate(RATE, "all models", False, "cannot be decided: no answer was judged")]
    return [_gate(held, answers, pair, same=same, least=least) for pair in pairs]


def _gate(held: Held, answers: Iterable[Answer], pair: tuple[str, str], *, same: bool, least: float) -> Gate:
    from karenina_runs.summaries.gates import SLACK, Gate

    name = f"{pair[0]}, judged by {pair[1]}"
    row = next((row for row in held.rows if (row.target, row.model, row.judge) == ("verdict", *pair)), None)
    if row is None:
        return Gate(RATE, name, False, f"cannot be decided: {held.path} certifies no pass rate of it")
    if same:
        low, text = row.low, f"{row.method} of {row.labels} labels: {_shown(row.value, row.low, row.high)}"
    else:
        found = _carried_over(row, answers, pair)
        if found.value is None or found.interval is None:
            return Gate(RATE, name, False, f"cannot be decided for other answers than those certified: {found.note}")
        low = found.interval.low
        shown = _shown(found.value, low, found.interval.high)
        text = f"other answers, corrected by sensitivity and specificity of {row.labels} labels: {shown}"
    return Gate(RATE, name, low >= least - SLACK, f"{text}; at least {least:.1%} required for the lower limit")


def _carried_over(row: Certified, answers: Iterable[Answer], pair: tuple[str, str]) -> Estimate:
    """The judge's rate of these answers, corrected by what labels of other answers have found."""
    from karenina_runs.summaries.intervals import Estimate

    from ..estimators import rogan_gladen_of
    from ..labels.answers import VERDICT, judged_value

    own = [(a.question_id, a.judged[pair[1]]) for a in answers if a.model == pair[0] and pair[1] in a.judged]
    said = [(name, value) for name, found in own if isinstance(value := judged_value(found, VERDICT), float)]
    if row.classes is None or not said:
        note = "labels say nothing of sensitivity and specificity in general" if said else "there is no verdict"
        return Estimate(value=None, n=len(said), method="rogan-gladen", note=note)
    rate = sum(value for _, value in said) / len(said)
    share = row.questions / row.labels  # answers to one question count once
    found = evolve(
        row.classes, positives=int(row.classes.positives * share), negatives=int(row.classes.negatives * share)
    )
    return rogan_gladen_of(rate, len({name for name, _ in said}), found)


def _shown(value: float, low: float, high: float) -> str:
    return f"{value:.1%} ({low:.1%} to {high:.1%})"
