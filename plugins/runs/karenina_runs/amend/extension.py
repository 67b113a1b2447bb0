"""Extending a finished run: more questions, models, judges, repetitions or traits, and nothing is paid for twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen

from karenina_core.errors import ConfigError, Problem, did_you_mean, plural
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

from ..answers.answers import ReplayStore
from ..config.config_file import RunConfig
from ..execute.control import RunControl
from ..execute.runner import Destination, execute
from ..folder.directory import answers_of_run, read_manifest
from ..folder.reuse import followed
from ..folder.status import resume_command, standing
from ..journal.reader import journal_of
from ..plan.items import Prepared
from ..plan.prepare import prepare
from ..results.results import VerificationResultSet
from ..resume import Changed, benchmark_of, configured_by, source_of
from .extension_checks import Prior, added_traits, changes, check_folders, fingerprints, prior_of
from .extension_plans import scoring_of
from .extension_rows import Extension
from .extension_scan import Found, scan

__all__ = ["Extending", "Wanted", "aextend_run", "extend_run", "extending"]

ALL: Literal["all"] = "all"


@frozen(kw_only=True)
class Wanted:
    """What the run that extends another one is to be."""

    run_dir: Path
    benchmark: BenchmarkData | None = None
    """None: that of the finished run, read from its file again."""
    source: Path | None = None
    """The file of `benchmark`."""
    questions: Callable[[Sequence[str]], Sequence[str]] = lambda ids: ()
    """Which of the benchmark's questions are added."""
    ask_missing: bool = False
    """Whether models are asked for answers that those do not have which the finished run was given."""
    sinks: Sequence[str] = ()


@frozen(kw_only=True)
class Extending:
    """A run that extends another one and has passed every check."""

    prepared: Prepared
    destination: Destination
    found: Found
    """What is taken over."""
    traits: Sequence[str]
    """Names of the traits that results which are taken over get."""
    missing: Sequence[str] = ()
    """What will be paid for once more, for the user to read before anybody is asked."""

    @property
    def directory(self) -> Path:
        assert self.destination.run_dir is not None  # every extension has one
        return self.destination.run_dir

    async def carry_out(
        self,
        *,
        on_result: Callable[[VerificationResult], None] | None = None,
        control: RunControl | None = None,
    ) -> VerificationResultSet:
        """The results of the whole run. Raises what `execute` does."""
        return await execute(self.prepared, self.destination, on_result=on_result, control=control)


def extending(folder: Path, configured: Callable[[Mapping[str, Any]], RunConfig], wanted: Wanted) -> Extending:
    """Check everything that can be checked before a model is called. `configured` gets the manifest.

    Raises Changed with everything that affects the results which are there and is not as it was, ConfigError where the
    run is not finished or nothing is added, and what `prepare` raises.
    """
    manifest = read_manifest(folder)
    _check_finished(folder, manifest)
    made = configured(manifest)
    prepared = _prepared(folder, manifest, made, wanted)
    before, now = fingerprints(folder, prepared)
    prior = prior_of(manifest, before)
    if lines := [*changes(before, now), *_fewer(prior, prepared)]:
        raise Changed([Problem("", line) for line in lines])
    rubrics = added_traits(before, now, prepared)
    check_folders(prepared, prior, rubrics)
    scoring = scoring_of(made.app, rubrics)
    found = scan(folder, prepared, prior, rubrics)
    if len(prepared) == found.rows and not rubrics:
        raise ConfigError(_nothing(folder, prepared))
    reuse = followed((folder.absolute(),))
    return Extending(
        prepared=evolve(prepared, notes=(*prepared.notes, *found.notes, *reuse.missing)),
        destination=Destination(
            run_dir=wanted.run_dir,
            sinks=wanted.sinks,
            source=wanted.source or (source_of(manifest) if wanted.benchmark is None else None),
            reuse=reuse.there,
            continuation=Extension(folder=folder.absolute(), run_id=manifest["run_id"], prior=prior, scoring=scoring),
        ),
        found=found,
        traits=scoring.traits,
        missing=reuse.missing,
    )


def _check_finished(folder: Path, manifest: Mapping[str, Any]) -> None:
    if manifest.get("status") != "completed" or not journal_of(folder).is_file():
        found = standing(folder)
        what = f"the run in {folder} is not finished ({found.state}); finish it first: {resume_command(found, folder)}"
        raise ConfigError(what)


