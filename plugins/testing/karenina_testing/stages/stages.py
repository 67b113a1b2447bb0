"""Does a stage keep the promises of its declaration?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve
from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core.errors import ConfigError, ContractError, KareninaError, one_line
from karenina_core.pipeline.artifact_keys import VERDICT_VIEWS
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.declaration import result_fields
from karenina_core.pipeline.stage import Skip, Stage
from karenina_core.values.config import VerificationConfig
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.result import all_parts

from ..checks import (
    Check,
    Fault,
    FindFaults,
    Promises,
    Raised,
    attempt,
    difference,
    expecting,
    first_fault,
    promise_checks,
    run_checks,
)
from ..examples import smallest
from ..watch.audit import heavy_imports
from ..watch.loops import in_loop
from ..watch.source_lines import file_of, line_of_attribute, line_of_error
from .cases import DECLARED, MOST_STEPS, MakeContext, Survey, Trial
from .examples import stage_inputs
from .inputs import StageInput

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
PLAIN = (*DECLARED, "light_import")
"""Checks that run the stage on nothing."""
ASK_BEFORE_USE = "ask context.has_artifact(key) before using an artifact: an earlier stage may have been skipped"


def missing_output(stage: Stage, context: VerificationContext) -> str | None:
    """The first key of `produces` that was not written. A view of the ledger is written by recording an effect."""
    for key in stage.produces:
        if key in VERDICT_VIEWS:
            verdict = context.verdict
            value = verdict.verdict if key == ArtifactKeys.VERIFY_RESULT else verdict.field
            if value is None:
                return str(key)
        elif key not in context._artifacts:
            return str(key)
    return None


def wrong_result_field(stage: Stage, context: VerificationContext) -> str | None:
    """The first of the stage's result fields whose value does not survive being written and read, and why."""
    for name in (*stage.result_fields, *stage.revises, *stage.extends):
        if name in context.result_fields and (problem := _unstorable(str(name), context.result_fields[name])):
            return f"the result cannot hold {str(name)!r}: {problem}"
    return None


def _unstorable(name: str, value: Any) -> str | None:
    part = all_parts().get(result_fields().get(name, ""))
    try:
        if part is None:
            json.dumps(unstructure(value), allow_nan=False)
            return None
        held = part(**{name: value})
        written = json.dumps(unstructure(held), allow_nan=False)
        read: Any = structure(json.loads(written), part)
    except ConfigError as error:
        return "; ".join(problem.message for problem in error.problems)
    except (TypeError, ValueError, RecursionError) as error:
        return one_line(error)
    same = json.dumps(unstructure(read), sort_keys=True) == json.dumps(json.loads(written), sort_keys=True)
    return None if same else f"{value!r} is read back as {getattr(read, name)!r}"


def stage_checks(
    stage: Any,
    *,
    strategies: Mapping[str, SearchStrategy[Any]] | None = None,
    config: VerificationConfig | None = None,
    make_context: MakeContext | None = None,
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int = 50,
) -> list[Check]:
    """One check for every promise of the stage contract.

    `stage` is a class, or an instance where the class needs settings. Items are made from what it declares:
    `strategies` says what an artifact, or a field of the result that an earlier stage sets, looks like
    (`{key: strategy}`), `config` fixes the configuration instead of varying it, `make_context` turns a `StageInput`
    into a context (`lambda given: given.context(app=my_app)`).
    `expected_failures` are `{name of a check: reason}`. Raises ValueError for names and keys that do not exist.
    """
    try:
        made: Stage = stage() if isinstance(stage, type) else stage
    except TypeError as error:
        problem = f"{stage.__name__} cannot be made without arguments ({error}); give an instance of it"
        raise TypeError(problem) from error
    inputs = stage_inputs(made, strategies, config)
    described = frozenset(map(str, strategies or ()))
    survey = Survey(made, inputs, make_context or StageInput.context, max_examples, described, config)
    checks = promise_checks(f"stage {made.name}", survey, PROMISES)
    checks = [c if c.name in PLAIN else evolve(c, prepare=inputs.validate) for c in checks]
    return expecting(checks, expected_failures)


def check_stage(stage: Any, **options: Any) -> None:
    """Run all checks of a stage; `options` are those of `stage_checks`. Raises an ExceptionGroup of all that fail."""
    run_checks(stage_checks(stage, **options))


def _on_items(find_faults: FindFaults[Trial], survey: Survey) -> Iterator[Fault]:
    """The fault on the simplest item that shows it."""
    for trial in survey.trials:
        if fault := first_fault(find_faults, trial):
            shows = lambda given: first_fault(find_faults, survey.trial(given)) is not None  # noqa: E731
            found = smallest(survey.inputs, shows, trial.given, key=survey.key)
            fault = first_fault(find_faults, survey.trial(found)) or fault
            yield evolve(fault, given=str(found))


PROMISES: Promises[Survey] = Promises(DECLARED)


@PROMISES.add("reached", "It runs to the end for some ordinary items.")
def _unreached(survey: Survey) -> Iterator[Fault]:
    """Whether the other checks had anything to look at. What has a fault of its own is theirs to report."""
    trials = survey.trials
    if any(trial.first.finished or trial.first.context.breaches or first_fault(_crashed, trial) for trial in trials):
        return
    runs = [trial.first for trial in trials]
    reasons = dict.fromkeys(
        one_line(run.error, 120)
        if run.error is not None
        else run.context.error or str(getattr(run.answer, "reason", "should_run answered no"))
        for run in runs
    )
    yield Fault(
        f"of {len(trials)} items none ran to the end ({'; '.join(list(reasons)[:3])}), so nothing else was checked",
        line_of_attribute(type(survey.stage), "should_run"),
        "describe its artifacts with strategies={key: strategy}, or make contexts that suit it with "
        "make_context=lambda given: given.context(...)",
    )


