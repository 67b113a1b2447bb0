"""Whole runs in processes of their own, as the command line makes them. Loaded by path; no test is in here."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.journal.reader import JournalReader

from karenina_core.testing import ScriptedServer

TIMES = {"timestamp", "execution_time", "seconds", "created_at", "updated_at", "run_dir"}
CONFIG = """\
[run]
answering_models = ["a"]
parsing_models = {judges}
concurrency = {concurrency}
"""
MODEL = """\

[models.{name}]
interface = "openai_endpoint"
model_name = "{name}"
endpoint_base_url = "{url}"
"""
NAMED = """\
from functools import partial
from karenina_cli import verification
verification.prepare = partial(verification.prepare, run_name="the run")
"""
"""Names of runs are random otherwise, and ids of results are made of them."""
TELLING = """\
import os
from karenina_runs.journal import journal
told = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
keep_call, keep_result = journal.Journal.put, journal.Journal.put_result

async def put(self, call, *facts):
    await keep_call(self, call, *facts)
    os.write(told, f"kept {{call.key}} {{call.nth}}\\n".encode())

async def put_result(self, done, *facts):
    await keep_result(self, done, *facts)
    os.write(told, f"done {{done.task}}\\n".encode())

journal.Journal.put, journal.Journal.put_result = put, put_result
"""
"""What the journal acknowledges is told to a file, which a killed process cannot take back."""
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


def write_benchmark(path: Path, questions: int, padding: int = 0, traits: Sequence[str] = ()) -> Path:
    """`padding`: letters that each question's text has beside. `traits`: names of those of all questions."""
    about = {"dateCreated": "2025-01-01T00:00:00Z", "dateModified": "2025-01-01T00:00:00Z"}
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
            **about,
            "item": {
                "@type": "Question",
                "text": f"What is the capital of France? ({number}){' and' * (padding // 4)}",
                "acceptedAnswer": {"@type": "Answer", "text": "Paris"},
                "hasPart": source,
                "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": True}],
            },
        }
        for number in range(questions)
    ]
    scale = {"@type": "Rating", "bestRating": 1, "worstRating": 0, "additionalType": "GlobalRubricTrait"}
    rating = [{**scale, "name": name, "description": f"Whether it is {name}."} for name in traits]
    context = {"@vocab": "https://schema.org/"}
    feed = {"@context": context, "@type": "DataFeed", "name": "Capitals", **about, "rating": rating}
    path.write_text(json.dumps({**feed, "dataFeedElement": items}), "utf-8")
    return path


def write_config(path: Path, url: str, concurrency: int, judges: tuple[str, ...] = ("j",), more: str = "") -> Path:
    """`more`: lines of the table of the run."""
    told = CONFIG.format(judges=json.dumps(judges), concurrency=concurrency) + more
    path.write_text(told + "".join(MODEL.format(name=name, url=url) for name in ("a", *judges)), "utf-8")
    return path


def number_of(request: Any) -> int:
    """Which question it is about."""
    found = re.search(r"\((\d+)\)", request.text)
    return int(found[1]) if found else 0


def said(request: Any) -> Any:
    """Every third answer is wrong, and has every trait."""
    number = number_of(request)
    city = "Rome" if number % 3 == 0 else "Paris"
    if not request.schema:
        return f"It is {city} ({number})."
    return {name: city if name == "capital" else True for name in request.schema["properties"]}


def answering(seconds: float) -> Callable[[Any], Any]:
    """A server whose every reply takes that long."""
    import asyncio

    async def script(request: Any) -> Any:
        await asyncio.sleep(seconds)
        return said(request)

    return script


def wait_for_more(server: ScriptedServer, more: int, started: Any) -> None:
    """Until so many requests have come in, or the process has ended."""
    wanted, deadline = server.count + more, time.monotonic() + 60
    while server.count < wanted and started.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def wait_until(true: Callable[[], Any], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def asked(server: ScriptedServer) -> Counter[str]:
    """How often each request was made."""
    return Counter(f"{request.model} {request.text}" for request in server.requests)


def judged(server: ScriptedServer, before: int = 0) -> set[str]:
    """Questions whose answer a judge was asked about, after so many requests."""
    return {f"q{number_of(request)}" for request in server.requests[before:] if request.schema}


def told(path: Path) -> tuple[set[tuple[str, int]], set[str]]:
    """Calls and tasks that were acknowledged, as `TELLING` has written them."""
    words = [line.split(" ", 1) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    calls = {(key, int(nth)) for verb, name in words if verb == "kept" for key, nth in [name.split()]}
    return calls, {name for verb, name in words if verb == "done"}


def stored(folder: Path) -> tuple[set[tuple[str, int]], dict[str, str]]:
    """What the journal holds: calls, and results by task."""
    if not (folder / "journal.sqlite").exists():
        return set(), {}
    with JournalReader.open(folder) as reader:
        calls = reader.query("SELECT key, nth FROM calls")
        return set(calls), {result.task: result.line for result in reader.results()}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def results(folder: Path) -> bytes:
    """`results.jsonl` after removing times."""
    lines = (folder / "results.jsonl").read_text("utf-8").splitlines()
    return "\n".join(json.dumps(without_times(json.loads(line))) for line in lines).encode()


def summary(folder: Path) -> Any:
    """Summary and ledger after removing times and the folder's own name."""
    found = manifest(folder)
    return {"summary": without_times(found["summary"]), "ledger": found["ledger"]}


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    return found
