"""One batch: sent, polled until it is over, and its replies handed to the calls that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Final, TypeVar

from attrs import define, evolve, field
from karenina_calls.limits.limiter import Gateway
from karenina_calls.limits.queues import LaneKey
from karenina_calls.ports.batch import BatchCall, BatchPort, BatchState
from karenina_calls.ports.retry import with_retries

from karenina_core.errors import RETRYABLE, KareninaError, PortError, one_line, plural
from karenina_core.log import get_logger
from karenina_core.values.config import ModelConfig, RetryPolicy

from ..journal.journal import Journal
from ..journal.reader import DONE, Batch

T = TypeVar("T")
Name = tuple[str, int]
"""The key of a call and its number."""
NOT_SENT: Final = object()
"""What comes of a call that no provider knows of: it is gathered again."""
PREFIX = "call-"
FIRST_POLL, GROWTH, LONGEST_POLL = 0.5, 1.5, 60.0
"""Seconds until a provider is asked how far a batch is, how much longer each further wait is, the longest; chosen."""
PATIENCE = 3600.0
"""Seconds for which polls may fail, or a provider may refuse to take a batch; chosen."""
REFUSALS = frozenset({"rate_limited", "auth", "invalid_request", "content_filter", "budget"})
"""Kinds of errors after which it is certain that the provider has not taken a batch."""
UNANSWERED = "the batch {} is over ({}), and has no reply to this call"
AFTER = {"expired": "timeout", "cancelled": "cancelled"}
"""Kinds of errors of calls without a reply, by how the batch ended."""
log = get_logger("karenina.run")


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@define(eq=False)
class Gathered:
    """A call that waits to be sent."""

    name: Name
    port: BatchPort
    body: str
    outcome: asyncio.Future[Any] = field(factory=_future)
    """The body of the reply, a PortError, or `NOT_SENT`; never an exception, which asyncio would log unread."""


@define(eq=False)
class BatchRun:
    """The run that sends batches, as each of them knows it."""

    gateway: Gateway
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    journal: Journal | None = field(default=None, init=False)
    remarks: list[str] = field(factory=list, init=False)
    _sending: dict[LaneKey, asyncio.Lock] = field(factory=dict, init=False)
    _tasks: set[asyncio.Task[None]] = field(factory=set, init=False)
    _closed: bool = field(default=False, init=False)

    def sending(self, model: ModelConfig) -> asyncio.Lock:
        """Held while a batch is sent to this model."""
        return self._sending.setdefault(LaneKey.of(model), asyncio.Lock())

    def begin(self, work: Any) -> asyncio.Task[None]:
        """Do this concurrently, until the run ends."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, context=Context())  # of no item
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a batch could not be followed", error=str(error))

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        log.warning(text)

    @property
    def stopped(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._closed or self.gateway.draining


@define(eq=False)
class SentBatch:
    """A batch, sent by this process or by an earlier one."""

    run: BatchRun
    row: Batch
    """What the journal knows of it."""
    open: set[Name]
    """Calls whose replies have not been taken yet."""
    calls: Sequence[Gathered] = ()
    """Only where this process sends it."""
    adopted: bool = False
    """Whether an earlier process has sent it."""
    ended: bool = False
    """Whether it has ended at the provider, and its replies are here."""
    _outcomes: dict[Name, asyncio.Future[Any]] = field(init=False)
    _task: asyncio.Task[None] | None = None
    _sending: bool = False

    def __attrs_post_init__(self) -> None:
        self._outcomes = {call.name: call.outcome for call in self.calls}

    def outcome(self, name: Name) -> asyncio.Future[Any]:
        return self._outcomes.setdefault(name, _future())

    def had(self, name: Name) -> bool:
        """Whether that was the last of its calls."""
        self.open.discard(name)
        self._outcomes.pop(name, None)
        return not self.open

    def start(self, port: BatchPort, model: ModelConfig) -> None:
        """Follow it with this port, unless that is being done."""
        if self._task is None:
            self._task = self.run.begin(self._followed(port, model))

    def stop(self) -> None:
        """Leave it at the provider. While it is being sent, its id is waited for."""
        if self._task is not None and not self._sending:
            self._task.cancel()

    async def put(self, status: str, **facts: Any) -> None:
        """Write it to the journal. Raises RunDirectoryError."""
        self.row = evolve(self.row, status=status, **facts)
        assert self.run.journal is not None
        await self.run.journal.put_batch(self.row)

    async def _followed(self, port: BatchPort, model: ModelConfig) -> None:
        try:
            if not self.row.provider_id:
                # One is sent after the other: what the provider says of one holds for the next.
                async with self.run.sending(model):
                    closed = self.run.stopped or self.run.gateway.is_closed(model)
                    if closed or not await self._sent(port, model):
                        return self._settle_rest(NOT_SENT)
            if self.run.stopped:
                return None
            state = await self._over(port)
            await self._fetched(port, state, model)
            if not self.open:
                await self.put(DONE)
        except PortError as error:
            if (pause := error.retry_after or 0.0) > PATIENCE:  # longer than a batch waits
                self.run.gateway.lane(model).state.close_to_batches(pause, PATIENCE)
            await self._unreachable(error)
        except KareninaError as error:  # the journal cannot be written: the next reply that is put there raises
            self._settle_rest(PortError(str(error), kind="stage", final=True))

    async def _unreachable(self, error: PortError) -> None:
        """The batch stays where it is, for a resumed run, unless it is there no more."""
        if self.adopted and error.status == 404:
            self.run.remark(
                f"the provider does not know the batch {self.row.provider_id} of {self.row.model} any longer: its "
                "calls are sent again"
            )
            await self.put("lost")
            return self._settle_rest(NOT_SENT)
        how = "" if error.kind in RETRYABLE else " --retry-failed"
        if self.row.provider_id:
            self.run.remark(
                f"the batch {self.row.provider_id} of {self.row.model} is left at the provider ({one_line(error)}); "
                f"when that is fixed, karenina resume{how} fetches it"
            )
        elif self.row.status == "sending":
            self.run.remark(
                f"it is not known whether the provider took the batch {self.row.id} of {self.row.model} "
                f"({one_line(error)}); when that is fixed, karenina resume{how} looks for it"
            )
        error.final = True
        return self._settle_rest(error)

    async def _sent(self, port: BatchPort, model: ModelConfig) -> bool:
        self._sending = True
        try:
            if self.calls:
                await self.put("sending")
                found: str | None = await self._submitted(port, model)
            else:
                found = await retried(lambda: port.find(self.row.id), model, PATIENCE, self.run.sleep)
                if found is None:
                    self._sent_again()
            await (self.put("sent", provider_id=found) if found else self.put("lost"))
        finally:
            self._sending = False
        self.calls = ()
        return found is not None

    async def _submitted(self, port: BatchPort, model: ModelConfig) -> str:
        """The provider's id. What may have arrived although no reply came is looked for before it is sent again, and
        where that is not known, it stays `sending`: a resumed run looks again. Raises PortError."""
        calls = [BatchCall(f"{PREFIX}{place}", call.body) for place, call in enumerate(self.calls)]
        unclear = False

        async def attempt() -> str:
            nonlocal unclear
            if unclear:
                if found := await port.find(self.row.id):
                    return found
                self._sent_again()
            try:
                return await port.submit(self.row.id, calls)
            except BaseException as error:  # also where time is up
                unclear = unclear or not (isinstance(error, PortError) and error.kind in REFUSALS)
                raise

        try:
            return await retried(attempt, model, PATIENCE, self.run.sleep)
        except PortError:
            if not unclear:
                await self.put("refused")
                raise
            with suppress(PortError, TimeoutError):
                if found := await proper(lambda: port.find(self.row.id)):
                    return found
            raise

    def _sent_again(self) -> None:
        remark = (
            f"the provider does not list the batch {self.row.id} of {self.row.model}, which may have been sent: its "
            f"{plural(len(self.row.keys), 'call')} are sent again, and paid for twice if it has taken the batch"
        )
        if remark not in self.run.remarks:
            self.run.remark(remark)

    async def _over(self, port: BatchPort) -> BatchState:
        """Poll until it is over. Raises PortError where polls fail for `PATIENCE` seconds."""
        clock = asyncio.get_running_loop().time
        wait, failing_since = FIRST_POLL, None
        while True:
            try:
                state = await port.poll(self.row.provider_id)
            except PortError as error:
                failing_since = clock() if failing_since is None else failing_since
                pause = max(wait, error.retry_after or 0.0)
                if error.final or error.kind not in RETRYABLE or max(clock() - failing_since, pause) > PATIENCE:
                    raise
            except Exception as error:  # an adapter's own code
                raise _broken(error) from error
            else:
                if state.status != "running":
                    return state
                pause, failing_since = wait, None
            await self.run.sleep(pause)
            wait = min(wait * GROWTH, LONGEST_POLL)

    async def _fetched(self, port: BatchPort, state: BatchState, model: ModelConfig) -> None:
        names = {f"{PREFIX}{place}": name for place, name in enumerate(self.row.keys)}
        provider_id = self.row.provider_id

        async def attempt() -> tuple[int, int]:
            """`(replies to calls that are not in the batch, further replies to the same call)`."""
            seen: set[str] = set()
            unknown = double = 0
            async for custom_id, reply in port.fetch(provider_id):
                if custom_id not in names:
                    unknown += 1
                elif custom_id in seen:
                    double += 1
                else:
                    seen.add(custom_id)
                    self._settle(names[custom_id], reply)
            return unknown, double

        if state.status == "failed":  # the provider has refused the batch: for some of its calls, or as a whole
            for place, error in state.lines.items():
                if 0 <= place < len(self.row.keys):
                    self._settle(self.row.keys[place], error)
            if not state.lines:
                what = f"the provider has refused the batch {provider_id}"
                self._settle_rest(state.problem or PortError(what, kind="invalid_request"))
        else:
            unknown, double = await retried(attempt, model, PATIENCE, self.run.sleep)
            if unknown or double:
                self.run.remark(
                    f"the batch {provider_id} of {self.row.model} brought {plural(unknown, 'reply')} to calls that are "
                    f"not in it, and {plural(double, 'reply')} more than one to the same call; they are ignored"
                )
        self.ended = True
        kind: Any = AFTER.get(state.status, "server")
        self._settle_rest(PortError(UNANSWERED.format(provider_id, state.status), kind=kind))

    def _settle(self, name: Name, outcome: Any) -> None:
        if name in self.open and not (waiting := self.outcome(name)).done():
            waiting.set_result(outcome)

    def _settle_rest(self, outcome: Any) -> None:
        for name in tuple(self.open):
            self._settle(name, outcome)


async def retried(
    attempt: Callable[[], Awaitable[T]],
    model: ModelConfig,
    longest: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """What an adapter does, with the model's retries, for at most `longest` seconds. Raises PortError."""
    policy = model.retry_policy or RetryPolicy()
    return await with_retries(lambda: proper(attempt), policy, max_elapsed=longest, sleep=sleep)


async def proper(attempt: Callable[[], Awaitable[T]]) -> T:
    """What an adapter does. Raises PortError, TimeoutError."""
    try:
        return await attempt()
    except (KareninaError, TimeoutError):
        raise
    except Exception as error:  # an adapter's own code
        raise _broken(error) from error


def _broken(error: Exception) -> PortError:
    return PortError(f"the adapter's batch interface failed: {one_line(error)}", kind="plugin")
