"""Extending a finished run: more questions, models, judges, repetitions or traits, and nothing is paid for twice.

On the command line models are added by their names and by flags.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any, Literal

from attrs import define, evolve, frozen
from karenina_calls.records.manual import MANUAL
from karenina_vocabulary.rubric_part import read_traits

from karenina_core.errors import ConfigError, Problem, did_you_mean, plural
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.rubric import Rubric

from ..config.config_file import Flags, RunConfig, merged, read_layer, settings_layer
from ..config.config_models import ModelFlags
from ..config.saved_config import rebuilt
from ..execute.continuation import RETRYABLE, is_final, read_back
from ..execute.control import RunControl
from ..execute.runner import Destination
from ..folder.directory import answers_of_run, read_manifest
from ..folder.fingerprint import Changed
from ..folder.reuse import followed
from ..folder.status import read_status, resume_command
from ..journal.reader import JournalReader, journal_of
from ..plan.items import Prepared
from ..plan.prepare import prepare
from ..results.results import VerificationResultSet
from ..resume import Resumption, benchmark_of, configured_by, source_of
from .extension_checks import Prior, added_traits, changes, check_folders, fingerprints, prior_of
from .extension_rows import Extension, is_scorable, prior_items, scoring_of

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


@define
class Found:
    """The results of a finished run, counted."""

    rows: int = 0
    again: int = 0
    """Those that are tried again."""
    scored: int = 0
    """Those that get the scores of more traits."""
    errors: int = 0
    """Errors among the others."""
    unanswered: int = 0
    """Answers that failed for good, and that judges which are added ask for again."""

    @property
    def done(self) -> int:
        """Those that are taken over as they are."""
        return self.rows - self.again - self.scored

    @property
    def notes(self) -> list[str]:
        if not self.unanswered:
            return []
        what = "failed with a permanent error in the extended run; they are requested again for the added judges"
        return [f"{plural(self.unanswered, 'answer')} {what}"]


@frozen(kw_only=True)
class Extending(Resumption):
    """A run that extends another one and has passed every check."""

    found: Found
    """What is taken over."""
    traits: Sequence[str]
    """Names of the traits that results which are taken over get."""


def extending(folder: Path, configured: Callable[[Mapping[str, Any]], RunConfig], wanted: Wanted) -> Extending:
    """Check everything that can be checked before a model is called. `configured` gets the manifest.

    Raises Changed with everything that affects the results which are there and is not as it was, ConfigError where the
    run is not finished or nothing is added, and what `prepare` raises.
    """
    manifest = read_manifest(folder)
    if manifest.get("status") != "completed" or not journal_of(folder).is_file():
        status = read_status(folder)
        line = resume_command(status, folder)
        raise ConfigError(f"the run in {folder} is not finished ({status.state}); finish it first: {line}")
    made = configured(manifest)
    prepared = _prepared(folder, manifest, made, wanted)
    before, now = fingerprints(folder, prepared)
    prior = prior_of(manifest, before)
    lines = changes(before, now)
    if (replicates := prepared.config.replicate_count) < prior.replicates:
        lines.append(f"the setting replicate_count was {prior.replicates} and is {replicates}; it may only grow")
    if lines:
        raise Changed([Problem("", line) for line in lines])
    rubrics = added_traits(before, now, prepared)
    check_folders(prepared, prior, rubrics)
    scoring = scoring_of(made.app, rubrics)
    found = _scan(folder, prepared, prior, rubrics)
    if len(prepared) == found.rows and not rubrics:
        run = {question.id for question in prepared.questions}
        more = sum(question.id not in run for question in prepared.benchmark.questions)
        left = f"; the benchmark has {plural(more, 'question')} that the run does not have (--questions all)"
        raise ConfigError(
            f"nothing is added to the run in {folder}: give more questions, models, judges or replicates, or a "
            f"benchmark with more traits{left if more else ''}"
        )
    reuse, missing = followed((folder.absolute(),))
    return Extending(
        prepared=evolve(prepared, notes=(*prepared.notes, *found.notes, *missing)),
        destination=Destination(
            run_dir=wanted.run_dir,
            sinks=wanted.sinks,
            source=wanted.source or (source_of(manifest) if wanted.benchmark is None else None),
            reuse=reuse,
            continuation=Extension(folder=folder.absolute(), run_id=manifest["run_id"], prior=prior, scoring=scoring),
        ),
        items=len(prepared),
        done=found.done,
        errors=found.errors,
        found=found,
        traits=scoring.traits,
        missing=missing,
    )


def _prepared(folder: Path, manifest: Mapping[str, Any], made: RunConfig, wanted: Wanted) -> Prepared:
    """The whole run: the questions that were there, and those that are added. Raises ConfigError."""
    root = manifest.get("workspace_root")
    benchmark = wanted.benchmark or benchmark_of(manifest, made.app, folder, call="extend_run")
    ids = [question.id for question in benchmark.questions]
    there = [name for name in manifest["questions"] if name in set(ids)]
    if not there:
        raise ConfigError([Problem("questions", "none of the run's questions is in the benchmark now")])
    answers = answers_of_run(folder, manifest)
    if answers is None and wanted.ask_missing:
        what = "applies to answers that a run was given, and this one was given none; leave it out"
        raise ConfigError([Problem("--ask-missing", what)])
    if answers is not None and (wanted.ask_missing or answers.miss_policy == "leave_out"):
        # what already exists cannot be left out again
        answers.miss_policy = "fall_through" if wanted.ask_missing else "strict"
    return prepare(
        benchmark,
        made.config,
        app=made.app,
        question_ids=list(dict.fromkeys((*there, *wanted.questions(ids)))),
        run_name=manifest["run_name"],
        workspace_root=Path(root) if root else None,
        answers=answers,
    )


def _scan(folder: Path, prepared: Prepared, prior: Prior, rubrics: Mapping[str, Rubric]) -> Found:
    """Look at every result of the finished run.

    Raises ConfigError where some are missing, are of another run, or have a score of one of these traits already.
    """
    more_judges = any(str(model.identity) not in prior.parsing for model in prepared.config.parsing_models)
    found, missing = Found(), list[str]()
    clashes: dict[str, str] = {}  # a question for every trait that a result has already
    items = groupby(prior_items(prepared, prior), lambda i: (i.question.id, str(i.answering.identity), i.replicate))
    with JournalReader.open(folder) as reader:
        ((there,),) = reader.query("SELECT COUNT(*) FROM results")
        if not there:
            raise ConfigError(f"the run in {folder} has no results to extend; start a new run")
        for (question, _, _), sharing in items:
            has_answer = not more_judges
            for item in sharing:
                if (end := reader.done(item.task.result_id(prepared.run_name))) is None:
                    missing.append(question)
                    continue
                found.rows += 1
                if not is_final(end, RETRYABLE):
                    found.again += 1
                    has_answer = True  # or will have one
                    continue
                looked_at = question in rubrics or (not has_answer and end.outcome == "error")
                stored = reader.result(end.task) if looked_at else None
                row = None if stored is None else read_back(stored)
                has_answer |= end.outcome != "error" or (row is not None and row.generation.has_answer)
                if row is not None and row.rubric is not None and question in rubrics:
                    had = {trait.name for trait in read_traits(row.rubric)}
                    for name in had.intersection(rubrics[question].names()):
                        clashes.setdefault(name, question)
                if stored is not None and question in rubrics and is_scorable(stored):
                    found.scored += 1
                else:
                    found.errors += end.outcome == "error"
            found.unanswered += not has_answer
        damaged = bool(reader.damaged["results"])
    if missing:
        what = f"of {plural(len(missing), 'item')} the run in {folder} has no result (first: question {missing[0]})"
        line = f"karenina {'doctor' if damaged else 'resume'} {shlex.quote(str(folder))}"
        raise ConfigError(f"{what}; fix that first: {line}")
    if strange := there - found.rows:
        what = f"{plural(strange, 'result')} in {folder} do not belong to the run {prepared.run_name!r}"
        raise ConfigError(f"{what}; results of several runs cannot be extended together")
    if clashes:
        raise ConfigError(
            Problem("rubric", f"results of question {at} have a trait {name!r} already; give the new one another name")
            for name, at in clashes.items()
        )
    return found


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
    are asked for. Transient errors are tried again. Where the finished run was given its answers and asked for
    none, `ask_missing` has the models asked for those that are added. The finished run is only read.

    Raises Changed (a ConfigError) where something that affects the results which are there is not as it was,
    ConfigError where nothing is added or the run is not finished, and what `Benchmark.arun_verification` raises; all of
    that before the first model call.
    """

    def chosen(ids: Sequence[str]) -> Sequence[str]:
        if questions == ALL:
            return ids
        names = [questions] if isinstance(questions, str) else questions
        unknown = [name for name in names if name not in ids]
        if unknown:
            raise ConfigError(
                [Problem("questions", f"there is no question {name!r}{did_you_mean(name, ids)}") for name in unknown]
            )
        return names

    wanted = Wanted(
        run_dir=Path(run_dir),
        benchmark=benchmark,
        questions=chosen,
        ask_missing=ask_missing,
        sinks=sinks,
    )
    return await extending(Path(finished), configured_by(config, app), wanted).carry_out(control=control)