def _prepared(folder: Path, manifest: Mapping[str, Any], made: RunConfig, wanted: Wanted) -> Prepared:
    """The whole run: the questions that were there, and those that are added."""
    root = manifest.get("workspace_root")
    benchmark = wanted.benchmark or benchmark_of(manifest, made.app, folder, call="extend_run")
    ids = [question.id for question in benchmark.questions]
    there = [name for name in manifest["questions"] if name in set(ids)]
    if not there:
        raise ConfigError([Problem("questions", "none of the run's questions is in the benchmark any more")])
    return prepare(
        benchmark,
        made.config,
        app=made.app,
        question_ids=list(dict.fromkeys((*there, *wanted.questions(ids)))),
        run_name=manifest["run_name"],
        workspace_root=Path(root) if root else None,
        answers=_answers(folder, manifest, wanted),
    )


def _answers(folder: Path, manifest: Mapping[str, Any], wanted: Wanted) -> ReplayStore | None:
    """Those that the finished run was given. Raises ConfigError."""
    answers = answers_of_run(folder, manifest)
    if answers is None:
        if wanted.ask_missing:
            what = "says how answers are used that a run was given, and this one was given none; leave it out"
            raise ConfigError([Problem("--ask-missing", what)])
        return None
    if wanted.ask_missing or answers.miss_policy == "leave_out":  # what is there already cannot be left out again
        answers.miss_policy = "fall_through" if wanted.ask_missing else "strict"
    return answers


def _fewer(prior: Prior, prepared: Prepared) -> list[str]:
    count = prepared.config.replicate_count
    if count >= prior.replicates:
        return []
    return [f"the setting replicate_count was {prior.replicates} and is {count}; it may only grow"]


def _nothing(folder: Path, prepared: Prepared) -> str:
    """What to say where there is nothing to do."""
    run = {question.id for question in prepared.questions}
    more = sum(question.id not in run for question in prepared.benchmark.questions)
    left = (
        f"; the benchmark has {plural(more, 'question')} that the run does not have (--questions all)" if more else ""
    )
    return (
        f"nothing is added to the run in {folder}: give more questions, models, judges or replicates, or a benchmark "
        f"with more traits{left}"
    )


def _chosen(questions: Sequence[str] | Literal["all"]) -> Callable[[Sequence[str]], Sequence[str]]:
    def choose(ids: Sequence[str]) -> Sequence[str]:
        if questions == ALL:
            return ids
        chosen = [questions] if isinstance(questions, str) else questions
        unknown = [name for name in chosen if name not in ids]
        if unknown:
            raise ConfigError(
                [Problem("questions", f"there is no question {name!r}{did_you_mean(name, ids)}") for name in unknown]
            )
        return chosen

    return choose


async def aextend_run(
    finished: str | Path,
    *,
    run_dir: str | Path,
    benchmark: BenchmarkData | None = None,
    config: VerificationConfig | None = None,
    questions: Sequence[str] | Literal["all"] = (),
    ask_missing: bool = False,
    sinks: Sequence[str] = (),
    app: Karenina | None = None,
    control: RunControl | None = None,
) -> VerificationResultSet:
    """Run what is added to a finished run, in a directory of its own that also has all results of the finished one.

    `config` describes the whole run: the models that were there, and more of them; at least as many replicates.
    `questions` are those of the benchmark that are added, or `all`. What is not given is as the manifest of the
    finished run says. Results that are there are taken over as they are: their answers are read by judges that are
    added, and are not made again; where their questions have more traits, they get the scores of these, and only these
    are asked for. Errors that may be gone are tried again. Where the finished run was given its answers and asked for
    none, `ask_missing` has the models asked for those that are added. The finished run is only read.

    Raises Changed (a ConfigError) where something that affects the results which are there is not as it was,
    ConfigError where nothing is added or the run is not finished, and what `Benchmark.arun_verification` raises; all of
    that before the first model call.
    """
    wanted = Wanted(
        run_dir=Path(run_dir),
        benchmark=benchmark,
        questions=_chosen(questions),
        ask_missing=ask_missing,
        sinks=sinks,
    )
    return await extending(Path(finished), configured_by(config, app), wanted).carry_out(control=control)


def extend_run(finished: str | Path, *, app: Karenina | None = None, **options: Any) -> VerificationResultSet:
    """The same for synchronous callers; works inside notebooks. See `aextend_run`."""
    return current(app).run(aextend_run(finished, app=app, **options))
