"""Replies that are far too large: what they cost in memory, all that Python has allocated at a time."""

from __future__ import annotations

import gc
import importlib.util
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


def measured(tmp_path: Path, reply: Callable[[], Reply], interface: str) -> tuple[dict[int, str], float]:
    """What became of four items of which the last answer is too large; by how many MB memory rose."""

    def script(request: ServedRequest) -> Any:
        large = world.number_of(request) == 3 and not world.judged(request)
        return reply() if large else world.right(request)

    def run(folder: str, questions: int) -> dict[int, str]:
        here = world.World(tmp_path / folder, questions=questions, installed=frozenset({"litellm"}))
        facts = {"endpoint_api_key": "none"} if interface == "litellm" else {}
        here.run(here.config(server.url, model={"interface": interface, **facts}, concurrency=1))
        found: dict[int, str] = here.by_question()
        return found

    with ScriptedServer(script) as server:
        tmp_path.mkdir(exist_ok=True)
        run("first", 3)  # imports and first uses are no reply's memory
        gc.collect()
        tracemalloc.start()
        try:
            told = run("second", 4)
            return told, tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("size", SIZES)
def test_a_reply_that_is_too_large_costs_no_more_than_twice_what_is_accepted(tmp_path: Path, size: str) -> None:
    told, rise = measured(tmp_path, SIZES[size], "openai_endpoint")
    print(f"openai_endpoint, {size}: +{rise:.1f} MB")
    assert told == {0: "passed", 1: "passed", 2: "passed", 3: "error(too_large)"}
    assert rise <= 2 * LIMIT / 1e6


def test_litellm_holds_several_times_the_whole_reply(tmp_path: Path, long: bool) -> None:
    """It reads a body before its size is seen. Its README says how much memory that takes, and what to do about it."""
    sizes: dict[str, tuple[float, Callable[[], Reply]]] = {"12 MB": (12, lambda: Reply.huge(12))}
    if long:
        sizes = {name: (float(name.split()[0]), make) for name, make in SIZES.items()}
    for name, (megabytes, make) in sizes.items():
        told, rise = measured(tmp_path / name, make, "litellm")
        print(f"litellm, {name}: +{rise:.1f} MB")
        assert told[3] == "error(too_large)"
        assert rise <= 8 * megabytes
