"""Replies that are far too large: what they cost in memory, measured in processes of their own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
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
MEASURED = """\
import asyncio, importlib.util, json, sys
from pathlib import Path

name, place, url, interface = sys.argv[1:]
spec = importlib.util.spec_from_file_location("fault_world", name)
world = importlib.util.module_from_spec(spec)
spec.loader.exec_module(world)

def peak():
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024

def run(folder, questions):
    here = world.World(Path(folder), questions=questions, installed=frozenset({"litellm"}))
    facts = {"endpoint_api_key": "none"} if interface == "litellm" else {}
    config = here.config(url, model={"interface": interface, **facts}, concurrency=1)
    here.run(config)
    return here.by_question()

run(place + "/first", 3)  # imports and first uses are no reply's memory
before = peak()
told = run(place + "/second", 4)
print(json.dumps({"told": told, "rise": peak() - before, "before": before}))
"""


def measured(tmp_path: Path, reply: Callable[[], Reply], interface: str) -> tuple[dict[str, str], float, float]:
    """What became of four items of which the last answer is too large; by how many MB memory rose, and from where."""

    def script(request: ServedRequest) -> Any:
        large = world.number_of(request) == 3 and not world.judged(request)
        return reply() if large else world.right(request)

    with ScriptedServer(script) as server:
        tmp_path.mkdir(exist_ok=True)
        where = Path(__file__).with_name("fault_world.py")
        command = [sys.executable, "-c", MEASURED, str(where), str(tmp_path), server.url, interface]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    return found["told"], found["rise"] / 1e6, found["before"] / 1e6


@pytest.mark.parametrize("size", SIZES)
def test_a_reply_that_is_too_large_costs_no_more_than_twice_what_is_accepted(tmp_path: Path, size: str) -> None:
    told, rise, before = measured(tmp_path, SIZES[size], "openai_endpoint")
    print(f"openai_endpoint, {size}: +{rise:.1f} MB on {before:.0f} MB")
    assert told == {"0": "passed", "1": "passed", "2": "passed", "3": "error(too_large)"}
    assert rise <= 2 * LIMIT / 1e6


def test_litellm_holds_several_times_the_whole_reply(tmp_path: Path, long: bool) -> None:
    """It reads a body before its size is seen. Its README says how much memory that takes, and what to do about it."""
    sizes: dict[str, tuple[float, Callable[[], Reply]]] = {"12 MB": (12, lambda: Reply.huge(12))}
    if long:
        sizes = {name: (float(name.split()[0]), make) for name, make in SIZES.items()}
    for name, (megabytes, make) in sizes.items():
        told, rise, before = measured(tmp_path / name, make, "litellm")
        print(f"litellm, {name}: +{rise:.1f} MB on {before:.0f} MB")
        assert told["3"] == "error(too_large)"
        assert rise <= 8 * megabytes
