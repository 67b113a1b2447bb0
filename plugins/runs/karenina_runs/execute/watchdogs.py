"""What holds a run up: code that blocks the event loop is logged with its place; stages without progress are ended."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Any

from attrs import define, field
from karenina_calls.ports.item_calls import ItemCalls

from karenina_core.errors import KareninaError
from karenina_core.log import get_logger
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.ports.call_origin import StageLimit, current_limit
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

OBJECTS = (100_000, 10, 10)
"""New objects between two collections, and after how many of those older ones are looked at; Python's own: 700, 10, 10.
"""
_runs: list[tuple[int, int, int]] = []
"""What was set before each of the runs that are under way in this process."""
_frozen: list[int] = []
"""How many objects somebody else has frozen, once there were any: to count them takes as long as there are many."""
LONGEST_TURN = 0.25
"""Seconds for which nothing else can run; longer stalls are logged."""
LOUD = 1.0
"""Seconds from which on it is a warning: first uses of libraries take shorter ones, too."""
LOOKS_EVERY, TURNS_EVERY = 0.05, 0.025
"""Seconds. Chosen: there are two turns between looks, and five looks within `LONGEST_TURN`."""
LASTING = 10.0
"""Seconds after which it is a warning while it lasts, for it may never end: five times what the longest turn that is
expected in a run takes, a search for a pattern."""
MOST_LOGGED = 20
"""Stalls of one run that are logged; further ones are only counted. Chosen: a log stays readable with so many."""
FRAMES = 8
"""Calls of the code that holds the loop up, in the log. Chosen: the line stays readable."""
log = get_logger("karenina.run")
LOOKS = 8
"""Looks within the limit: a stage is ended up to an eighth of the limit late, and the looks of a run with the default
limit are 75 s apart. Looks are counted and not seconds: where the event loop is held up, or the machine sleeps, no look
takes place, and no stage is ended for it."""


@define(eq=False)
class Stalls:
    """Watches the running event loop from a thread.

    Only looks at which the watching thread had its turn itself are counted, and not the time in which the loop's thread
    could have gone on and the machine ran something else: a machine that sleeps or is busy, and a library that lets no
    thread run, are no stalls of the loop.
    """

    running: Callable[[], str] = lambda: ""
    """Gives the stage that is running."""
    lasting: float = LASTING
    count: int = 0
    """Turns that were longer than `LONGEST_TURN`."""
    _turns: int = 0
    _timer: asyncio.TimerHandle | None = None
    _thread: threading.Thread | None = None
    _done: threading.Event = field(factory=threading.Event)
    _loop_thread: int = 0
    _schedule: str = ""

    def start(self) -> None:
        """In the thread of the loop."""
        self._loop_thread = threading.get_ident()
        self._schedule = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._turn()
        self._thread = threading.Thread(target=self._look, name="karenina-stalls", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _turn(self) -> None:
        self._turns += 1
        self._timer = asyncio.get_running_loop().call_later(TURNS_EVERY, self._turn)

    @property
    def kept_waiting(self) -> float:
        """Seconds in which the loop's thread was ready and the machine ran something else; 0.0 where it is unknown."""
        try:
            with open(self._schedule, "rb") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def _look(self) -> None:
        seen, looks, waited, where = self._turns, 0, self.kept_waiting, ""
        lasting = round(self.lasting / LOOKS_EVERY)
        while not self._done.wait(LOOKS_EVERY):
            if self._turns != seen:
                if where:
                    self._log(looks, where)
                seen, looks, waited, where = self._turns, 0, self.kept_waiting, ""
                continue
            looks += 1
            if not where and looks * LOOKS_EVERY - (self.kept_waiting - waited) >= LONGEST_TURN:
                where = _place(frame_of(self._loop_thread))
            if where and looks == lasting:
                where = _place(frame_of(self._loop_thread))
                what = "the event loop is blocked, and every item with it; this ends by itself or with the process"
                log.warning(what, seconds=self.lasting, stage=self.running(), by=where)
        if where:
            self._log(looks, where)

    def _log(self, looks: int, where: str) -> None:
        self.count += 1
        if self.count <= MOST_LOGGED:
            seconds = round(looks * LOOKS_EVERY, 2)
            write = log.warning if seconds >= LOUD else log.info
            write("the event loop was blocked, and every item with it", seconds=seconds, by=where)


