"""A whole run: every item through its pipeline, every result to every sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, closing
from contextvars import Context, copy_context
from functools import partial
from itertools import takewhile
from typing import Any

from attrs import define, field
from karenina_calls.metering import Metering
from karenina_calls.models.models import open_models
from karenina_calls.models.overrides import model_pool, overrides
from karenina_calls.ports.item_calls import current_item
from karenina_calls.ports.waiting import WorkPlace, WorkPlaces
from karenina_calls.secrets.redaction import Secrets
from karenina_judging.canaries import PATHS

from karenina_core.pipeline.item import CachedAnswer
from karenina_core.values.result import VerificationResult

from ..answers.answers import answer_of
from ..files.run_files import RESULTS
from ..folder.directory import RunDirectory
from ..folder.reuse import opened_sources
from ..journal.reader import Done
from ..kinds import ExecutorRegistry
from ..plan.canaries import canary_answer, canary_at, canary_items, untried
from ..plan.items import Generation, Item, Prepared, Schedule, judged_by_folder, replayed
from ..results.results import VerificationResultSet
from ..results.sinks import RunInfo, Sinks, make_sink, without_password
from ..results.stored import StoredSequence
from ..summaries.canaries import CanaryTally, is_complete
from .continuation import Rest, RunWriter, read_back
from .control import RunControl
from .destination import Destination, RunState, directory_of, end, one_of, writer_of
from .item_verifier import Verifier, canary_verifier
from .notebook import shown_in_notebook
from .progress import RunCounts
from .senders import Senders
from .surroundings import Place, surroundings_kind
from .watchdogs import fewer_collections, stalls_logged, watched_stages

__all__ = ["Destination", "execute"]


@define(eq=False, kw_only=True)
class _Running(RunState):
    """One run while it is under way."""

    verifier: Verifier
    schedule: Schedule
    on_result: Callable[[VerificationResult], None] | None
    control: RunControl
    results: dict[int, VerificationResult] = field(factory=dict, init=False)
    """By their places in the plan; only where no run directory holds them: memory does not grow with one."""
    working: Working = field(init=False)
    unscored: set[str] = field(factory=set, init=False)
    """Tasks of which a part is there, and the rest is left until the run is resumed."""

    def __attrs_post_init__(self) -> None:
        self.working = Working(self.senders.items_at_once, lambda: next(map(self.generation, self.schedule), None))

    async def generation(self, generation: Generation) -> None:
        """The items of one answer that have no result yet: the first one generates the answer; then the other judges
        read it, at the same time where they do not work in the folder that it has left."""
        try:
            writer = self.writer
            left = [i for i in generation.items if writer is None or not (self._is_unscored(i) or writer.has_result(i))]
            waiting = await self._judged_again(left)
            cached = self._answer_of_before(generation, waiting) or replayed(self.prepared, generation)
            if cached is None and any(map(self._is_unscored, generation.items)):
                self.unfinished += len(waiting)  # the answer is there: none is asked for
                return
            async with AsyncExitStack() as opened:
                place: Place | None = None
                while waiting and (cached is None or place is not None):
                    if cached is None:  # also where the one before failed: the next does not begin in its remains
                        if self.gateway.has_closed and self._would_be_lost(waiting):
                            self.unfinished += len(waiting)
                            return
                        await opened.aclose()
                        place = await opened.enter_async_context(self.surroundings.opened(waiting[0]))
                    result = await self._in_turn(waiting.pop(0), cached, place)
                    cached = cached or (answer_of(result) if waiting else None)
                if waiting:
                    async with asyncio.TaskGroup() as group:
                        for item in waiting:
                            group.create_task(self._in_turn(item, cached, None))
        finally:
            self.schedule.over(generation)

    def _is_unscored(self, item: Item) -> bool:
        return bool(self.unscored) and self.writer is not None and self.writer.task(item) in self.unscored

    def _would_be_lost(self, waiting: Sequence[Item]) -> bool:
        """Whether nothing keeps the answer of these items, while a judge of theirs is asked no more: what is done in a
        folder is done once more when the run is resumed, and without a run directory nothing can be."""
        blocked, unjudged = [], []
        for item in waiting:
            judges = (item.parsing, *(model for _, model in overrides([item.rubric])))
            blocked.append(any(map(self.gateway.is_closed, (item.answering, *judges))))
            unjudged.append(any(map(self.gateway.never_answered, judges)))
        if all(unjudged):  # it is not likely that anybody wants to pay for answers now
            return True
        return all(blocked) if self.writer is None else any(blocked) and self.surroundings.wanted(waiting[0])

    async def _judged_again(self, waiting: Sequence[Item]) -> list[Item]:
        """Have the judges called again for answers that are kept. Returns the other items."""
        writer = self.writer
        if writer is None or not writer.replaced:
            return list(waiting)
        others: list[Item] = []
        async with asyncio.TaskGroup() as group:
            for item in waiting:
                answer = self.continuation.answer(writer, item) if writer.is_replaced(item) else None
                if answer is None:
                    others.append(item)
                else:
                    group.create_task(self._in_turn(item, answer, None))
        return others

    def _answer_of_before(self, generation: Generation, waiting: Sequence[Item]) -> CachedAnswer | None:
        """The answer that judges have read before the run was interrupted: the others read it as they would have then.
        Not where they work in the folder that it has left, which is gone."""
        first = generation.items[0]
        if self.writer is None or not waiting:
            return None
        there = [item for item in generation.items if item not in waiting]
        if self.surroundings.wanted(first):
            if judged_by_folder(self.prepared, first):
                return None
            asked_for = [item for item in waiting if not self.writer.is_replaced(item)]
            there += asked_for  # work that was done in a folder is asked for once, whatever became of its judges
        elif first in waiting and not (self.continuation.shares_answers and self.writer.stored(first) is None):
            return None  # it is made once more, of the calls that are paid for, and records their usage
        stored = (self.writer.stored(item) for item in there)
        return next((answer for result in stored if result is not None and (answer := answer_of(result))), None)

    async def _in_turn(
        self, item: Item, cached: CachedAnswer | None, place: Place | None, rest: Rest | None = None
    ) -> VerificationResult:
        """Verify an item when there is a place for it, and keep what came of it, with what there is where it is the
        `rest` of an item."""
        async with self.working.place(), self.senders.item():
            files = self.surroundings.files_to_keep()
            result = await self.verifier.verify(item, cached, place, files)
            if self.writer is not None and _lacks_calls(None if rest else result):
                self.unfinished += 1
                if rest is not None:
                    self.unscored.add(self.writer.task(item))
                await asyncio.sleep(0)  # thousands may be refused at once: other items can run
                return result
            result = result if rest is None else rest.completed(result)
            await self._finished(item, result)  # before anything that takes long: what is paid for is not lost
            await self.surroundings.keep(place, item, result, files)
            return result

    async def completed(self, rest: Rest) -> None:
        """Have the rest of an item evaluated of which a part is there, and keep both as its result."""
        await self._in_turn(rest.item, rest.answer, None, rest)

    async def canaries_judged(self, executor: Any) -> None:
        """Have every judge read answers that it should fail, and count what it does with them."""
        tally = CanaryTally(self.prepared.config.canary_threshold, untried(self.prepared))
        judging = {path: canary_verifier(self.verifier, path) for path in PATHS}

        async def judge(item: Item) -> None:
            found = canary_at(item.position)
            async with self.working.place(), self.senders.item():
                result = await judging[found.path].verify(item, canary_answer(item), None)
            tally.add(found, result, judged=not _lacks_calls(result))

        await executor.execute(canary_items(self.prepared), judge, concurrency=self.senders.items_at_once)
        self.canaries = tally.document()

    async def _finished(self, item: Item, result: VerificationResult) -> None:
        if self.writer is not None:
            on_disk: list[Done] = []
            try:
                await self.writer.keep(item, result, on_disk.append)
            except asyncio.CancelledError:
                self.in_doubt.append((item, result, on_disk))
                raise
            self.stale.discard(self.writer.task(item))
        else:
            self.results[item.position] = result
        self.tally.add(result, item.position)
        errors, is_strict = self.tally.outcomes["error"], self.prepared.config.fail_fast
        why = self.control.why_stopped(result, errors, fail_fast=is_strict)
        if why and self.tally.outcomes.total() < len(self.prepared):
            self.gateway.stop(why)
        await self.sinks.write(result)
        self.prepared.app.observe("karenina_item_finished", result=result)
        if self.on_result is not None:
            self.on_result(result)
        if self.writer is None:  # else other things have run while the result was written
            await asyncio.sleep(0)  # models that answer at once would never let signals, timers and other items run


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
    in several items at once, such as that or an error of `on_result`, is raised once, with the other messages as
    notes; errors of different types are raised together, as an ExceptionGroup.
    """
    destination, secrets = destination or Destination(), Secrets(prepared.secrets)
    app, config = prepared.app, prepared.config
    surroundings = surroundings_kind().of_run(prepared, destination.run_dir)
    senders = Senders.of_run(config, keeps=destination.run_dir is not None)
    metering = Metering(senders, app=app, secrets=secrets)
    async with (
        opened_sources(destination.reuse, destination.run_dir) as sources,
        open_models(app, config, config.answering_models, "answering", metering) as answerers,
        open_models(app, config, config.parsing_models, metering=metering) as judges,
        model_pool(app, config, judges.values(), metering) as pool,
        watched_stages(config, app) as stages,
        AsyncExitStack() as held,
    ):
        sinks = Sinks({without_password(uri): make_sink(app, uri) for uri in destination.sinks})
        directory = writer = None
        if destination.run_dir is not None:
            directory = directory_of(destination.run_dir, prepared, destination, answerers.values())
            held.callback(directory.release)
            writer = writer_of(directory, prepared, sources, destination)
            held.callback(writer.close)
            metering.keep_in(writer.journal)
            senders.keep_in(writer.journal)
        what = (app, config, prepared.mode, prepared.run_name, prepared.templates)
        run = _Running(
            prepared=prepared,
            answerers=answerers,
            sinks=sinks,
            surroundings=surroundings,
            senders=senders,
            continuation=destination.continuation,
            writer=writer,
            sources=sources,
            verifier=Verifier(*what, answerers, judges, pool, stages, surroundings),
            schedule=Schedule(
                prepared,
                config.task_ordering,
                is_done=writer.is_done if writer is not None else lambda generation: False,
                may_continue=lambda: not senders.gateway.exhausted,
            ),
            on_result=on_result,
            control=control or RunControl(),
        )
        await _carry_out(run, directory)
    return _result_set(run, destination)


