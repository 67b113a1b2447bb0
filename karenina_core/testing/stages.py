"""Does a stage keep the promises of its declaration?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ..errors import ContractError, KareninaError, one_line
from ..model.config import VerificationConfig
from ..pipeline.stage import Stage
from .apps import application
from .checks import Check, Fault, expecting, run_checks
from .compare import difference
from .examples import every, smallest
from .lines import file_of, line_of_attribute, line_of_error
from .probes import heavy_imports
from .stage_declarations import careless_check, declaration_fault, impure_condition
from .stage_examples import corners, stage_inputs
from .stage_inputs import StageInput
from .stage_outputs import missing_output, wrong_result_field
from .stage_trials import MOST_STEPS, MakeContext, Run, Trial, said_no, with_error, without_artifacts
from .strategies import verification_configs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["check_stage", "stage_checks"]


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
    made = _made(stage)
    inputs = stage_inputs(made, strategies, config)
    told = frozenset(map(str, strategies or ()))
    survey = _Survey(made, inputs, make_context or StageInput.context, max_examples, told)
    subject = f"stage {made.name}"
    checks = [
        Check(subject, "declaration", DECLARATION, partial(declaration_fault, made)),
        Check(subject, "included_when", INCLUDED_WHEN, partial(impure_condition, made, max_examples)),
        Check(subject, "check_config", CHECK_CONFIG, partial(_careless, made, config, max_examples)),
        *(Check(subject, name, promise, partial(survey.look, name)) for name, (promise, _) in PROMISES.items()),
        Check(subject, "light_import", LIGHT_IMPORT, partial(_heavy_import, made)),
    ]
    return expecting(checks, expected_failures)


def check_stage(stage: Any, **options: Any) -> None:
    """Run all checks of a stage; `options` are those of `stage_checks`. Raises an ExceptionGroup of all that fail."""
    run_checks(stage_checks(stage, **options))


def _made(stage: Any) -> Stage:
    if not isinstance(stage, type):
        made: Stage = stage
        return made
    try:
        return stage()  # type: ignore[no-any-return]  # any class may be given
    except TypeError as error:
        raise TypeError(
            f"{stage.__name__} cannot be made without arguments ({error}); give an instance of it"
        ) from error


class _Survey:
    """Random items are tried once, for all checks together; only a failure is looked for again, to make it small."""

    def __init__(
        self,
        stage: Stage,
        inputs: SearchStrategy[StageInput],
        make_context: MakeContext,
        max_examples: int,
        strategies: frozenset[str],
    ) -> None:
        self.stage = stage
        self._inputs = inputs
        self._make_context = make_context
        self._max_examples = max_examples
        self._strategies = strategies
        self._file = file_of(type(stage))

    @cached_property
    def trials(self) -> list[Trial]:
        drawn = every(self._inputs, self._max_examples)
        return [self._trial(given) for given in (*drawn, *corners(drawn, self._strategies))]

    def look(self, name: str) -> Fault | None:
        """The fault of one check on the simplest item that shows it."""
        if name == "reached":
            return _unreached(self.trials)
        fault_of = PROMISES[name][1]
        for trial in self.trials:
            if (fault := fault_of(trial)) is not None:
                found = smallest(self._inputs, lambda given: self._fault(name, given) is not None, trial.given)
                fault, given = (self._fault(name, found) or fault), found
                return evolve(fault, problem=f"{fault.problem}\n  with {given}")
        return None

    def _fault(self, name: str, given: StageInput) -> Fault | None:
        return PROMISES[name][1](self._trial(given))

    def _trial(self, given: StageInput) -> Trial:
        return Trial(self.stage, given, self._make_context, self._file)


def _unreached(trials: list[Trial]) -> Fault | None:
    """Whether the other checks had anything to look at. What has a fault of its own is theirs to report."""
    if any(trial.first.finished or trial.first.context.breaches or _crashed(trial) for trial in trials):
        return None
    reasons = dict.fromkeys(_why_not(trial.first) for trial in trials)
    return Fault(
        f"of {len(trials)} items none ran to the end ({'; '.join(list(reasons)[:3])}), so nothing else was checked",
        line_of_attribute(type(trials[0].stage), "should_run"),
        "say what its artifacts look like with strategies={key: strategy}, or make contexts that suit it with "
        "make_context=lambda given: given.context(...)",
    )


def _why_not(run: Run) -> str:
    if run.error is not None:
        return one_line(run.error, 120)
    return run.context.error or str(getattr(run.answer, "reason", "should_run said no"))


def _breach(name: str, trial: Trial) -> Fault | None:
    for breach in trial.first.context.breaches:
        if breach.check == name:
            return Fault(breach.message, breach.line)
    return None


def _incomplete(trial: Trial) -> Fault | None:
    run = trial.first
    missing = missing_output(trial.stage, run.context) if run.finished else None
    if missing is None:
        return None
    return Fault(
        f"execute ended without an error and without {missing!r}, which is in produces",
        trial.last_line or line_of_attribute(type(trial.stage), "execute"),
        f"write {missing!r} on every path, None where its type allows it, or report the failure with mark_error",
    )


def _mistyped(trial: Trial) -> Fault | None:
    if breach := _breach("typed_output", trial):
        return breach
    wrong = wrong_result_field(trial.stage, trial.first.context)
    return Fault(wrong, line_of_attribute(type(trial.stage), "execute")) if wrong else None


def _spoiled(trial: Trial) -> Fault | None:
    if trial.spoiled is None:
        return None
    return Fault(
        f"execute changed what it was given: {trial.spoiled}",
        trial.spoiling_line or line_of_attribute(type(trial.stage), "execute"),
        "copy a value before changing it: other stages and other items share it",
    )


def _unrepeatable(trial: Trial) -> Fault | None:
    if trial.spoiled is not None or trial.first.asking:
        return None
    differs = difference(trial.first.outcome, trial.second.outcome)
    if differs is None:
        return None
    return Fault(
        f"run twice on equal items, it did two things: {differs}",
        line_of_attribute(type(trial.stage), "execute"),
        "depend on the context alone: no clock, no random numbers, no state kept on the stage between items",
    )


def _crashed(trial: Trial) -> Fault | None:
    error = trial.first.error
    if error is None or isinstance(error, KareninaError) or trial.first.context.breaches:
        return None
    where = "should_run" if trial.first.asking else "execute"
    return Fault(
        f"{where} raised {one_line(error)}",
        line_of_error(error, file_of(type(trial.stage))) or line_of_attribute(type(trial.stage), where),
        "handle this input; what cannot be handled is reported with context.mark_error(...) or a KareninaError",
        error,
    )


def _uncancellable(trial: Trial) -> Fault | None:
    if trial.stage.blocking or not trial.first.finished or trial.spoiled is not None:
        return None
    if difference(trial.first.outcome, trial.second.outcome) is not None:
        return None  # not repeatable: a run after a cancelled one can be compared with nothing
    steps = 0
    while steps < MOST_STEPS and (cancelled := trial.cancelled(steps + 1)) is not None:
        steps += 1
        if cancelled.how:
            return Fault(
                f"cancelled while it was waiting, {cancelled.how}",
                cancelled.line or line_of_attribute(type(trial.stage), "execute"),
                "let asyncio.CancelledError through: clean up in finally, and re-raise what an except clause catches",
            )
    differs = difference(trial.second.outcome, trial.rerun.outcome) if steps else None
    if differs is None:
        return None
    return Fault(
        f"after a cancelled run, a new run on an equal item did something else: {differs}",
        line_of_attribute(type(trial.stage), "execute"),
        "keep nothing of an item on the stage, or put it back in finally",
    )


def _eager(trial: Trial) -> Fault | None:
    """What is wrong with should_run: before an error, after one, and where artifacts are missing."""
    final = trial.stage.final
    for given in (trial.given, with_error(trial.given), without_artifacts(trial.given)):
        try:
            answer, changed, context = trial.asked(given)
        except ContractError:
            continue  # the check of declared reads says so
        except Exception as error:  # whatever a stranger's stage raises is what is looked for
            line = line_of_error(error, file_of(type(trial.stage)))
            return Fault(f"should_run raised {one_line(error)}", line, ASK_BEFORE_USE, error)
        line = line_of_attribute(type(trial.stage), "should_run")
        if changed is not None:
            return Fault(f"asking should_run changed something: {changed}", line, "let should_run only read")
        if answer is not True and not said_no(answer):
            return Fault(f"should_run answered {answer!r}", line, "return True, False or Skip('why')")
        if final != bool(answer) and (final or context.error is not None):
            return Fault(*_wrong_after_error(final, answer, line))
    return None


def _wrong_after_error(final: bool, answer: object, line: str) -> tuple[str, str, str]:
    if final:
        return f"a final stage must always run, but should_run answered {answer!r}", line, "return True in should_run"
    return (
        "an error was set, and should_run answered True",
        line,
        "begin should_run with `allowed = super().should_run(context)` and return it where it is false",
    )


def _careless(stage: Stage, config: VerificationConfig | None, max_examples: int) -> Fault | None:
    drawn = [config] if config else every(verification_configs(with_models=False), min(max_examples, 20))
    return careless_check(stage, application(installed=True), drawn)


def _heavy_import(stage: Stage) -> Fault | None:
    for what, line in heavy_imports(type(stage).__module__, file_of(type(stage))).items():
        return Fault(f"importing its module {what}", line, "do it inside the function that needs it")
    return None


DECLARATION = "Its declaration is complete: a name, typed keys, known result fields."
CHECK_CONFIG = "check_config reports problems, and nothing else."
INCLUDED_WHEN = "included_when is a pure function of the plan request."
LIGHT_IMPORT = "Importing its module loads nothing heavy and does nothing."
ASK_BEFORE_USE = "ask context.has_artifact(key) before using an artifact: an earlier stage may have been skipped"
PROMISES: Mapping[str, tuple[str, Callable[[Trial], Fault | None]]] = {
    "reached": ("It runs to the end for some ordinary items.", lambda trial: None),
    "declared_reads": ("It reads only artifacts that it declares.", partial(_breach, "declared_reads")),
    "declared_writes": ("It writes only what it declares.", partial(_breach, "declared_writes")),
    "verdict_recorded": ("It records effects and never writes a verdict.", partial(_breach, "verdict_recorded")),
    "written_once": ("It writes every artifact and result field once.", partial(_breach, "written_once")),
    "complete_output": ("It writes everything that it produces, unless it reports an error.", _incomplete),
    "typed_output": ("What it writes has the types that are declared.", _mistyped),
    "inputs_untouched": ("It leaves what it is given as it was.", _spoiled),
    "repeatable": ("Equal items get equal output.", _unrepeatable),
    "odd_input": ("Odd but valid input is no reason to crash.", _crashed),
    "cancellation": ("A cancelled run ends at once and leaves nothing behind.", _uncancellable),
    "should_run": ("After an error it does not want to run, and asking changes nothing.", _eager),
}
