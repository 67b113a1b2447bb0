"""Resuming a run that was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

from .benchmark import Benchmark
from .config.config_file import Flags, RunConfig
from .config.saved_config import rebuilt
from .execute.continuation import RETRYABLE, Continuation, begun, is_final, settings_of, write_missing_results
from .execute.control import RunControl, synchronous
from .execute.runner import Destination, execute
from .folder.directory import RunDirectory, answers_of_run, read_fingerprint, read_manifest
from .folder.fingerprint import Changed, differences
from .folder.reuse import followed, reused_by, without
from .folder.status import fork_command, read_status
from .journal.reader import JournalReader, journal_of
from .plan.items import Prepared
from .plan.prepare import prepare
from .results.results import VerificationResultSet
from .summaries.canaries import canaries_in, is_complete


class _Every(frozenset[str]):
    """All kinds of errors, those of plugins included."""

    def __contains__(self, _: object) -> bool:
        return True


EVERY = _Every()
CUT_SHORT = frozenset({"budget", "cancelled"})
"""Kinds of errors of items that were cut short because the run ended."""


@frozen(kw_only=True)
class Resumption:
    """A run that has passed every check and can be resumed."""

    prepared: Prepared
    destination: Destination
    items: int
    done: int = 0
    """Items whose results are final."""
    errors: int = 0
    """Those of them that are errors."""
    completed: bool = False
    """Whether the run has ended already, and nothing is to be tried again."""
    missing: Sequence[str] = ()
    """What will be paid for once more, for the user to read before the first call."""

    @property
    def directory(self) -> Path:
        assert self.destination.run_dir is not None  # every resumption has one
        return self.destination.run_dir

    async def carry_out(
        self,
        *,
        on_result: Callable[[VerificationResult], None] | None = None,
        control: RunControl | None = None,
    ) -> VerificationResultSet:
        """The results of the whole run. Raises what `execute` does."""
        if self.completed:
            await asyncio.to_thread(write_missing_results, self.directory)
            return VerificationResultSet.load(self.directory, self.prepared.app)
        try:
            results = await execute(self.prepared, self.destination, on_result=on_result, control=control)
        except Exception:
            self.destination.continuation.failed(self.directory)
            raise
        self.destination.continuation.ended(self.directory)
        return results


@frozen(kw_only=True)
class Wanted:
    """What is asked for beside the run directory."""

    benchmark: BenchmarkData | None = None
    source: Path | None = None
    """The benchmark's file. None for both: it is read from where it was when the run began."""
    fork: Path | None = None
    retry_failed: bool = False
    sinks: Sequence[str] | None = None
    """None: those with which the run began."""
    reuses: bool = True
    """Whether the replies of other runs are taken that the run was given."""
    asked_again: frozenset[tuple[str, str, int]] = frozenset()
    """Answers that are generated although the run was given them; see `ReplayStore`."""