def _place(frame: FrameType | None) -> str:
    """What the thread does: the innermost calls first."""
    calls: list[str] = []
    while frame is not None and len(calls) < FRAMES:
        code = frame.f_code
        calls.append(f"{code.co_name} ({'/'.join(PurePath(code.co_filename).parts[-2:])}:{frame.f_lineno})")
        frame = frame.f_back
    return " < ".join(calls) or "its thread has ended"


@contextmanager
def stalls_logged(running: Callable[[], str] = lambda: "", lasting: float = LASTING) -> Iterator[Stalls]:
    """Log what blocks the running event loop meanwhile; `running` gives the stage that is running."""
    stalls = Stalls(running, lasting)
    stalls.start()
    try:
        yield stalls
    finally:
        stalls.stop()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Nearly everything that a run makes goes away without the collector, which looks at all items under way each time:
    with 500 of them that takes a third of the run's own time. What was set before is set again at the end of the last
    run of several; a collector that is off stays off.

    What was there before the run, such as the modules, is not looked at until it ends.
    """
    before = gc.get_threshold()
    _runs.append(before)
    if not _frozen and len(_runs) == 1 and (frozen := gc.get_freeze_count()):
        _frozen.append(frozen)
    freezes = not _frozen and len(_runs) == 1
    if 0 < before[0] < OBJECTS[0]:
        gc.set_threshold(*OBJECTS)
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        first = _runs[0]
        _runs.pop()
        if freezes:
            gc.unfreeze()
        if not _runs:
            gc.set_threshold(*first)


def frame_of(thread: int) -> FrameType | None:
    """Where a thread is, by its identifier; None where there is no such thread.

    Before CPython 3.11.9, a collection that begins while the interpreter makes its list of threads stops the process
    for good where another thread begins or ends at that moment (python/cpython#106883): here none begins.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if collects:
            gc.enable()


@define(eq=False)
class _Watched:
    context: VerificationContext
    plan: StageOrchestrator
    limit: StageLimit = field(factory=StageLimit)
    task: asyncio.Task[Any] | None = field(factory=asyncio.current_task)
    progress: tuple[object, ...] = ()
    idle: int = 0
    """Looks since there was progress."""


@define(eq=False)
class IdleStages:
    """The items of a run that are under way, and the stages of which nothing has been seen for long."""

    limit: float
    """Seconds; 0: none."""
    app: Karenina
    items: dict[ItemCalls, _Watched] = field(factory=dict)

    async def run(self, item: ItemCalls, context: VerificationContext, plan: StageOrchestrator) -> VerificationResult:
        """Run the stages of one item, in a task that is its own."""
        self.items[item] = watched = _Watched(context, plan)
        current_limit.set(watched.limit)
        try:
            return await plan.ready().run(context)
        finally:
            del self.items[item]

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(self.limit / LOOKS)
            for item, watched in list(self.items.items()):
                progress = (item.begun, item.ended, *watched.context.progress)
                if progress != watched.progress or item.begun != item.ended:
                    watched.progress, watched.idle = progress, 0
                    continue
                watched.idle += 1
                if watched.idle >= LOOKS and watched.task is not None:
                    watched.limit.cancel(watched.task, KareninaError(self._why(watched)))

    def _why(self, watched: _Watched) -> str:
        what = f"ended after {self.limit:g} s without progress and without a call under way"
        stage = watched.context.progress[0]
        if stage is None:  # middleware, whose plugin is named anyway
            return f"{what}; to give it more time, raise stage_idle_timeout"
        plugin = watched.plan.owner(stage.name)
        found = next((info.distribution for info in self.app.plugins if info.name == plugin), None)
        owner = f"{found or 'no distribution'} (plugin {plugin})"
        return f"{what}; it is a stage of {owner}; to give it more time, raise stage_idle_timeout"

    def running(self, loop: asyncio.AbstractEventLoop) -> str:
        """The stage that is running in this event loop, from any thread; empty where that is not known."""
        task = asyncio.current_task(loop)
        found = (watched.context.progress[0] for watched in list(self.items.values()) if watched.task is task)
        return next((stage.name for stage in found if stage is not None), "")


@asynccontextmanager
async def watched_stages(config: VerificationConfig, app: Karenina) -> AsyncIterator[IdleStages]:
    """Within it, stages of its items that make no progress for `stage_idle_timeout` are ended."""
    stages = IdleStages(config.stage_idle_timeout or 0.0, app)
    watching = asyncio.ensure_future(stages.watch()) if stages.limit else None
    try:
        yield stages
    finally:
        if watching is not None:
            watching.cancel()