def _result_set(run: _Running, destination: Destination) -> VerificationResultSet:
    kept, gateway = destination.run_dir, run.gateway
    made = [run.results[place] for place in sorted(run.results)]
    return VerificationResultSet(
        made if kept is None else StoredSequence(kept / RESULTS),
        run_dir=kept,
        left_out=run.prepared.left_out,
        notes=run.notes,
        sink_failures=dict(run.sinks.failures),
        tally=run.tally,
        ledger=run.ledger,
        planned=run.prepared.planned,
        canaries=run.canaries,
        stopped=tuple(filter(None, (gateway.stopped, *gateway.unanswered))),
    )


async def _carry_out(run: _Running, directory: RunDirectory | None) -> None:
    """Open the sinks, run every generation, and write how the run ended."""
    app, prepared = run.prepared.app, run.prepared
    run_dir = directory.path if directory else None
    status, failure = "failed", None
    try:
        continuation = run.continuation
        await run.sinks.open(
            RunInfo(
                run_name=prepared.run_name,
                run_dir=run_dir,
                benchmark=prepared.benchmark.name,
                items=len(prepared),
                secrets=frozenset(prepared.secrets),
                resumed=continuation.has_results,
            )
        )
        if continuation.has_results and directory is not None and run.writer is not None:
            directory.resumed(continuation.configured(directory.configured(prepared)))
            await continuation.take_over(run.writer, prepared)
            await _count_results(run, run.writer)
        about = {"run_name": prepared.run_name, "benchmark": prepared.benchmark.name, "items": len(prepared)}
        app.observe("karenina_run_started", run={**about, "run_dir": str(run_dir) if run_dir else None})
        run.control.counted = RunCounts(run)
        with fewer_collections(), stalls_logged(partial(run.verifier.stages.running, asyncio.get_running_loop())):
            async with shown_in_notebook(run.control.counted.snapshot, len(prepared)):
                await run.control.until_drained(_work(run, directory), run.gateway)
        remaining = run.writer is not None and run.writer.replaced
        status = "interrupted" if run.gateway.left_undone or remaining else "completed"
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


