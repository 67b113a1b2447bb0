"""What blocks the event loop is logged with its place; a run that nothing blocks logs nothing."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.execute.runner import Destination
from karenina_runs.execute.watchdogs import LONGEST_TURN, LOUD, MOST_LOGGED, stalls_logged

from karenina_core.testing import ScriptedCall, ScriptedLLM


def hold_up(seconds: float) -> None:
    """Keep the thread busy, as a loop over a long list does; others have their turns."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def held_up(lines: list[str]) -> list[str]:
    return [line for line in lines if "was blocked" in line]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "karenina")
    return lambda: held_up(caplog.messages)


def test_a_long_turn_is_told_with_its_place(lines: Callable[[], list[str]]) -> None:
    async def main() -> int:
        with stalls_logged() as stalls:
            await asyncio.sleep(0.1)
            hold_up(6 * LONGEST_TURN)
            await asyncio.sleep(0.3)
        return stalls.count

    assert asyncio.run(main()) >= 1
    assert any("hold_up (tests/test_stalls.py:" in line and " < main (" in line for line in lines())


def test_only_long_ones_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "karenina")

    async def main() -> None:
        for factor in (2.0 * LONGEST_TURN, 2.0 * LOUD):
            with stalls_logged():
                hold_up(factor)

    asyncio.run(main())
    levels = [record.levelname for record in caplog.records if "was blocked" in record.getMessage()]
    assert levels[-1] == "WARNING"
    assert set(levels[:-1]) <= {"INFO"}


def test_a_turn_that_does_not_end_is_told_when_nobody_looks_any_more(lines: Callable[[], list[str]]) -> None:
    async def main() -> None:
        with stalls_logged():
            hold_up(6 * LONGEST_TURN)

    asyncio.run(main())
    assert len(lines()) == 1


def test_a_turn_that_lasts_is_a_warning_before_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """With the stage whose turn it is; once."""
    seen: list[int] = []

    async def main() -> None:
        with stalls_logged(lambda: "Lookup", lasting=4 * LONGEST_TURN):
            for _ in range(100):
                hold_up(LONGEST_TURN)
                seen.append(len(caplog.records))
                if seen[-1] and len(seen) > seen.index(seen[-1]) + 8:
                    return

    asyncio.run(main())
    assert seen[-1] == 1
    (line, *_) = caplog.messages
    assert "the event loop is blocked" in line
    assert "stage='Lookup'" in line
    assert " < main (tests/test_stalls.py:" in line


def test_many_stalls_do_not_fill_the_log(lines: Callable[[], list[str]]) -> None:
    from karenina_runs.execute.watchdogs import Stalls

    stalls = Stalls()
    for _ in range(3 * MOST_LOGGED):
        stalls._log(10, "somewhere")
    assert (stalls.count, len(lines())) == (3 * MOST_LOGGED, MOST_LOGGED)


def test_waiting_is_no_stall_and_nothing_stays_behind() -> None:
    async def main() -> int:
        with stalls_logged() as stalls:
            await asyncio.sleep(0.5)
        return stalls.count

    before = threading.active_count()
    assert asyncio.run(main()) == 0
    assert threading.active_count() == before


@pytest.mark.parametrize("where", ["in memory", "run directory"])
def test_a_model_that_holds_up_a_run_is_named(
    world: Callable[..., Any], lines: Callable[[], list[str]], tmp_path: Path, where: str
) -> None:
    def busy(call: ScriptedCall) -> str:
        hold_up(4 * LONGEST_TURN)
        return "It is BCL2."

    made = world(answerer=ScriptedLLM(busy), questions=2)
    made.run(destination=Destination(run_dir=tmp_path / "run") if where == "run directory" else None)
    assert any("hold_up (tests/test_stalls.py:" in line for line in lines())


COLLECTED = """\
import gc, sys, threading, time
from karenina_runs.execute.watchdogs import frame_of

class Slow:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.001)  # other threads have their turn in the middle of a collection

def others():
    while not ended.is_set():
        thread = threading.Thread(target=ended.is_set)
        thread.start()
        thread.join()

sys.setswitchinterval(1e-4)
ended, found = threading.Event(), 0
for _ in range(3):
    threading.Thread(target=others, daemon=True).start()
for _ in range(100):
    gc.collect()
    Slow(), Slow(), Slow()
    gc.set_threshold(1)
    found += frame_of(threading.get_ident()) is not None
    gc.set_threshold(700)
    assert gc.isenabled()
ended.set()
gc.disable()
assert frame_of(threading.get_ident()) is not None and not gc.isenabled()
print(found, frame_of(1))
"""


def test_to_look_where_a_thread_is_never_locks_the_process_up() -> None:
    """A collection in the middle of it would wait for a thread that waits for the end of it."""
    command = [sys.executable, "-c", COLLECTED]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.split(), ran.returncode) == (["100", "None"], 0), ran.stderr
