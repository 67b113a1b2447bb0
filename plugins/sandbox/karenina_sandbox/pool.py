"""Workers: one process for each template, some of them kept, so many at work at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from attrs import frozen
from karenina_template.language.primitives.base import VerificationPrimitive

from karenina_core.errors import FillError, TemplateError, one_line, shortened
from karenina_core.ports.threads import in_own_thread

from .connection import NoReply, Server, TooLate, Worker, WorkerEnded
from .frames import ABSENT
from .settings import SandboxSettings

THREAD = "karenina-sandbox"
LONGEST = 4000
"""Characters of an error. Chosen: more than those of this side, which a worker could leave out."""
PATIENCE = 3.0
"""How many times as long as its processor time loading a template may take on the clock."""


@frozen
class Program:
    """What a worker is for: a template, or a function of a trait."""

    key: str
    begin: Mapping[str, Any]
    """What it is asked first."""
    what: str
    """What it is called in errors."""


class Slots:
    """So many calls at a time; others wait, in whatever event loop they are."""

    def __init__(self, most: int) -> None:
        self.free = most
        self._waiting: deque[Future[None]] = deque()
        self._lock = threading.Lock()

    def take(self) -> Future[None] | None:
        """Take one; where none is free, returns what to `wait` for."""
        with self._lock:
            if self.free > 0:
                self.free -= 1
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    async def wait(self, turn: Future[None]) -> None:
        """Until one was given to it."""
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            if not turn.cancel() and not turn.cancelled():  # it was given the slot in this moment
                self.release()
            raise

    def release(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self.free += 1


class Pool:
    """The workers of one application. Shared by all runs, items and event loops."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.settings = settings
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self._at_once = settings.workers or cores
        self._slots = Slots(self._at_once)
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._idle: OrderedDict[str, list[Worker]] = OrderedDict()
        """By the key of their program, the last one used at the end."""
        self._waiting = 0
        """How many that are."""
        self._spare: list[Worker] = []
        self._coming = 0
        """Spare workers that are being started."""
        self._server: Server | None = None
        self._primitives: Mapping[str, type] = {}
        self._prepared: frozenset[str] = frozenset()

    @property
    def free(self) -> int:
        """How many calls could begin now."""
        return self._slots.free

    def know(self, primitives: Mapping[str, type], text: str) -> None:
        """The primitives that templates may use from now on, and the text of one of them.

        What primitives import late is large. So only those that a template names are prepared, by another server where
        there is one already; its workers end when they are not used any more.
        """
        if primitives and primitives != self._primitives:
            self._primitives = dict(primitives)
            self.close()
        with self._lock:
            self._prepared |= {name for name, cls in primitives.items() if name in text and _has_to_prepare(cls)}

    def close(self) -> None:
        """End all processes. The next call starts others."""
        with self._lock:
            server, self._server = self._server, None
            workers = [*chain.from_iterable(self._idle.values()), *self._spare]
            self._idle.clear()
            self._waiting = 0
            self._spare.clear()
        for worker in workers:
            worker.close()
        if server is not None:
            server.close()

    @property
    def server(self) -> Server:
        """The server, started where there is none. Raises TemplateError."""
        with self._starting:
            if self._server is None or not self._server.runs or not self._server.prepared >= self._prepared:
                try:
                    self._server = Server(self.settings, self._primitives, self._prepared)
                except OSError as error:
                    raise TemplateError(f"the sandbox cannot be started: {one_line(error)}") from error
            return self._server

    async def begin(self, program: Program) -> tuple[dict[str, Any], str]:
        """The reply to the first request, from a new worker, and how far that is locked. Raises as `ask` does."""
        if (turn := self._slots.take()) is not None:
            await self._slots.wait(turn)
        try:
            worker, said = await self._other(program)
            self._keep(worker, program)
            return said, worker.level
        finally:
            self._slots.release()

    async def ask(self, program: Program, request_for: Callable[[Worker], Mapping[str, Any]]) -> dict[str, Any]:
        """The reply to a request, which may depend on what the worker remembers.

        Raises FillError where data does not fit, and TemplateError for everything else that a template does: errors of
        its own, too much time, the end of its process.
        """
        if (turn := self._slots.take()) is not None:
            await self._slots.wait(turn)
        try:
            worker, said = await self._asked(program, request_for)
            if said.get("error") == "time":
                self._discard(worker)
            else:
                self._keep(worker, program)
            return self._checked(program, said)
        finally:
            self._slots.release()

    async def _asked(
        self, program: Program, request_for: Callable[[Worker], Mapping[str, Any]], *, again: bool = False
    ) -> tuple[Worker, dict[str, Any]]:
        """The reply, and whose it is. Where the server ends during the call, another one is asked, once (`again`)."""
        worker = self._kept(program)
        if worker is None:
            worker, _ = await self._other(program)
        try:
            said: dict[str, Any] | None = worker.quick(request_for(worker))
            if said is None:
                call = partial(worker.result, self.settings.seconds, self.settings.hard_seconds)
                said = await self._in_thread(call, lambda _: None)
        except BaseException as error:
            failed = self._failed(worker, program, error)
            if again or worker.server.runs or not isinstance(error, WorkerEnded):
                raise failed from None
            return await self._asked(program, request_for, again=True)
        return worker, said

    async def _other(self, program: Program) -> tuple[Worker, dict[str, Any]]:
        made: tuple[Worker, dict[str, Any]] = await self._in_thread(
            partial(self._started, program), lambda made: self._discard(made[0])
        )
        return made

    def _failed(self, worker: Worker, program: Program, error: BaseException) -> BaseException:
        """What is raised where a call gave no reply; its worker is ended."""
        if isinstance(error, WorkerEnded | NoReply | TooLate):
            return TemplateError(self._end_of(worker, program, error, self.settings.hard_seconds))
        self._discard(worker)
        if isinstance(error, TypeError | ValueError | RecursionError):  # of `send`
            return FillError(f"the data cannot be given to the template: {error}")
        return error

    @staticmethod
    async def _in_thread(call: Callable[[], Any], undo: Callable[[Any], None]) -> Any:
        """Wait for a call in a thread; `undo` what it gives where its caller has gone meanwhile."""
        left = threading.Event()
        over = threading.Lock()
        made: list[Any] = []

        def work() -> Any:
            found = call()
            with over:
                made.append(found)
                if left.is_set():
                    undo(found)
            return found

        try:
            return (await in_own_thread(work, THREAD)).result()
        except asyncio.CancelledError:
            with over:
                left.set()
                for found in made:
                    undo(found)
            raise

    def _started(self, program: Program) -> tuple[Worker, dict[str, Any]]:
        """A new worker that has loaded the program, and what it said. Raises TemplateError."""
        worker = self._fresh()
        limit = self.settings.load_seconds
        try:
            worker.send(program.begin)
            said = worker.result(limit, limit * PATIENCE)
            self._checked(program, said, loading=True)
        except (WorkerEnded, NoReply, TooLate) as error:
            raise TemplateError(self._end_of(worker, program, error, limit * PATIENCE, "load_seconds")) from None
        except BaseException as error:
            self._discard(worker)
            if type(error) is TemplateError and (absent := [n for n in worker.server.notes if ABSENT in n]):
                raise TemplateError(f"{error} (in the sandbox: {'; '.join(absent)})") from None
            raise
        return worker, said

    def _fresh(self) -> Worker:
        """A worker that has loaded nothing; others are started meanwhile. Raises TemplateError."""
        server = self.server
        with self._lock:
            self._spare = [worker for worker in self._spare if worker.server is server]
            worker = self._spare.pop() if self._spare else None
            wanted = self._at_once - len(self._spare) - self._coming
            self._coming += max(wanted, 0)
        if wanted > 0:
            threading.Thread(target=self._prepare, args=(server, wanted), name=THREAD, daemon=True).start()
        if worker is not None and not worker.is_idle:
            self._discard(worker)
            worker = None
        return worker or server.fork()

    def _prepare(self, server: Server, wanted: int) -> None:
        """Have so many workers more ready: most of the time that a template takes to start is that of its process."""
        for _ in range(wanted):
            with suppress(TemplateError):
                worker = server.fork()
                with self._lock:
                    used = server is self._server
                    self._spare += [worker] if used else []
                if not used:
                    self._discard(worker)
            with self._lock:
                self._coming -= 1

    def _kept(self, program: Program) -> Worker | None:
        """A worker of this program that waits, the last one used."""
        while True:
            with self._lock:
                waiting = self._idle.get(program.key)
                if not waiting:
                    return None
                worker = waiting.pop()
                self._waiting -= 1
                if not waiting:
                    del self._idle[program.key]
            if worker.server is self._server and worker.is_idle:
                return worker
            self._discard(worker)

    def _keep(self, worker: Worker, program: Program) -> None:
        if worker.large:
            self._ended_aside(worker)
            return
        ended = []
        with self._lock:
            self._idle.setdefault(program.key, []).append(worker)
            self._idle.move_to_end(program.key)
            self._waiting += 1
            while self._waiting > self.settings.kept:
                key, waiting = next(iter(self._idle.items()))
                ended.append(waiting.pop(0))
                self._waiting -= 1
                if not waiting:
                    del self._idle[key]
        for other in ended:
            self._ended_aside(other)

    def _ended_aside(self, worker: Worker) -> None:
        """End a worker away from the event loop: the server may be starting another one."""
        threading.Thread(target=self._discard, args=(worker,), name=THREAD, daemon=True).start()

    @staticmethod
    def _discard(worker: Worker) -> None:
        worker.server.end(worker)

    def _checked(self, program: Program, said: dict[str, Any], *, loading: bool = False) -> dict[str, Any]:
        """The reply, where it is no failure. Raises FillError and TemplateError."""
        if "error" not in said:
            return said
        kind = said["error"]
        message = shortened(str(said.get("message")), LONGEST)
        if kind == "fill":
            raise FillError(message)
        if kind == "time":
            setting = "load_seconds" if loading else "seconds"
            limit = f"{getattr(self.settings, setting):g} s of processor time"
            raise TemplateError(f"{program.what} was stopped after {limit}{message}; {_MORE.format(setting)}")
        raise TemplateError(message)

    @staticmethod
    def _end_of(
        worker: Worker, program: Program, error: Exception, seconds: float, setting: str = "hard_seconds"
    ) -> str:
        """What is to be said of a worker that gave no reply; it is ended."""
        code = worker.server.end(worker, wait=isinstance(error, WorkerEnded))
        if isinstance(error, TooLate):
            return f"{program.what} did not end within {seconds:g} s and was killed; {_MORE.format(setting)}"
        if isinstance(error, NoReply):
            return f"the process of {program.what} sent {error}, and was killed"
        if code is None:
            return "the server of the sandbox has ended"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended itself with the exit code {code}"
        return f"the process of {program.what} {how}"


def _has_to_prepare(primitive: type) -> bool:
    found, usual = (
        getattr(getattr(cls, "prepare", None), "__func__", None) for cls in (primitive, VerificationPrimitive)
    )
    return found not in (None, usual)


_MORE = "give it more time with [plugins.sandbox-runtime] {}"
