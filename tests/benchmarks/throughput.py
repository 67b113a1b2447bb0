"""Many items at the same time against a server of 200 ms latency, beside a loop that only sends and receives.

    python -m tests.benchmarks.throughput bare|karenina|kept URL ITEMS PLACES

is one measurement, in a process of its own; the benchmark runs them in turns. `kept` is karenina with a run directory,
where every reply is on the disk before it is used.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from attrs import frozen

from .loopback import LATENCY, server
from .measure import Row, peak_memory
from .processes import measured
from .workload import ANSWER, TEMPLATE, moons

if TYPE_CHECKING:
    from karenina_core import Karenina

__all__ = ["throughput_rows"]

LOADS = ((2, 50, 1.1, None), (10, 500, 1.6, 120.0))
"""Items as a multiple of `--items`, items in flight, the budget as a multiple of the bare loop, and of memory in MB."""
KEPT = {50: 1.2, 500: 2.2}
"""By items in flight, the budget with a run directory as a multiple of the bare loop, which keeps nothing. Those of
`LOADS` are what nobody should be slower than; these are our own, so that keeping does not become dearer unnoticed."""
WARM_UP = 20


@frozen
class Measured:
    """One process: seconds by the clock, CPU milliseconds per item, and the most memory it had, in MB."""

    seconds: float
    cpu: float
    memory: float


def throughput_rows(items: int, rounds: int) -> list[Row]:
    """Wall clock, CPU and memory of karenina and of the bare loop, in turns; medians of at most 3 rounds."""
    rows: list[Row] = []
    with server() as url:
        for times, places, budget, memory in LOADS:
            seen: dict[str, list[Measured]] = {who: [] for who in LOADERS}
            for _ in range(min(rounds, 3)):
                for who, found in seen.items():
                    found.append(Measured(*measured("throughput", who, url, times * items, places)))
            name = f"{times * items} items, {places} in flight"
            budgets = {"karenina": budget, "kept": KEPT[places]}
            rows += _rows(name, times * items * 2 * LATENCY / places, seen, budgets, memory)
    return rows


def _rows(
    name: str, ideal: float, seen: dict[str, list[Measured]], budgets: dict[str, float], most: float | None
) -> list[Row]:
    bare = seen["bare"]
    baseline, cpu, memory = (median(getattr(m, what) for m in bare) for what in ("seconds", "cpu", "memory"))
    rows = []
    for who, label in (("karenina", name), ("kept", f"{name}, kept")):
        ours = seen[who]
        ratio = median(a.seconds / b.seconds for a, b in zip(ours, bare, strict=True))
        wall, used, rss = (median(getattr(m, what) for m in ours) for what in ("seconds", "cpu", "memory"))
        told = f"wall; ideal {ideal * 1000:g}; CPU {used:.2f} ms an item, {used / cpu:.1f} x bare"
        rows += [
            Row(label, wall * 1000, baseline * 1000 * budgets[who], ratio, told),
            Row(f"{label}, memory", rss, most, rss / memory, "resident at most", unit="MB"),
        ]
    told = f"wall; aiohttp alone; 2 calls of {LATENCY * 1000:g} ms an item; CPU {cpu:.2f} ms an item"
    return [*rows, Row(f"{name}, bare", baseline * 1000, None, 1.0, told)]


async def _bare(url: str, items: int, places: int) -> None:
    """As many workers as there are places; each item is two requests, one after the other."""
    import aiohttp

    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    numbers = iter(range(items))

    async def ask(session: aiohttp.ClientSession, text: str, **more: Any) -> str:
        body = {"model": "any", "messages": [{"role": "user", "content": text}], **more}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            content: str = (await response.json())["choices"][0]["message"]["content"]
            return content

    async def worker(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            answer = await ask(session, f"How many moons does Mars have, and what are they called? ({number})")
            assert answer == ANSWER
            assert json.loads(await ask(session, f"{TEMPLATE}\n{answer}", response_format=wanted))["count"] == 2

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(worker(session) for _ in range(places)))


@cache
def _installed() -> Karenina:
    from karenina_core import Karenina

    return Karenina.installed()


async def _kept(url: str, items: int, places: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _karenina(url, items, places, Path(folder) / "run")


async def _karenina(url: str, items: int, places: int, run_dir: Path | None = None) -> None:
    from karenina_core import ModelConfig, VerificationConfig

    app = _installed()
    model = ModelConfig(model_name="any", interface="openai_endpoint", endpoint_base_url=url)
    config = VerificationConfig(answering_models=[model], parsing_models=[model], concurrency=places)
    results = await moons(items).arun_verification(config, app=app, run_dir=run_dir)
    assert results.get_summary()["outcomes"] == {"passed": items}


LOADERS: dict[str, Callable[[str, int, int], Coroutine[Any, Any, None]]] = {
    "bare": _bare,
    "karenina": _karenina,
    "kept": _kept,
}


def main() -> None:
    who, url, items, places = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    load = LOADERS[who]
    asyncio.run(load(url, WARM_UP, WARM_UP))  # imports and first uses are no item's cost
    began, used = time.perf_counter(), time.process_time()
    asyncio.run(load(url, items, places))
    seconds, cpu = time.perf_counter() - began, (time.process_time() - used) * 1000 / items
    print(json.dumps([seconds, cpu, peak_memory()]))


if __name__ == "__main__":
    main()
