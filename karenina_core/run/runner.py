"""A whole run: every item through its pipeline, every result to every sink."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from ..errors import ConfigError, Problem, one_line
from ..log import redactor
from ..model.identity import ModelIdentity
from ..model.result import VerificationResult
from ..pipeline.context import CachedAnswer
from ..ports.client import Model
from ..prompts.tasks import PromptTask
from .directory import RunDirectory, secrets_of_run
from .models import open_models
from .overrides import ModelPool, model_pool
from .prepare import Generation, Item, Prepared
from .results import VerificationResultSet
from .single import run_item
from .sinks import RunInfo, Sinks, make_sink, without_password
from .summary import summarize
from .workspace_sources import unkept_traces
from .workspaces import Workspace, Workspaces

__all__ = ["Destination", "execute"]


@frozen(kw_only=True)
class Destination:
    """Where a run's results go. Without a directory they are only returned."""

    run_dir: Path | None = None
    sinks: Sequence[str] = ()
    """`name:target` of sinks beside the run directory's own."""
    source: Path | None = None
    """The benchmark's file, for the manifest."""


@define(eq=False)
class _Running:
    """One run while it goes on."""

    prepared: Prepared
    answerers: Mapping[ModelIdentity, Model]
    judges: Mapping[ModelIdentity, Model]
    sinks: Sinks
    on_result: Callable[[VerificationResult], None] | None
    workspaces: Workspaces
    pool: ModelPool
    of_destination: Sequence[str] = ()
    """Notes on settings that have no effect with this destination."""
    results: list[VerificationResult] = field(factory=list)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the checks noticed, and what the tool servers did while the run went on."""
        remarks = (remark for model in self.answerers.values() for remark in model.remarks)
        return tuple(dict.fromkeys((*self.prepared.notes, *self.of_destination, *remarks)))

    async def generation(self, generation: Generation) -> None:
        """The items of one answer: the first generates it, the other judges read it."""
        cached: CachedAnswer | None = None
        workspace: Workspace | None = None
        async with AsyncExitStack() as opened:
            for item in generation.items:
                if cached is None:  # also where the answer before failed: the next one does not begin in its remains
                    await opened.aclose()
                    workspace = await opened.enter_async_context(self.workspaces.opened(item))
                files = self.workspaces.files_to_keep()
                result = await self._item(item, cached, workspace, files)
                cached = cached or _answer_of(result)
                await self._finished(result)  # before anything that takes long: what is paid for is not lost
                await self.workspaces.keep(workspace, item, result, files)

    async def _item(
        self, item: Item, cached: CachedAnswer | None, workspace: Workspace | None, files: dict[str, str] | None
    ) -> VerificationResult:
        return await run_item(
            item,
            app=self.prepared.app,
            config=self.prepared.config,
            mode=self.prepared.mode,
            answering=self.answerers[item.answering.identity],
            parsing=self.judges[item.parsing.identity],
            templates=self.prepared.templates,
            run_name=self.prepared.run_name,
            cached=cached,
            workspace=workspace,
            kept_files=files,
            pool=self.pool,
        )

    async def _finished(self, result: VerificationResult) -> None:
        self.results.append(result)
        await self.sinks.write(result)
        self.prepared.app.observe("karenina_item_finished", result=result)
        if self.on_result is not None:
            self.on_result(result)


async def execute(
    prepared: Prepared,
    destination: Destination | None = None,
    *,
    on_result: Callable[[VerificationResult], None] | None = None,
) -> VerificationResultSet:
    """Run everything. When it is cancelled, what is finished stays in the run directory, marked as interrupted.

    Raises ConfigError, RunDirectoryError and PluginError before the first call, where the results could not be kept or
    a model's adapter does not work; RunDirectoryError also later, when results can no longer be written to the run
    directory. What ends a run in several items at once, such as that or an error of `on_result`, is raised once, with
    what the others said as notes; errors of different types are raised together, as an ExceptionGroup.
    """
    destination = destination or Destination()
    app, config = prepared.app, prepared.config
    if config.workspace_output_mode != "none" and destination.run_dir is None:
        what = "workspaces are kept in the run directory, and there is none; give run_dir, or set it to none"
        raise ConfigError([Problem("workspace_output_mode", what)])
    async with (
        open_models(app, config, config.answering_models, "answering") as answerers,
        open_models(app, config, config.parsing_models) as judges,
        model_pool(app, config, judges.values()) as pool,
    ):
        uris = [*([] if destination.run_dir is None else ["jsonl"]), *destination.sinks]
        sinks = Sinks(
            {without_password(uri): make_sink(app, uri) for uri in uris},
            essential=None if destination.run_dir is None else "jsonl",
        )
        directory = None
        if destination.run_dir is not None:
            directory = RunDirectory.create(destination.run_dir, prepared, destination.source, answerers.values())
        workspaces = _workspaces(prepared, destination.run_dir)
        told = _of_destination(prepared, destination)
        run = _Running(prepared, answerers, judges, sinks, on_result, workspaces, pool, told)
        await _carry_out(run, directory)
    return VerificationResultSet(run.results, destination.run_dir, prepared.left_out, run.notes, dict(sinks.failures))


def _workspaces(prepared: Prepared, run_dir: Path | None) -> Workspaces:
    redact = redactor(secrets_of_run(prepared))
    root, name = prepared.workspace_root, prepared.run_name
    return Workspaces(root, prepared.config, name, run_dir, prepared.has_tools, redact)


def _of_destination(prepared: Prepared, destination: Destination) -> list[str]:
    if destination.run_dir is not None:
        return []
    questions, rubrics = prepared.questions, prepared.rubrics
    return unkept_traces(prepared.workspace_root, prepared.config, questions, rubrics, tools=prepared.uses_tools)


async def _carry_out(run: _Running, directory: RunDirectory | None) -> None:
    """Open the sinks, run every generation, and leave the run directory in a state that says how it ended."""
    app, prepared = run.prepared.app, run.prepared
    run_dir = directory.path if directory else None
    status = "failed"
    try:
        await run.sinks.open(_info(prepared, run_dir))
        app.observe("karenina_run_started", run=_started(prepared, run_dir))
        executor = app.executors.make(prepared.config.executor)
        await executor.execute(prepared.generations(), run.generation, concurrency=prepared.config.concurrency)
        status = "completed"
    except asyncio.CancelledError:
        status = "interrupted"
        raise
    except BaseExceptionGroup as group:
        error = _one_of(group)
        raise error from error.__cause__
    finally:
        run.workspaces.close()
        summary: dict[str, Any] = {}
        try:  # nothing that goes wrong here may keep the sinks open, or the run directory from saying how it ended
            summary = summarize(run.results, run_dir=run_dir, left_out=prepared.left_out, notes=run.notes)
        finally:
            try:
                await asyncio.shield(run.sinks.close(summary))
            finally:  # also when a second interrupt does not wait for the sinks
                _ended(run, directory, status, summary)


def _ended(run: _Running, directory: RunDirectory | None, status: str, summary: dict[str, Any]) -> None:
    """Observers hear of the end also where the run directory cannot be written."""
    try:
        if directory is not None:
            directory.update(status=status, summary=summary, sink_failures=run.sinks.failures)
    finally:
        run.prepared.app.observe("karenina_run_finished", summary=summary, status=status)


def _one_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of errors of one type, with the others as notes, however many items happened to meet it; else all.

    A full disk or a broken `on_result` fails each item that is at work at that moment: how many there are is chance.
    """
    first, *others = _leaves(group)
    if any(type(other) is not type(first) for other in others):
        return group
    for told in dict.fromkeys(one_line(other) for other in others):
        if told != one_line(first):
            first.add_note(f"and in another item: {told}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _answer_of(result: VerificationResult) -> CachedAnswer | None:
    """The answer of a finished item, for other judges; None where there is none worth sharing."""
    generation = result.generation
    if not generation.raw_llm_response:  # the messages of an agent that failed are no answer
        return None
    answer_calls = {task: row for task, row in generation.usage_metadata.items() if task == PromptTask.GENERATION}
    return CachedAnswer(
        raw_llm_response=generation.raw_llm_response,
        trace_messages=tuple(generation.trace_messages),
        recursion_limit_reached=generation.recursion_limit_reached,
        answering_mcp_servers=tuple(generation.answering_mcp_servers),
        usage_metadata=answer_calls,
        agent_metrics=generation.agent_metrics,
        conversation_context=tuple(generation.conversation_context),
        text_flags=tuple(generation.text_flags),
        usage_unavailable=generation.usage_unavailable,
        few_shot_example_count=result.metadata.few_shot_example_count,
    )


def _info(prepared: Prepared, run_dir: Path | None) -> RunInfo:
    return RunInfo(
        run_name=prepared.run_name,
        run_dir=run_dir,
        benchmark=prepared.benchmark.name,
        items=len(prepared),
        secrets=secrets_of_run(prepared),
    )


def _started(prepared: Prepared, run_dir: Path | None) -> dict[str, Any]:
    return {
        "run_name": prepared.run_name,
        "run_dir": str(run_dir) if run_dir else None,
        "benchmark": prepared.benchmark.name,
        "items": len(prepared),
    }
