"""Record the demo's model calls again: `python record.py [--out FILE]`.

Runs the demo's benchmark against a real HTTP server on loopback that says what `script.json` says: by question and
answering model the `answer` and the replies of the `judge`, or an error `status`. Needed whenever the benchmark, the
script, a prompt or the schema for the judge changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_demo.bundle import ADDRESS, BENCHMARK, CALLS, JUDGE, application, prepared

from karenina_core import Benchmark
from karenina_core.model.config import AttemptPolicy, RetryPolicy
from karenina_core.run.runner import execute
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SCRIPT = Path(__file__).with_name("script.json")
ONCE = RetryPolicy(server=AttemptPolicy(1))


@frozen
class Script:
    """What every model says."""

    items: Mapping[str, Mapping[str, Any]]
    questions: Mapping[str, str]
    """The text of every question, by its id."""

    def __call__(self, request: ServedRequest) -> Reply:
        (question_id,) = (name for name, text in self.questions.items() if text in request.text)
        said = self.items[question_id]
        if request.model == JUDGE:
            (entry,) = (entry for entry in said.values() if entry.get("answer", "\0") in request.text)
            corrections = sum(message["role"] == "assistant" for message in request.messages)
            return Reply(entry["judge"][corrections])
        entry = said[request.model]
        return Reply(entry["answer"]) if "answer" in entry else Reply.error(entry["status"], entry["error"])


def record(target: Path) -> None:
    """Write the recording. The same script gives the same bytes.

    The server's port is another one each time; the recording names the demo's own address instead.
    """
    questions = {question.id: question.question for question in Benchmark.load(BENCHMARK)}
    script = Script(json.loads(SCRIPT.read_text("utf-8")), questions)
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(script) as server:
        calls = Path(folder) / "calls.jsonl"
        run = prepared(application(record=str(calls)), address=server.url)
        one_by_one = evolve(run, config=evolve(run.config, concurrency=1, retry_policy=ONCE))
        asyncio.run(execute(one_by_one))
        target.write_text(calls.read_text("utf-8").replace(server.url, ADDRESS), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Record the demo's model calls again.")
    parser.add_argument("--out", type=Path, default=CALLS, help="where to write them (default: the package's own file)")
    record(parser.parse_args().out)