async def _work(run: _Running, directory: RunDirectory | None) -> None:
    """The rest of items of which a part is there, and then every generation that is not done."""
    prepared, together = run.prepared, run.senders.items_at_once
    executor = prepared.app.registry(ExecutorRegistry).make(prepared.config.executor)
    run.canaries = directory.canaries if directory is not None else None
    if prepared.config.canaries and not is_complete(run.canaries):
        await run.canaries_judged(executor)
        if directory is not None:
            directory.update(canaries=run.canaries)
    if directory is not None and run.writer is not None:
        rest = run.continuation.rest(run.writer, prepared)
        if rest is not None:
            with closing(rest):
                rows = takewhile(lambda _: not run.gateway.exhausted, rest)
                await executor.execute(rows, run.completed, concurrency=together)
            if not run.gateway.left_undone:
                directory.update(**run.continuation.facts(done=True))
    await run.working.all_of(executor.execute(run.schedule, run.generation, concurrency=together))


async def _count_results(run: _Running, writer: RunWriter) -> None:
    """Count what a resumed run has done and spent, and write its results to the sinks, which may have missed some."""
    spent = writer.journal.ledger.total
    run.gateway.budget.spent_before(spent.counted_usd, spent.counted_tokens, spent.counted)
    models = writer.journal.ledger.by("model").items()
    run.gateway.answered_before(name for (name,), sums in models if sums.calls)
    for stored in writer.journal.reader.results():
        if writer.is_final(stored):
            result = read_back(stored)
            run.tally.add(result, stored.position)
            await run.sinks.write(result)
        else:
            run.stale.add(stored.task)
        await asyncio.sleep(0)


