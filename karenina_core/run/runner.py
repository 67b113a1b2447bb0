"""A whole run: every item through its pipeline, every result to every sink."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from attrs import define, field

from ..errors import ConfigError, Problem, plural
from ..model.identity import ModelIdentity
from ..model.result import VerificationResult
from ..pipeline.context import CachedAnswer
from ..ports.client import Model
from ..secrets import Secrets
from .answers import answer_of
from .batching import Batching, items_at_once, uncrowded
from .collecting import fewer_collections
from .continuing import UNFINISHED, going_on, is_blocked, is_left, picked_up
from .control import RunControl
from .destination import Destination, directory_of, keeper_of, notes_of, schedule_of, workspaces_of
from .directory import RESULTS, RunDirectory, secrets_of_run
from .ending import end
from .extension_merge import merged
from .extension_rows import Extension, PriorRows, opened_rows
from .gateway import Gateway
from .grouped_errors import one_of
from .idle_stages import IdleStages, watched_stages
from .items import Generation, Item, Prepared
from .journal_reader import Done
from .keeping import Keeper
from .kinds import ExecutorRegistry
from .metering import Metering
from .models import open_models
from .overrides import ModelPool, model_pool
from .replaying import judged_by_folder, replayed
from .results import VerificationResultSet
from .reuse import Sources, opened_sources
from .schedule import Schedule
from .single import run_item
from .sinks import RunInfo, Sinks, make_sink, without_password
from .stalls import stalls_told
from .stored_sequence import StoredSequence
from .summary import Tally
from .working import Working
from .workspaces import Workspace, Workspaces

__all__ = ["Destination", "execute"]

NO_DIRECTORY = "workspaces are kept in the run directory, and there is none; give run_dir, or set it to none"


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
    gateway: Gateway
    schedule: Schedule
    batching: Batching
    stages: IdleStages
    keeper: Keeper | None = None
    """Of the run directory."""
    of_destination: Sequence[str] = ()
    """Notes on settings that have no effect with this destination."""
    sources: Sources = field(factory=Sources)
    extends: Extension | None = None
    results: dict[int, VerificationResult] = field(factory=dict)
    """By their places in the plan; only where no run directory holds them: memory does not grow with one."""
    tally: Tally = field(init=False)
    working: Working = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.working = Working(items_at_once(self.prepared.config), self._next)
        self.tally = Tally(self.prepared.planned)

    stale: set[str] = field(factory=set)
    """Tasks whose results of before are to be replaced, and are not yet."""
    unscored: set[str] = field(factory=set)
    """Tasks whose results of the run that is extended are there, and get their scores when this run is gone on with."""
    in_doubt: list[tuple[Item, VerificationResult, list[Done]]] = field(factory=list)
    """Results that were being kept when the run was ended at once; those that are on the disk are told in the list."""
    unfinished: int = 0
    """Items that lack something because nothing may be asked any more, or a model of theirs is not."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the checks noticed, and what the tool servers did while the run went on."""
        remarks = (remark for model in self.answerers.values() for remark in model.remarks)
        kept = self.keeper.notes if self.keeper is not None else ()
        left = [*self.gateway.left_undone, *self.gateway.advice, *kept]
        if self.unfinished:
            left.insert(0, UNFINISHED.format(plural(self.unfinished, "item")))
        told = (*self.prepared.notes, *self.of_destination, *self.sources.notes, *remarks, *self.batching.notes, *left)
        return tuple(dict.fromkeys(told))

    @property
    def ledger(self) -> dict[str, Any] | None:
        """What the calls took; None where nothing keeps them."""
        return self.keeper.journal.ledger.to_dict() if self.keeper is not None else None

    def _next(self) -> Coroutine[Any, Any, None] | None:
        generation = next(self.schedule, None)
        return None if generation is None else self.generation(generation)

    async def generation(self, generation: Generation) -> None:
        """The items of one answer that have no result yet."""
        try:
            await self._generation(generation)
        finally:
            self.schedule.over(generation)

    async def _generation(self, generation: Generation) -> None:
        """The first item generates the answer; then the other judges read it, at the same time where they do not work
        in the folder that it has left."""
        waiting = [item for item in generation.items if not self._has_result(item)]
        waiting = await self._judged_again(waiting)
        cached = self._answer_of_before(generation, waiting) or replayed(self.prepared, generation)
        if cached is None and any(map(self._is_unscored, generation.items)):  # the answer is there: none is asked for
            self.unfinished += len(waiting)
            return
        async with AsyncExitStack() as opened:
            workspace: Workspace | None = None
            while waiting and (cached is None or workspace is not None):
                if cached is None:  # also where the answer before failed: the next one does not begin in its remains
                    if self._would_be_lost(waiting):
                        self.unfinished += len(waiting)
                        return
                    await opened.aclose()
                    workspace = await opened.enter_async_context(self.workspaces.opened(waiting[0]))
                result = await self._in_turn(waiting.pop(0), cached, workspace)
                cached = cached or answer_of(result)
            if waiting:
                async with asyncio.TaskGroup() as group:
                    for item in waiting:
                        group.create_task(self._in_turn(item, cached, None))

    def _has_result(self, item: Item) -> bool:
        return self.keeper is not None and (self.keeper.has_result(item) or self._is_unscored(item))

    def _is_unscored(self, item: Item) -> bool:
        return bool(self.unscored) and self.keeper is not None and self.keeper.task(item) in self.unscored

    def _would_be_lost(self, waiting: Sequence[Item]) -> bool:
        """Whether nothing keeps the answer of these items, while a judge of theirs is asked no more: what is done in a
        folder is done once more when the run is gone on with, and without a run directory nothing can be."""
        blocked = [is_blocked(item, self.gateway) for item in waiting]
        return all(blocked) if self.keeper is None else any(blocked) and self.workspaces.wanted(waiting[0])

    async def _judged_again(self, waiting: Sequence[Item]) -> list[Item]:
        """Have answers that stay read anew. Returns the other items."""
        keeper = self.keeper
        if keeper is None:
            return list(waiting)
        again = [item for item in waiting if keeper.is_repaired_by("replay", item)]
        async with asyncio.TaskGroup() as group:
            for item in again:
                group.create_task(self._in_turn(item, keeper.own_answer(item), None))
        return [item for item in waiting if item not in again]

    def _answer_of_before(self, generation: Generation, waiting: Sequence[Item]) -> CachedAnswer | None:
        """The answer that judges have read before the run was interrupted: the others read it as they would have then.
        Not where they work in the folder that it has left, which is gone."""
        first = generation.items[0]
        if self.keeper is None or not waiting:
            return None
        there = [item for item in generation.items if item not in waiting]
        if self.workspaces.wanted(first):
            if judged_by_folder(self.prepared, first):
                return None
            asked_for = [item for item in waiting if not self.keeper.is_repaired_by("live", item)]
            there += asked_for  # work that was done in a folder is asked for once, whatever became of its judges
        elif first in waiting and (self.extends is None or self.keeper.stored(first) is not None):
            return None  # it is made once more, of the calls that are paid for, and tells what it took
        stored = (self.keeper.stored(item) for item in there)
        return next((answer for result in stored if result is not None and (answer := answer_of(result))), None)

    async def _in_turn(
        self, item: Item, cached: CachedAnswer | None, workspace: Workspace | None
    ) -> VerificationResult:
        """Verify an item when there is a place for it, and keep what came of it."""
        async with self.working.place(), self.batching.item():
            files = self.workspaces.files_to_keep()
            result = await self._item(item, cached, workspace, files)
            if self.keeper is not None and is_left(result):
                self.unfinished += 1
                await asyncio.sleep(0)  # thousands may be refused at once: others have their turn
                return result
            await self._finished(item, result)  # before anything that takes long: what is paid for is not lost
            await self.workspaces.keep(workspace, item, result, files)
            return result

    async def scored(self, job: tuple[Item, VerificationResult]) -> None:
        """Have more traits of a result of the run that is extended scored, and keep the result with them."""
        item, row = job
        assert self.extends is not None  # nobody else has such results
        assert self.keeper is not None
        assert item.rubric is not None
        async with self.working.place(), self.batching.item():
            files = self.workspaces.files_to_keep()
            found = await self._item(item, answer_of(row), None, files)
            if is_left():
                self.unfinished += 1
                self.unscored.add(self.keeper.task(item))
                return
            result = merged(row, found, item.rubric.names(), self.extends.scoring.stages, self.prepared.mode)
            await self._finished(item, result)
            await self.workspaces.keep(None, item, result, files)

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
            stages=self.stages,
        )

    async def _finished(self, item: Item, result: VerificationResult) -> None:
        if self.keeper is not None:
            on_disk: list[Done] = []
            try:
                await self.keeper.keep(item, result, on_disk.append)
            except asyncio.CancelledError:
                self.in_doubt.append((item, result, on_disk))
                raise
            self.stale.discard(self.keeper.task(item))
        else:
            self.results[item.position] = result
        self.tally.add(result, item.position)
        await self.sinks.write(result)
        self.prepared.app.observe("karenina_item_finished", result=result)
        if self.on_result is not None:
            self.on_result(result)
        await asyncio.sleep(0)  # models that answer at once never let the loop have its turn: signals, timers, others

    def count_kept_late(self) -> bool:
        """Count what came to the disk when the run was ending. Returns whether anything did."""
        found = [(item, result, done) for item, result, kept in self.in_doubt for done in kept]
        for item, result, done in found:
            self.stale.discard(done.task)
            self.tally.add(result, item.position)
        return bool(found)


