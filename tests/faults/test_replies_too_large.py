"""Replies that are far too large: what they cost in memory."""

from __future__ import annotations

import gc
import importlib.util
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

LIMIT = 8_000_000
"""Bytes of a reply that are accepted unless the configuration says otherwise."""
SIZES: dict[str, Callable[[], Reply]] = {
    "50 MB": lambda: Reply.huge(50),
    "200 MB, packed": lambda: Reply.gzip_bomb(200),
}


MEASURED = f"""\
import importlib.util, json, sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("fault_world", {str(SPEC.origin)!r})
world = importlib.util.module_from_spec(spec)
spec.loader.exec_module(world)

def peak():
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024

def run(folder, questions):
    here = world.World(Path(folder), questions=questions)
    here.run(here.config(URL, concurrency=1))
    return here.by_question()

run("first", 3)  # imports and first uses are no reply's memory
before = peak()
told = run("second", 4)
print(json.dumps({{"told": told, "rise": peak() - before}}))
sys.exit(0)
"""


def served(reply: Callable[[], Reply]) -> ScriptedServer:
    """Of four items, the last answer is too large."""

    def script(request: ServedRequest) -> Any:
        large = world.number_of(request) == 3 and not world.judged(request)
        return reply() if large else world.right(request)

    return ScriptedServer(script)


@pytest.mark.parametrize("size", SIZES)
def test_a_reply_that_is_too_large_costs_no_more_than_twice_what_is_accepted(
    forking: Any, tmp_path: Path, size: str
) -> None:
    """By the most that a process has held."""
    with served(SIZES[size]) as server:
        process = forking.start(prelude=f"URL = {server.url!r}\n{MEASURED}", folder=tmp_path)
        assert process.wait() == 0, process.stderr
    found = json.loads(process.stdout.splitlines()[-1])
    print(f"openai_endpoint, {size}: +{found['rise'] / 1e6:.1f} MB")
    assert found["told"] == {"0": "passed", "1": "passed", "2": "passed", "3": "error(too_large)"}
    assert found["rise"] <= 2 * LIMIT


def test_litellm_holds_several_times_the_whole_reply(tmp_path: Path, long: bool) -> None:
    """It reads a body before its size is seen. Its README says how much memory that takes, and what to do about it.

    By what Python has allocated: this process has imported litellm, which takes seconds."""

    def run(folder: Path, questions: int) -> dict[int, str]:
        here = world.World(folder, questions=questions, installed=frozenset({"litellm"}))
        model = {"interface": "litellm", "endpoint_api_key": "none"}
        here.run(here.config(server.url, model=model, concurrency=1))
        found: dict[int, str] = here.by_question()
        return found

    sizes: dict[str, tuple[float, Callable[[], Reply]]] = {"12 MB": (12, lambda: Reply.huge(12))}
    if long:
        sizes = {name: (float(name.split()[0]), make) for name, make in SIZES.items()}
    for name, (megabytes, make) in sizes.items():
        with served(make) as server:
            run(tmp_path / f"first {name}", 3)  # imports and first uses are no reply's memory
            gc.collect()
            tracemalloc.start()
            try:
                told = run(tmp_path / f"second {name}", 4)
                rise = tracemalloc.get_traced_memory()[1] / 1e6
            finally:
                tracemalloc.stop()
        print(f"litellm, {name}: +{rise:.1f} MB")
        assert told[3] == "error(too_large)"
        assert rise <= 8 * megabytes
