"""Extensions whose process is killed: they are finished with `karenina resume`, and nothing tells them from others."""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

QUESTIONS, MORE, CONCURRENCY, KILLS = 20, 26, 4, 5
TIMES = {"timestamp", "execution_time", "seconds"}
ABOUT = {"dateCreated": "2025-01-01T00:00:00Z", "dateModified": "2025-01-01T00:00:00Z"}
TEMPLATE = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "capital",
            "type": "str",
            "description": "The city that the response names as the capital",
            "ground_truth": "Paris",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}


def write_benchmark(path: Path, questions: int, *traits: str) -> Path:
    source = {
        "@type": "SoftwareSourceCode",
        "name": "template",
        "text": json.dumps(TEMPLATE),
        "programmingLanguage": "karenina-template",
    }
    items = [
        {
            "@type": "DataFeedItem",
            "@id": f"q{number}",
            **ABOUT,
            "item": {
                "@type": "Question",
                "text": f"What is the capital of France? ({number})",
                "acceptedAnswer": {"@type": "Answer", "text": "Paris"},
                "hasPart": source,
                "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": True}],
            },
        }
        for number in range(questions)
    ]
    scale = {"@type": "Rating", "bestRating": 1, "worstRating": 0, "additionalType": "GlobalRubricTrait"}
    feed = {
        "@context": {"@vocab": "https://schema.org/"},
        "@type": "DataFeed",
        "name": "Capitals",
        **ABOUT,
        "rating": [{**scale, "name": name, "description": f"Whether it is {name}."} for name in traits],
        "dataFeedElement": items,
    }
    path.write_text(json.dumps(feed), "utf-8")
    return path


async def script(request: ServedRequest) -> Any:
    """Every third answer is wrong."""
    await asyncio.sleep(0.02)
    number = int(request.text.split("(")[1].split(")")[0])
    city = "Rome" if number % 3 == 0 else "Paris"
    if request.schema is None:
        return f"It is {city} ({number})."
    return Reply({name: city if name == "capital" else True for name in request.schema["properties"]})


def ended(started: Any) -> None:
    assert started.wait(300) == 0, started.stderr


def killed_after(server: ScriptedServer, requests: int, started: Any) -> None:
    """Kill the process when so many requests have come in, if it has not ended by then."""
    wanted, deadline = server.count + requests, time.monotonic() + 300
    while server.count < wanted and started.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    started.kill()


def model(role: str, name: str, url: str) -> list[str]:
    return [f"--{role}-model", name, f"--{role}-interface", "openai_endpoint", f"--{role}-base-url", url]


def results(folder: Path) -> list[Any]:
    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(item) for name, item in value.items() if name not in TIMES}
        return [bare(item) for item in value] if isinstance(value, list) else value

    return [bare(json.loads(line)) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


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
    with ScriptedServer(script) as server:
        url = server.url
        old = write_benchmark(tmp_path / "old.jsonld", QUESTIONS)
        ended(begin("verify", old, *model("answering", "a", url), *model("parsing", "j", url), "--out", first))
        before = files(first)
        new = write_benchmark(tmp_path / "new.jsonld", MORE, "polite", "brief")
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
    assert results(folder) == results(other)
    assert len(results(folder)) == 2 * MORE
    told = manifest(folder)
    assert (told["status"], told["extends"]["taken_over"]) == ("completed", True)
    assert told["extends"]["run_id"] == manifest(first)["run_id"]
    assert files(first) == before