def resumption(
    folder: Path, configured: RunConfig | Callable[[Mapping[str, Any]], RunConfig], wanted: Wanted | None = None
) -> Resumption:
    """Check whether a run can be resumed. `configured` gets the manifest.

    Raises Changed with everything that affects the numbers and has changed, and what `prepare` raises.
    """
    wanted = wanted or Wanted()
    manifest = read_manifest(folder)
    there = begun(folder, manifest) if wanted.fork is None else []
    current_config = configured if isinstance(configured, RunConfig) else configured(settings_of(manifest, there))
    again = EVERY if wanted.retry_failed else RETRYABLE
    prepared = _prepared(manifest, current_config, wanted, folder)
    sinks = _sinks(manifest, wanted)
    source = wanted.source or source_of(manifest)
    if wanted.benchmark is not None:
        source = getattr(wanted.benchmark, "source", None)
        source = source if source is not None and source.is_file() else None
    if wanted.fork is not None:
        forked_from = {"run_dir": str(folder.absolute()), "run_id": manifest["run_id"]}
        forked_from |= {"retry_failed": True} if wanted.retry_failed else {}
        reuse, missing = followed((folder,))
        destination = Destination(
            run_dir=wanted.fork,
            sinks=sinks,
            source=source,
            reuse=reuse,
            judged_again=wanted.retry_failed,
            forked_from=forked_from,
        )
        prepared = evolve(prepared, notes=(*prepared.notes, *missing))
        return Resumption(prepared=prepared, destination=destination, items=len(prepared), missing=missing)
    if lines := changes(folder, manifest, prepared):
        raise Changed([Problem("", line) for line in lines])
    done, errors, made = _progress(folder, again, there)
    replaces = any(continuation.replaces for continuation in there)
    completed = manifest.get("status") == "completed" and done == len(prepared) and not replaces
    completed = completed and (not prepared.config.canaries or is_complete(canaries_in(manifest)))
    needs_others = wanted.reuses and not completed and not replaces
    continuation = Continuation(reopens=True, again=again)
    for one in there:
        continuation = one.resumed(prepared, continuation)
    reuse, missing = _reused(manifest, folder, made) if needs_others else ((), ())
    return Resumption(
        prepared=evolve(prepared, notes=(*prepared.notes, *missing)),
        destination=Destination(
            run_dir=folder,
            sinks=sinks,
            source=source,
            reuse=reuse,
            judged_again=wanted.retry_failed or bool((manifest.get("forked_from") or {}).get("retry_failed")),
            continuation=continuation,
        ),
        items=len(prepared),
        done=done,
        errors=errors,
        completed=completed,
        missing=missing,
    )


def changes(folder: Path, manifest: Mapping[str, Any], prepared: Prepared) -> list[str]:
    """Everything that affects the numbers of a run and has changed, one line each. Raises ConfigError."""
    before = read_fingerprint(folder)
    now = RunDirectory(folder, prepared).fingerprint(prepared)
    found = differences(before, now)
    count, config = manifest["config"]["replicate_count"], prepared.config
    if config.replicate_count != count:
        found.append(f"the setting replicate_count was {count} and is {config.replicate_count}")
    if found:
        return found
    old, new = (
        [list(side["questions"]), list(side["models"]["answering"]), list(side["models"]["parsing"])]
        for side in (before, now)
    )
    return ["questions or models are in another order"] if old != new else []


def _prepared(manifest: Mapping[str, Any], made: RunConfig, wanted: Wanted, folder: Path) -> Prepared:
    """The run as it is now: the questions that were there, by another name where it is another run."""
    root, answers = manifest.get("workspace_root"), answers_of_run(folder, manifest)
    if answers is not None:
        answers.asked_again |= wanted.asked_again
    benchmark = wanted.benchmark or benchmark_of(manifest, made.app, folder, file=wanted.source)
    known = {question.id for question in benchmark.questions}
    listed = [*manifest["questions"], *(row["question_id"] for row in manifest["left_out"])]
    if not (there := [name for name in listed if name in known]):
        raise ConfigError([Problem("questions", "none of the run's questions is in the benchmark now")])
    return prepare(
        benchmark,
        made.config,
        app=made.app,
        question_ids=there,
        run_name=manifest["run_name"] if wanted.fork is None else None,
        workspace_root=Path(root) if root else None,
        answers=answers,
    )


def benchmark_of(
    manifest: Mapping[str, Any], app: Karenina, folder: Path, *, file: Path | None = None, call: str = "resume_run"
) -> Benchmark:
    """The benchmark of a run, read again, from another `file` where one is given. Raises ConfigError where it is in no
    file, with what to `call` instead."""
    source = file or source_of(manifest)
    instead = f"give it: --benchmark FILE, or from Python karenina_core.{call}({str(folder)!r}, benchmark=...)"
    if source is None:
        raise ConfigError(f"the benchmark of this run is not from a file; {instead}")
    if file is None and not source.exists():
        raise ConfigError(f"the benchmark of this run, {source}, no longer exists; put it back, or {instead}")
    return Benchmark.load(source, manifest.get("workspace_root"), app=app)


