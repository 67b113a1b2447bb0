"""Models that are called in batches: calls of all items gather, are sent together, and each waits for its reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from attrs import define, evolve, field
from karenina_calls.limits.budget import Estimate, Experience, tokens_of
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.batch import BatchPort, current_turn
from karenina_calls.ports.stored_calls import Lane, StoredCall
from karenina_calls.records.call_facts import CallFacts, Place

from karenina_core.errors import RETRYABLE, ConfigError, PortError, Problem, plural
from karenina_core.values.config import ModelConfig

from ..execute.senders import Sender
from ..journal.journal import Journal
from ..journal.reader import DONE, OPEN, Batch
from .batches import NOT_SENT, PATIENCE, BatchRun, Gathered, Name, SentBatch

NO_DIRECTORY = (
    "a model with batch = true needs a run directory, which keeps the ids of its batches: give one "
    "(--run-dir DIR, run_dir=...), or set batch = false"
)
SETTLE = 0.2
"""Seconds without anything new after which items that wait are taken to wait for nothing but batches; chosen."""
LOOK_AGAIN = 0.25
"""Seconds until a call that the budget had no room for tries again; chosen."""
MOST_BYTES = 100_000_000
"""Bytes of calls that are sent together: half of the 200 MB that OpenAI's Batch API takes as a file."""
SENDING = 30.0
"""Seconds that a run which ends waits for the id of a batch that is being sent; chosen."""


@define(eq=False)
class _Work:
    """An item under way."""

    waiting: int = 0
    """Calls of it that wait for a batch."""


_work: ContextVar[_Work | None] = ContextVar("karenina_batch_work", default=None)