def extend_run(finished: str | Path, *, app: Karenina | None = None, **options: Any) -> VerificationResultSet:
    """The same for synchronous callers; works inside notebooks. See `aextend_run`."""
    return current(app).run(aextend_run(finished, app=app, **options))


def rebuilt_with(manifest: Mapping[str, Any], path: Path | None, sets: Iterable[str], flags: Flags) -> RunConfig:
    """The configuration of a run with more models: those that `flags` name, in the way they say.

    A file or `--set` that lists models describes all of them, and those of the flags follow. Raises ConfigError like
    `rebuilt`, and where a model already exists.
    """
    sets = tuple(sets)
    given = merged(layer.table for layer in (*([read_layer(path)] if path else []), settings_layer(sets)))
    problems: list[Problem] = []
    config, tables = dict(manifest["config"]), dict(manifest["tables"])
    described = {name: table for name, table in given.get("models", {}).items() if isinstance(table, Mapping)}
    found: dict[str, Any] = {}
    for added in (flags.answering, flags.parsing):
        role = f"{added.role}_models"
        listed = given.get("run", {}).get(role, tables[added.role])
        there = dict(pair for name in tables for pair in zip(tables[name], config[f"{name}_models"], strict=True))
        more = _more(added, there, described, listed, problems)
        new = {name: table for name, table in more if table is not None}
        config[role] = [*config[role], *new.values()]
        tables[added.role] = [*tables[added.role], *new]
        found[added.role] = ModelFlags(role=added.role, models=(*listed, *(name for name, _ in more)) if more else ())
    if problems:
        raise ConfigError(problems)
    return rebuilt({**manifest, "config": config, "tables": tables}, path, sets, evolve(flags, **found))


