"""What the journal's tests write, and processes that write it and are killed. Loaded by path; no test is in here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Done, JournalReader

from karenina_core.values.message import Message, UsageMetadata

MODEL = {"interface": "scripted", "model_name": "m", "provider": None, "tools": (), "config_id": None}
FACTS = CallFacts(usage=UsageMetadata(100, 20, 120, 0.00045), seconds=0.25)
CALLS_AN_ITEM = 2
CONNECT = sqlite3.connect


def request(text: str, task: str = "generation") -> Request:
    return Request("llm", MODEL, task, 1, (Message.user(text).to_dict(),), None, None, {"temperature": 0.0})


def call(item: int, part: int = 0, nth: int = 0, **facts: str) -> StoredCall:
    asked = request(f"question {item}, part {part}: " + f"word{item} " * 300, ("generation", "parsing")[part % 2])
    facts = {"stage": f"stage-{part}", "trait": "", "question_id": f"q{item}", "result_id": f"r{item}"} | facts
    return StoredCall(asked.key, nth, asked, **facts)


def outcome(item: int, part: int = 0) -> dict[str, Any]:
    return {"reply": {"content": f"answer {item}.{part} " + f"text{item} " * 200, "flags": ["nul"]}}


def line(item: int) -> str:
    return json.dumps({"metadata": {"result_id": f"r{item}"}, "content": f"result {item} " * 100})


def done(item: int, name: str = "passed") -> Done:
    return Done(f"task {item}", item, f"r{item}", name)


async def one_item(journal: Journal, item: int, said: Callable[[str], None] = lambda text: None) -> None:
    """An item of two calls and a result, as a run makes it. `said` is told what is asked and what is acknowledged."""
    if journal.done(f"task {item}") is not None:
        return
    for part in range(CALLS_AN_ITEM):
        wanted = call(item, part)
        if await journal.take(wanted) is None:
            said(f"asked {item}.{part}")
            await asyncio.sleep(0)
            await journal.put(wanted, outcome(item, part), FACTS)
            said(f"kept {item}.{part}")
    await journal.put_result(done(item), line(item))
    said(f"done {item}")


async def run(folder: Path, items: int, concurrency: int, said: Callable[[str], None] = lambda text: None) -> None:
    journal = Journal.open(folder, run_id="the run")
    waiting = iter(range(items))

    async def worker() -> None:
        for item in waiting:
            await one_item(journal, item, said)

    try:
        await asyncio.gather(*(worker() for _ in range(concurrency)))
    finally:
        await journal.aclose()


def filled(folder: Path, items: int, concurrency: int = 8) -> Path:
    """A run directory with a finished journal. Returns the journal's path."""
    folder.mkdir(exist_ok=True)
    asyncio.run(run(folder, items, concurrency))
    return folder / "journal.sqlite"


def contents(reader: JournalReader) -> tuple[dict[str, Any], dict[str, Any]]:
    """`({(key, nth): body}, {task: (position, line)})`."""
    from karenina_runs.journal.rows import CALLS

    calls = {(row["key"], row["nth"]): row.body for row in reader.rows(CALLS)}
    return calls, {result.task: (result.position, result.line) for result in reader.results()}


class Ended(NamedTuple):
    """A process that has ended."""

    said: list[str]
    code: int
    """Negative: the signal."""
    seconds: float


def child(work: Callable[[Callable[[str], None]], None], kill_after: float | None = None) -> Ended:
    """Run `work(said)` in a process of its own, which is killed after some seconds, and collect what it said."""
    reading, writing = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda text: (os.write(writing, f"{text}\n".encode()), None)[1])
            code = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode().splitlines()
    return Ended(said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), time.monotonic() - begun)


def die_at(point: int) -> None:
    """From now on, end this process at the n-th statement that SQLite is given, on whatever connection."""
    left = [point]

    def traced(statement: str) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = CONNECT(*args, **options)
        connection.set_trace_callback(traced)
        return connection

    sqlite3.connect = connect  # type: ignore[assignment] # in a process that is about to die