@define(eq=False)
class Batching(BatchRun, Sender):
    """All calls of a run that are sent in batches. Batches that an earlier process has sent are continued."""

    keeps: bool = True
    """Whether there is a run directory, where what was sent is kept."""
    sent: dict[str, SentBatch] = field(factory=dict, init=False)
    """Batches with calls whose replies have not been taken yet."""
    names: dict[Name, SentBatch] = field(factory=dict, init=False)
    _lanes: list[_BatchLane] = field(factory=list, init=False)
    _made: int = field(default=0, init=False)
    """Batches, those of earlier processes included."""
    _works: int = field(default=0, init=False)
    _parked: int = field(default=0, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    @classmethod
    def of_run(cls, gateway: Gateway, *, keeps: bool) -> Batching:
        return cls(gateway, keeps=keeps)

    @classmethod
    def serves(cls, model: ModelConfig) -> bool:
        return model.batch

    @classmethod
    def items_at_once(cls, models: Sequence[ModelConfig]) -> int:
        """Those that wait for a batch hold up no others, until a batch is full."""
        return max(model.batch_max_calls for model in models)

    def lane(self, model: ModelConfig) -> Lane:
        if not self.keeps:
            raise ConfigError([Problem("batch", f"{model.identity}: {NO_DIRECTORY}")])
        lane = _BatchLane(self, model)
        self._lanes.append(lane)
        return lane

    def keep_in(self, journal: Journal) -> None:
        """The journal of the run, with the batches that were sent before."""
        self.journal = journal
        later: set[Name] = set()
        for row in reversed(rows := journal.reader.batches()):
            if row.status in OPEN:
                names = [name for name in row.keys if name not in later]  # others were sent again in a later batch
                replies = {name: journal.reader.call(*name) for name in names}
                missing = [name for name, call in replies.items() if call is None or int(call.id) <= row.calls_before]
                if missing:
                    self._follow(SentBatch(self, row, set(missing), adopted=True))
                else:  # the process ended after the last reply was kept
                    self.begin(journal.put_batch(evolve(row, status=DONE)))
            later.update(row.keys)
        self._made = len(rows)

    def item(self) -> AbstractAsyncContextManager[None]:
        """An item is under way: calls may come of it."""
        return self._item() if self._lanes else nullcontext()

    @asynccontextmanager
    async def _item(self) -> AsyncIterator[None]:
        self._works += 1
        token = _work.set(_Work())
        self.look()
        try:
            yield
        finally:
            _work.reset(token)
            self._works -= 1
            self.look()

    @contextmanager
    def parked(self) -> Iterator[None]:
        """A call waits: when all items do, no further call can come."""
        work = _work.get()
        if work is not None:
            work.waiting += 1
            self._parked += work.waiting == 1
        self.look()
        try:
            yield
        finally:
            if work is not None:
                work.waiting -= 1
                self._parked -= work.waiting == 0

    def look(self) -> None:
        """Send what has gathered when all items wait, and still do a moment later."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parked >= self._works and any(lane.gathered for lane in self._lanes):
            self._timer = asyncio.get_running_loop().call_later(SETTLE, self._send_all)

    def _send_all(self) -> None:
        self._timer = None
        if self._parked >= self._works:
            for lane in self._lanes:
                lane.send()

    def send(self, model: ModelConfig, calls: list[Gathered]) -> None:
        """Send these calls as one batch."""
        assert self.journal is not None
        self._made += 1
        row = Batch(
            id=Batch.id_of(self._made, self.journal.last_call),
            model=str(model.identity),
            provider_id="",
            status="sending",
            keys=tuple(call.name for call in calls),
        )
        batch = SentBatch(self, row, set(row.keys), calls)
        self._follow(batch)
        batch.start(calls[0].port, model)

    def _follow(self, batch: SentBatch) -> None:
        self.sent[batch.row.id] = batch
        self.names |= dict.fromkeys(batch.open, batch)

    def had(self, name: Name) -> None:
        """The reply to a call, or its error, has been taken."""
        if (batch := self.names.pop(name, None)) is None:
            return
        if batch.had(name):
            del self.sent[batch.row.id]
            if batch.ended:  # the journal writes in order: after the reply itself
                self.begin(batch.put(DONE))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, and what is still at providers."""
        left = [
            f"the batch {batch.row.provider_id} of {batch.row.model} is left at the provider, with the replies to "
            f"{plural(len(batch.open), 'call')}; karenina resume fetches them, and karenina batches --cancel ends it"
            for batch in self.sent.values()
            if batch.row.provider_id
        ]
        return (*self.remarks, *left)

    async def aclose(self) -> None:
        """Stop polling batches; they stay at the provider. One that is being sent gets its id."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for lane in self._lanes:
            lane.close()
        for batch in self.sent.values():
            batch.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SENDING)
        for task in self._tasks:
            task.cancel()


@define(eq=False)
class _BatchLane:
    """See `karenina_calls.ports.stored_calls.Lane`: a call has its place at once, and waits for its reply instead."""

    batching: Batching
    model: ModelConfig
    gathered: dict[Name, Gathered] = field(factory=dict)
    experience: Experience = field(factory=Experience)
    _bytes: int = 0
    _timer: asyncio.TimerHandle | None = None

    async def enter(self, call: StoredCall) -> Place:
        """Raises PortError where no more calls may be made: `budget`, or that of a model whose lane is closed."""
        gateway = self.batching.gateway
        if (closed := gateway.lane(self.model).state.closed) is not None:
            raise PortError(closed.why, kind=closed.kind, final=True)
        estimate = self.experience.estimate(tokens_of(call.request), call.request.task, self.model)
        budget = gateway.budget
        if budget.limited and not gateway.exhausted and not self._fits(estimate):
            with self.batching.parked():
                while not gateway.exhausted and not self._fits(estimate):
                    await self.batching.sleep(LOOK_AGAIN)
        if gateway.exhausted:
            raise PortError(gateway.exhausted, kind="cancelled" if gateway.stopped else "budget", final=True)
        budget.set_aside(estimate)
        turn = _Turn(self, call, estimate)
        current_turn.set(turn)
        return turn

    def _fits(self, estimate: Estimate) -> bool:
        budget = self.batching.gateway.budget
        if budget.usd is not None and estimate.usd is None:  # the first goes alone: its cost may stay unknown
            return budget.idle
        return budget.fits(estimate)

    async def ask(self, name: Name, port: BatchPort, body: str) -> Mapping[str, Any]:
        """The reply of some batch. Raises PortError; where the model's lane was closed meanwhile, one after which the
        call is made again, when the lane is open."""
        while True:
            if (batch := self.batching.names.get(name)) is not None:
                batch.start(port, self.model)
                outcome = batch.outcome(name)
            elif (call := self.gathered.get(name)) is not None:
                outcome = call.outcome
            else:
                call = self.gathered[name] = Gathered(name, port, body)
                outcome = call.outcome
                self._bytes += len(body)
                if len(self.gathered) >= self.model.batch_max_calls or self._bytes >= MOST_BYTES:
                    self.send()
                elif self._timer is None:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(self.model.batch_wait_seconds, self.send)
            with self.batching.parked():
                found = await asyncio.shield(outcome)
            if found is not NOT_SENT:
                break
            self.batching.had(name)
            if self.batching.gateway.is_closed(self.model):
                found = PortError("the batch was not sent", kind="rate_limited")
                break
        if isinstance(found, PortError):
            error = PortError(
                str(found), kind=found.kind, retry_after=found.retry_after, status=found.status, raw=found.raw
            )
            error.final = found.final
            if error.kind in RETRYABLE and self.batching.gateway.is_closed(self.model):
                error.not_counted, error.final = True, False
                error.retry_after = error.retry_after or PATIENCE
            raise error
        reply: Mapping[str, Any] = found
        return reply

    def send(self) -> None:
        """Send what has gathered."""
        if self.batching.stopped:
            return
        self.close()
        calls, self.gathered, self._bytes = list(self.gathered.values()), {}, 0
        if calls:
            self.batching.send(self.model, calls)

    def give_up(self, name: Name) -> None:
        """The item of this call has ended: it is not sent any more, if it has not been."""
        if (call := self.gathered.pop(name, None)) is not None:
            self._bytes -= len(call.body)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@define(eq=False)
class _Turn:
    """A place, and what the call has in place of a connection; see `BatchTurn`."""

    lane: _BatchLane
    call: StoredCall
    estimate: Estimate
    answered: bool = False
    left: bool = False

    async def ask(self, port: BatchPort, body: str) -> Mapping[str, Any]:
        name = (self.call.key, self.call.nth)
        try:
            reply = await self.lane.ask(name, port, body)
        except PortError:
            self.answered = True
            raise
        except BaseException:
            self.lane.give_up(name)
            raise
        self.answered = True
        return reply

    def leave(self, facts: CallFacts | None, error: BaseException | None) -> CallFacts | None:
        if self.left:
            return facts
        self.left = True
        if not self.answered and facts is None and not isinstance(error, Exception):
            facts = CallFacts(made=False)  # it stays at the provider, or was never sent, and has not failed
        facts = self.lane.batching.gateway.settled(self.estimate, facts, self.lane.model)
        if facts is not None and facts.made:
            self.lane.experience.learn(self.call.request.task, facts)
        if self.answered and (facts is not None or isinstance(error, PortError)):
            self.lane.batching.had((self.call.key, self.call.nth))
        return facts
