"""Stages of somebody's plugin that do not end, in runs of the real command line."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import ScriptedServer

PLUGIN = """\
import asyncio
import threading
import time

from karenina_core import ArtifactKeys, Stage, hookimpl


async def stubborn():
    while True:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            pass


class Lookup(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    blocking = BLOCKING

    EXECUTE(self, context):
        if context.question.id == "q1":
            open("reached", "w").close()
            HANG


@hookimpl
def karenina_register_stages(registry):
    registry.add(Lookup)
"""
HANGS = {
    "waits": ("False", "async def execute", "await asyncio.sleep(1e6)"),
    "blocks a thread": ("True", "def execute", "threading.Event().wait()"),
    "blocks the loop": ("False", "def execute", "time.sleep(1e6)"),
    "blocks a thread of the pool": ("False", "async def execute", "await asyncio.to_thread(threading.Event().wait)"),
    "is not to be cancelled": ("False", "async def execute", "await stubborn()"),
}
LIMIT = 5
"""Seconds: far more than any stage of the others needs, also on a machine that is busy."""


ROOM = 10.0
"""Seconds beside the two that are promised: the machine may be busy."""


@pytest.fixture
def hanging(
    install: Callable[..., Path], write_benchmark: Callable[..., Path], served: Any, forking: Any
) -> Callable[[str, str], Any]:
    """A run in whose second item a stage does not end."""

    def begun(how: str, url: str) -> Any:
        blocking, execute, hang = HANGS[how]
        source = PLUGIN.replace("BLOCKING", blocking).replace("EXECUTE", execute).replace("HANG", hang)
        folder = install("lookup-checks", {"lookup": "lookup"}, "karenina.plugins", lookup=source)
        words = ["verify", write_benchmark("q0", "q1", "q2"), *served(url), "--out", "out"]
        words += ["--set", f"run.stage_idle_timeout={LIMIT}"]
        return forking.start(*words, environment={**os.environ, "PYTHONPATH": str(folder)}, ends=True)

    return begun


def answers(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


@pytest.mark.parametrize("how", ["waits", "blocks a thread"])
def test_an_item_whose_stage_hangs_is_an_error_and_the_run_ends(how: str, hanging: Callable[[str, str], Any]) -> None:
    with ScriptedServer(answers) as server:
        process = hanging(how, server.url)
        try:
            assert process.wait(100) == 3, process.stderr
        finally:
            process.kill()
    rows = map(json.loads, Path("out/results.jsonl").read_text("utf-8").splitlines())
    found = {row["metadata"]["question_id"]: row["metadata"] for row in rows}
    assert {key: (row["outcome"], row["outcome_detail"]) for key, row in found.items()} == {
        "q0": ("passed", None),
        "q1": ("error", "stage"),
        "q2": ("passed", None),
    }
    printed = found["q1"]["error"]
    assert printed.startswith(f"Lookup: ended after {LIMIT} s without progress"), printed
    assert "it is a stage of lookup-checks (plugin lookup); to give it more time, raise stage_idle_timeout" in printed


def test_a_stage_that_blocks_the_event_loop_is_named_while_it_does(
    hanging: Callable[[str, str], Any],
) -> None:
    with ScriptedServer(answers) as server:
        process = hanging("blocks the loop", server.url)
        try:
            while not (found := re.search(r".*the event loop is blocked.*\n", process.stderr)):
                assert process.poll() is None, process.stderr
                time.sleep(0.02)
        finally:
            process.kill()
    line = found[0]
    assert "WARNING" in line
    assert "stage='Lookup'" in line
    assert "execute (lookup-checks/lookup.py:" in line


@pytest.mark.parametrize("how", HANGS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_signals_end_a_run_whose_stage_hangs(
    how: str, number: signal.Signals, hanging: Callable[[str, str], Any]
) -> None:
    with ScriptedServer(answers) as server:
        process = hanging(how, server.url)
        try:
            while not Path("reached").exists():
                assert process.poll() is None, process.stderr
                time.sleep(0.02)
            process.send_signal(number)
            # the first one waits for calls only; a stage that can be cancelled is
            if (code := process.poll(1.5)) is None:
                process.send_signal(number)
                code = process.wait(2.0 + ROOM)
        finally:
            process.kill()
    # The second one may come when nothing is left but the end of the interpreter, which handles no signal any more.
    assert code in (130, -number), process.stderr
    assert "To continue, type: karenina resume" in process.stderr