async def execute(
    prepared: Prepared,
    destination: Destination | None = None,
    *,
    on_result: Callable[[VerificationResult], None] | None = None,
    control: RunControl | None = None,
) -> VerificationResultSet:
    """Run everything. When it is cancelled, what is finished stays in the run directory, marked as interrupted.

    Raises ConfigError, RunDirectoryError and PluginError before the first call, where the results could not be kept or
    a model's adapter does not work; RunDirectoryError also later, when results can no longer be kept. What ends a run
    in several items at once, such as that or an error of `on_result`, is raised once, with what the others said as
    notes; errors of different types are raised together, as an ExceptionGroup.
    """
    destination, secrets = destination or Destination(), Secrets(secrets_of_run(prepared))
    app, config = prepared.app, prepared.config
    if config.workspace_output_mode != "none" and destination.run_dir is None:
        raise ConfigError([Problem("workspace_output_mode", NO_DIRECTORY)])
    batching = Batching(gateway := Gateway(uncrowded(config)))
    metering = Metering(gateway, batches=batching if destination.run_dir else None, app=app, secrets=secrets)
    async with (
        opened_sources(destination.reuse, destination.run_dir) as sources,
        open_models(app, config, config.answering_models, "answering", metering) as answerers,
        open_models(app, config, config.parsing_models, metering=metering) as judges,
        model_pool(app, config, judges.values(), metering) as pool,
        watched_stages(config, app) as stages,
        AsyncExitStack() as held,
    ):
        sinks = Sinks({without_password(uri): make_sink(app, uri) for uri in destination.sinks})
        directory = keeper = None
        if destination.run_dir is not None:
            directory = held.enter_context(directory_of(destination.run_dir, prepared, destination, answerers.values()))
            keeper = keeper_of(directory, prepared, sources, destination)
            held.callback(keeper.close)
            metering.keep_in(keeper.journal)
            batching.keep_in(keeper.journal)
        run = _Running(
            prepared,
            answerers,
            judges,
            sinks,
            on_result,
            workspaces_of(prepared, destination.run_dir),
            pool,
            gateway,
            schedule_of(prepared, keeper, gateway),
            batching,
            stages,
            keeper,
            notes_of(prepared, destination),
            sources,
            destination.extends,
        )
        prior = held.enter_context(opened_rows(destination.extends))
        await _carry_out(run, directory, control or RunControl(), prior, resumed=destination.again is not None)
    of_run = (destination.run_dir, prepared.left_out, run.notes, dict(sinks.failures), run.tally, run.ledger)
    made, kept = [run.results[place] for place in sorted(run.results)], destination.run_dir
    results = made if kept is None else StoredSequence(kept / RESULTS)
    return VerificationResultSet(results, *of_run, planned=prepared.planned)


