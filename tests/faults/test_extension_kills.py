"""Extensions whose process is killed: they are finished with `karenina resume`, and nothing tells them from others."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

from karenina_core.testing import ScriptedServer

QUESTIONS, MORE, CONCURRENCY, KILLS = 20, 26, 4, 5


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_extension", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world = loaded("run_world")


def ended(started: Any) -> None:
    assert started.wait(300) == 0, started.stderr


def killed_after(server: ScriptedServer, requests: int, started: Any) -> None:
    """Kill the process when so many requests have come in, if it has not ended by then."""
    world.wait_for_more(server, requests, started)
    started.kill()


def model(role: str, name: str, url: str) -> list[str]:
    return [f"--{role}-model", name, f"--{role}-interface", "openai_endpoint", f"--{role}-base-url", url]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_killed_at_random_moments_an_extension_is_finished_as_if_nothing_had_happened(
    tmp_path: Path, forking: Any, long: bool
) -> None:
    def begin(*words: object) -> Any:
        return forking.start(*words, "--quiet", "--concurrency", CONCURRENCY)

    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance, kills = random.Random(seed), 30 if long else KILLS
    first, folder, other = tmp_path / "first", tmp_path / "killed", tmp_path / "uninterrupted"
    with ScriptedServer(world.answering(0.02)) as server:
        url = server.url
        old = world.write_benchmark(tmp_path / "old.jsonld", QUESTIONS)
        ended(begin("verify", old, *model("answering", "a", url), *model("parsing", "j", url), "--out", first))
        before = files(first)
        new = world.write_benchmark(tmp_path / "new.jsonld", MORE, traits=("polite", "brief"))
        added = ["--benchmark", new, "--questions", "all", *model("parsing", "j2", url)]
        added += ["--set", "run.rubric_evaluation_strategy=sequential"]

        start = server.count
        ended(begin("extend", first, *added, "--out", other))
        once = server.count - start
        # Two traits of what is there; the new judge of what is there; and the new questions with both judges.
        assert once == QUESTIONS * 2 + QUESTIONS * 3 + (MORE - QUESTIONS) * (1 + 2 * 3)

        start = server.count
        started = begin("extend", first, *added, "--out", folder)
        for _ in range(kills):
            killed_after(server, chance.randint(1, once // kills), started)
            is_there = (folder / "manifest.json").exists()
            started = begin("resume", folder) if is_there else begin("extend", first, *added, "--out", folder)
        ended(started)
        # An item that is under way may have two traits asked for at the same time.
        assert once <= server.count - start <= once + kills * CONCURRENCY * 2
    assert world.results(folder) == world.results(other)
    assert len(world.results(folder).splitlines()) == 2 * MORE
    told = world.manifest(folder)
    assert (told["status"], told["extends"]["taken_over"]) == ("completed", True)
    assert told["extends"]["run_id"] == world.manifest(first)["run_id"]
    assert files(first) == before