def _more(
    added: ModelFlags,
    there: Mapping[str, Any],
    described: Mapping[str, Any],
    listed: Sequence[str],
    problems: list[Problem],
) -> list[tuple[str, dict[str, Any] | None]]:
    """The names of the models' tables, and those tables that there are not yet.

    `there` are the tables of the run, `described` those of a file and `--set`. A flag wins over these: where both have
    the same field of a model, it gets a table of another name.
    """
    fields, option = added.fields(), f"--{added.role}"
    if fields and not added.models:
        problems.append(Problem(f"{option}-*", f"there is no model to apply it to; name one with {option}-model"))
    if "api_key_env" in fields:  # the flag wins over a key that is there
        fields["endpoint_api_key"] = None
    taken = {*there, *(name for name, table in described.items() if fields.keys() & table.keys())}
    more: list[tuple[str, dict[str, Any] | None]] = []
    for name in added.models:
        if name in listed:
            problems.append(Problem(f"{option}-model", f"{name} is already in the run"))
        elif not fields and (name in there or name in described):
            more.append((name, None))
        else:
            table = {**there.get(name, {}), **described.get(name, {})}
            model_name = {} if table.get("interface") == MANUAL else {"model_name": name}
            names = (name if number == 1 else f"{name} ({number})" for number in count(1))
            free = next(other for other in names if other not in taken and other not in dict(more))
            more.append((free, {"id": name, **model_name, **table, **fields}))
    return more
