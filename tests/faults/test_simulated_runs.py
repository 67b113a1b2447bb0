"""Runs on a simulated clock: a seed decides what fails and when the process is gone, and everything holds for each."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.execute.continuation import RETRYABLE
from karenina_runs.journal.reader import JournalReader


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, processes = load("simulated_world"), load("journal_world")
invariants = world.world.invariants
LIVES = 3
"""Processes that work on a run before the provider recovers."""
OF_FAILURES = ("usage_metadata", "retry_counts", "agent_metrics")
"""What tells of failures before: how often it was tried, and which judge's item had made the answer then."""


def lived(folder: Path, seed: int, faults: Any) -> list[str]:
    """One life of the run in a process of its own: what was said of it."""
    ended = processes.child(lambda said: world.live(folder, seed, faults, said))
    assert ended.code in (0, world.CRASHED), (seed, faults)
    # The thread that writes may end the process: the event loop goes on for the moment between saying so and the end.
    last = ended.said[-1:] if ended.code == 0 else ended.said
    assert ("ended" if ended.code == 0 else "gone") in last, (seed, faults, ended.said[-3:])
    said: list[str] = ended.said
    return said


def told(said: list[str]) -> list[str]:
    return [id_ for (id_,) in world.words(said, "done")]


def judged(said: list[str]) -> set[str]:
    return {f"q{number}" for number, task in world.words(said, "asked") if task == "parsing"}


def is_there(folder: Path) -> bool:
    return (folder / "manifest.json").exists() and (folder / "journal.sqlite").exists()


def check(folder: Path, said: list[str], *, complete: bool) -> Counter[str]:
    invariants.assert_run(folder, told=told(said), judged=judged(said), complete=complete)
    with JournalReader.open(folder) as reader:
        return Counter(f"{done.outcome}({done.detail})" if done.detail else done.outcome for done in reader.ends())


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything is imported before processes begin that would do it once more."""
    provider = world.Provider(random.Random(0), world.QUIET, lambda text: None)
    asyncio.run(world.gone_on(tmp_path_factory.mktemp("warm") / "run", world.app_of(provider), world.config_of()))


def one(folder: Path, seed: int) -> Counter[str]:
    """Everything that one seed decides."""
    chance, said, crashes = random.Random(seed), [], 0
    for _ in range(LIVES):
        faults = world.Faults.of(chance)
        said += (life := lived(folder, chance.randrange(1 << 30), faults))
        crashes += "gone" in life
        if is_there(folder):
            check(folder, said, complete=False)
    said += lived(folder, seed, world.QUIET)  # the provider is well again, and the run is finished
    paid = sum(1 for _ in world.words(said, "paid"))
    outcomes = check(folder, said, complete=True)
    assert outcomes.total() == world.ITEMS
    assert not any(kind in outcome for outcome in outcomes for kind in RETRYABLE), outcomes
    with JournalReader.open(folder) as reader:
        ((calls,),) = reader.query("SELECT count(*) FROM calls")
    assert calls <= paid <= calls + crashes * world.CONCURRENCY, "paid for twice: at most what was under way"
    again = folder.with_name("again")
    app = world.app_of(lambda call: pytest.fail("a replay asks nobody") if not errors else "nothing")
    errors = sum(count for outcome, count in outcomes.items() if outcome.startswith("error"))
    facts = {"benchmark": world.world.benchmark_of(world.QUESTIONS), "config": world.config_of(), "app": app}
    try:
        invariants.assert_replayed(folder, again, lambda: 0, but=OF_FAILURES, **facts)
    finally:
        app.loop.close()
    return outcomes


def test_everything_holds_whatever_a_seed_decides(tmp_path: Path, long: bool) -> None:
    first = random.randrange(1 << 30) if long else 0
    begun, seen = time.monotonic(), Counter[str]()
    for seed in range(first, first + (1000 if long else 4)):
        print("seed", seed)
        (place := tmp_path / str(seed)).mkdir()
        seen += one(place / "run", seed)
    print(f"{time.monotonic() - begun:.1f} s", dict(seen))


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    chance = random.Random(7)
    faults = world.Faults(often=0.5, storm=(3.0, 20.0))
    seed = chance.randrange(1 << 30)
    first, second = (
        [line for line in lived(tmp_path / name, seed, faults) if not line.startswith("done")] for name in "ab"
    )
    assert first == second
    assert len(first) > world.ITEMS