def _breach(name: str, trial: Trial) -> Iterator[Fault]:
    for breach in trial.first.context.breaches:
        if breach.check == name:
            yield Fault(breach.message, breach.line)


ON_ITEMS: Promises[Trial] = Promises()


@ON_ITEMS.add("complete_output", "It writes everything that it produces, unless it reports an error.")
def _incomplete(trial: Trial) -> Iterator[Fault]:
    run = trial.first
    if run.finished and (missing := missing_output(trial.stage, run.context)):
        problem = f"execute ended without an error and without {missing!r}, which is in produces"
        paths = f"write {missing!r} on every path, None where its type allows it"
        yield trial.fault(problem, f"{paths}, or report the failure with mark_error", line=trial.last_line)


@ON_ITEMS.add("typed_output", "What it writes has the types that are declared.")
def _mistyped(trial: Trial) -> Iterator[Fault]:
    yield from _breach("typed_output", trial)
    if wrong := wrong_result_field(trial.stage, trial.first.context):
        yield trial.fault(wrong)


@ON_ITEMS.add("inputs_untouched", "It leaves what it is given as it was.")
def _changed_input(trial: Trial) -> Iterator[Fault]:
    if trial.changed is not None:
        remedy = "copy a value before changing it: other stages and other items share it"
        yield trial.fault(f"execute changed what it was given: {trial.changed}", remedy, line=trial.changing_line)


@ON_ITEMS.add("repeatable", "Equal items get equal output.")
def _unrepeatable(trial: Trial) -> Iterator[Fault]:
    if trial.changed is not None or trial.first.asking:
        return
    if differs := difference(trial.first.outcome, trial.second.outcome):
        remedy = "depend on the context alone: no clock, no random numbers, no state kept on the stage between items"
        yield trial.fault(f"run twice on equal items, it did two things: {differs}", remedy)


@ON_ITEMS.add("odd_input", "Odd but valid input is no reason to crash.")
def _crashed(trial: Trial) -> Iterator[Fault]:
    error = trial.first.error
    if error is None or isinstance(error, KareninaError) or trial.first.context.breaches:
        return
    where = "should_run" if trial.first.asking else "execute"
    yield Fault(
        f"{where} raised {one_line(error)}",
        line_of_error(error, file_of(type(trial.stage))) or line_of_attribute(type(trial.stage), where),
        "handle this input; what cannot be handled is reported with context.mark_error(...) or a KareninaError",
        error,
    )


@ON_ITEMS.add("cancellation", "A cancelled run ends at once and leaves nothing behind.")
def _uncancellable(trial: Trial) -> Iterator[Fault]:
    if trial.stage.blocking or not trial.first.finished or trial.changed is not None:
        return
    if difference(trial.first.outcome, trial.second.outcome) is not None:
        return  # not repeatable: a run after a cancelled one can be compared with nothing
    steps = 0
    while steps < MOST_STEPS and (cancelled := in_loop(trial.cancelled(steps + 1))) is not None:
        steps += 1
        how, line = cancelled
        if how:
            remedy = "let asyncio.CancelledError through: clean up in finally, re-raise what an except clause catches"
            yield trial.fault(f"cancelled while it was waiting, {how}", remedy, line=line)
    if steps and (differs := difference(trial.second.outcome, trial.rerun.outcome)):
        problem = f"after a cancelled run, a new run on an equal item did something else: {differs}"
        yield trial.fault(problem, "keep nothing of an item on the stage, or put it back in finally")


@ON_ITEMS.add("should_run", "After an error it does not want to run, and asking changes nothing.")
def _eager(trial: Trial) -> Iterator[Fault]:
    """What is wrong with should_run: before an error, after one, and where artifacts are missing."""
    final, fault = trial.stage.final, partial(trial.fault, method="should_run")
    failed, bare = evolve(trial.given, error="the server is down"), evolve(trial.given, artifacts={}, result_fields={})
    for given in (trial.given, failed, bare):
        outcome = attempt(trial.asked, given)
        if isinstance(outcome, Raised):
            if not isinstance(outcome.error, ContractError):  # which the check of declared reads reports
                yield Fault.raised(outcome.error, ASK_BEFORE_USE, by="should_run", file=file_of(type(trial.stage)))
            continue
        answer, changed, context = outcome
        if changed is not None:
            yield fault(f"asking should_run changed something: {changed}", "let should_run only read")
        if answer is not True and answer is not False and not isinstance(answer, Skip):
            yield fault(f"should_run answered {answer!r}", "return True, False or Skip('why')")
        if final and not answer:
            problem = f"a final stage must always run, but should_run answered {answer!r}"
            yield fault(problem, "return True in should_run")
        if not final and answer and context.error is not None:
            remedy = "begin should_run with `allowed = super().should_run(context)` and return it where it is false"
            yield fault("an error was set, and should_run answered True", remedy)


@PROMISES.add("light_import", "Importing its module loads nothing heavy and does nothing.")
def _heavy_import(survey: Survey) -> Iterator[Fault]:
    for what, line in heavy_imports(type(survey.stage)).items():
        yield Fault(f"importing its module {what}", line, "do it inside the function that needs it")


ON_ITEMS |= {
    "declared_reads": ("It reads only artifacts that it declares.", partial(_breach, "declared_reads")),
    "declared_writes": ("It writes only what it declares.", partial(_breach, "declared_writes")),
    "verdict_recorded": ("It records effects and never writes a verdict.", partial(_breach, "verdict_recorded")),
    "written_once": ("It writes every artifact and result field once.", partial(_breach, "written_once")),
}
PROMISES |= {name: (promise, partial(_on_items, find_faults)) for name, (promise, find_faults) in ON_ITEMS.items()}