def source_of(manifest: Mapping[str, Any]) -> Path | None:
    """The benchmark's file."""
    path = manifest["benchmark"].get("path")
    return Path(path) if path else None


def _reused(manifest: Mapping[str, Any], folder: Path, made: int) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The directories that are there, and notes of those that are gone and not needed: every item was made to its end,
    or the results of the run that this one extends have been taken over.

    Raises ConfigError where another one is gone: nothing that was to be reused is paid for unnoticed.
    """
    there, gone = reused_by(manifest)
    extended = manifest.get("extends") or {}
    needed = [path for path in gone if str(path) != extended.get("run_dir")]
    if needed and made < manifest["items"]:
        line = fork_command(read_status(folder), folder)
        raise ConfigError(
            f"the run reuses replies of {', '.join(map(str, needed))}, which cannot be found; put it back, or start a "
            f"new run without it, which makes the calls that the existing runs lack: {line}"
        )
    return there, without(gone)


def _sinks(manifest: Mapping[str, Any], wanted: Wanted) -> Sequence[str]:
    """Raises ConfigError where a sink cannot be made again from what was written."""
    if wanted.sinks is not None:
        return wanted.sinks
    for row in manifest.get("not_written", ()):
        if row["path"] == "sinks":
            raise ConfigError([Problem("sinks", f"{row['hint']} (the run has: {', '.join(manifest['sinks'])})")])
    return tuple(manifest.get("sinks", ()))


def _progress(folder: Path, again: frozenset[str], there: Sequence[Continuation]) -> tuple[int, int, int]:
    """How many tasks of a journal have final results, how many of these are errors, and how many were not cut short."""
    if not journal_of(folder).is_file():
        return 0, 0, 0
    done = errors = made = 0
    with JournalReader.open(folder) as reader:
        replaced = set().union(*(continuation.remaining(reader) for continuation in there))
        for end in reader.ends():
            if end.task not in replaced:
                done += (final := is_final(end, again))
                errors += final and end.outcome == "error"
                made += final or (end.detail or "") not in CUT_SHORT
    return done, errors, made


async def aresume_run(
    run_dir: str | Path,
    *,
    benchmark: BenchmarkData | None = None,
    config: VerificationConfig | None = None,
    app: Karenina | None = None,
    fork: str | Path | None = None,
    retry_failed: bool = False,
    sinks: Sequence[str] | None = None,
    control: RunControl | None = None,
) -> VerificationResultSet:
    """Resume the run in this directory: final results are kept, and what is missing or ended in an error that may be
    gone is made. The results are those of the whole run; of a run that is finished they are read.

    What is not given is as the run's manifest says: the benchmark is read from its file again, the configuration and
    the plugins are rebuilt. Keys, recorded answers and functions were not written: `config` gives them again.
    `retry_failed` also retries those errors that would come again. `fork` begins a new run in that directory, which
    asks only what this one has not asked. Raises ConfigError where something is missing, Changed where something
    that affects the numbers changed, and what `Benchmark.arun_verification` raises.
    """
    wanted = Wanted(benchmark=benchmark, fork=Path(fork) if fork else None, retry_failed=retry_failed, sinks=sinks)
    return await resumption(Path(run_dir), configured_by(config, app), wanted).carry_out(control=control)


def configured_by(config: VerificationConfig | None, app: Karenina | None) -> Callable[[Mapping[str, Any]], RunConfig]:
    """The configuration and the application for a manifest: those that are given, else its own."""

    def configured(manifest: Mapping[str, Any]) -> RunConfig:
        if config is not None:
            return RunConfig(app=current(app), config=config)
        return rebuilt(manifest, None, (), Flags(), app)

    return configured


resume_run = synchronous(aresume_run)