async def _carry_out(
    run: _Running,
    directory: RunDirectory | None,
    control: RunControl,
    prior: PriorRows | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Open the sinks, run every generation, and leave the run directory in a state that says how it ended."""
    app, prepared = run.prepared.app, run.prepared
    run_dir = directory.path if directory else None
    status, failure = "failed", None
    try:
        continued = resumed or run.extends is not None
        await run.sinks.open(_info(prepared, run_dir, resumed=continued))
        if continued and directory is not None and run.keeper is not None:
            going_on(directory, run.keeper.repair, prepared)
            if prior is not None:
                await prior.take_over(run.keeper, prepared)
            run.stale |= await picked_up(run.keeper, run.gateway.budget, run.tally, run.sinks)
        app.observe("karenina_run_started", run=_started(prepared, run_dir))
        with fewer_collections(), stalls_told(partial(run.stages.running, asyncio.get_running_loop())):
            await control.until_drained(_work(run, directory, prior), run.gateway)
        unrepaired = run.keeper is not None and run.keeper.unrepaired
        status = "interrupted" if run.gateway.left_undone or unrepaired else "completed"
    except asyncio.CancelledError:
        status = "interrupted"
        raise
    except BaseExceptionGroup as group:
        failure = one_of(group)
        raise failure from failure.__cause__
    except BaseException as error:
        failure = error
        raise
    finally:
        await end(run, directory, status, failure)


async def _work(run: _Running, directory: RunDirectory | None, prior: PriorRows | None) -> None:
    """What is to be scored of results that were taken over, and then every generation that is not done."""
    config = run.prepared.config
    executor, together = run.prepared.app.registry(ExecutorRegistry).make(config.executor), items_at_once(config)
    if prior is not None and directory is not None and run.keeper is not None:
        rows = takewhile(lambda _: not run.gateway.exhausted, prior.to_score(run.keeper, run.prepared))
        await executor.execute(rows, run.scored, concurrency=together)
        if not run.gateway.left_undone:
            directory.update(extends=prior.extension.told(taken_over=True))
    await run.working.all_of(executor.execute(run.schedule, run.generation, concurrency=together))


def _info(prepared: Prepared, run_dir: Path | None, *, resumed: bool) -> RunInfo:
    return RunInfo(
        run_name=prepared.run_name,
        run_dir=run_dir,
        benchmark=prepared.benchmark.name,
        items=len(prepared),
        secrets=frozenset(secrets_of_run(prepared)),
        resumed=resumed,
    )


def _started(prepared: Prepared, run_dir: Path | None) -> dict[str, Any]:
    return {
        "run_name": prepared.run_name,
        "run_dir": str(run_dir) if run_dir else None,
        "benchmark": prepared.benchmark.name,
        "items": len(prepared),
    }