def _lacks_calls(made: VerificationResult | None = None) -> bool:
    """Whether the item that this task has just made lacks calls because the run makes no more, so that it is made again
    when the run is resumed. A result with an error of the budget is made again anyway."""
    calls = current_item.get()
    if calls is None or not calls.kept_out:
        return False
    return made is None or (made.metadata.outcome, made.metadata.outcome_detail) != ("error", "budget")


@define(eq=False)
class Working:
    """`most` places, and as many items more that wait for a `Retry-After`."""

    most: int
    another: Callable[[], Coroutine[Any, Any, None] | None]
    """Work on what has not been begun; None: there is nothing."""
    _places: WorkPlaces = field(init=False)
    _others: asyncio.TaskGroup | None = field(default=None, init=False)
    _context: Context = field(factory=copy_context, init=False)
    _begun: int = field(default=0, init=False)
    """Work under way that was begun in the place of an item that waited."""

    def __attrs_post_init__(self) -> None:
        self._places = WorkPlaces(self.most, self._is_free)

    def place(self) -> WorkPlace:
        """Wait for a place, and have it."""
        return WorkPlace(self._places)

    async def all_of(self, work: Awaitable[None]) -> None:
        """Await this, and what is begun in places that are free meanwhile."""
        async with asyncio.TaskGroup() as self._others:
            await work

    def _is_free(self) -> None:
        if self._others is None or self._begun >= self.most or (work := self.another()) is None:
            return
        self._begun += 1
        self._others.create_task(work, context=self._context.copy()).add_done_callback(self._over)  # of no item

    def _over(self, _: asyncio.Task[None]) -> None:
        self._begun -= 1
