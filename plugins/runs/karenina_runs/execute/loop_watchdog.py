"""What blocks the event loop blocks every item of a run: it is logged with its place in the code."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType

from attrs import define, field

from karenina_core.log import get_logger

OBJECTS = (100_000, 10, 10)
"""New objects between two collections, and after how many of those older ones are looked at; Python's own: 700, 10, 10.
"""
_runs: list[tuple[int, int, int]] = []
"""What was set before each of the runs that are under way in this process."""
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
log = get_logger("karenina.run")


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
                what = "the event loop is held up, and every item with it; this ends by itself or with the process"
                log.warning(what, seconds=self.lasting, stage=self.running(), by=where)
        if where:
            self._log(looks, where)

    def _log(self, looks: int, where: str) -> None:
        self.count += 1
        if self.count <= MOST_LOGGED:
            seconds = round(looks * LOOKS_EVERY, 2)
            write = log.warning if seconds >= LOUD else log.info
            write("the event loop was held up, and every item with it", seconds=seconds, by=where)


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
    freezes = len(_runs) == 1 and not gc.get_freeze_count()
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
