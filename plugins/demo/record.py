"""Record the demo's model calls again: `python record.py [--out FILE]`.

Runs the demo's benchmark against a real HTTP server on loopback that says what `script.json` says: by question and
answering model the `answer` and the replies of the `judge`, or an error `status`. A `disclaimer` makes the answer an
abstention, `missing` fields make it insufficient, and `equivalence` is what the judge says about texts that differ. The
embedder is asked for real, so it has to be installed. Needed whenever the benchmark, the script, a prompt or a schema
for the judge changes.
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
            return Reply(_judged(said, request))
        entry = said[request.model]
        return Reply(entry["answer"]) if "answer" in entry else Reply.error(entry["status"], entry["error"])


def _judged(said: Mapping[str, Any], request: ServedRequest) -> Mapping[str, Any]:
    """What the judge replies; the task is told by the schema that it is given."""
    answers = [entry for entry in said.values() if entry.get("answer", "\0") in request.text]
    if not answers:  # only the question of equivalence is asked without the answer
        (entry,) = (entry for entry in said.values() if "equivalence" in entry)
        equivalence: Mapping[str, Any] = entry["equivalence"]
        return equivalence
    (entry,) = answers
    asked = (request.schema or {})["properties"]
    if "abstention_detected" in asked:
        return _abstention(entry)
    if "sufficient" in asked:
        return _sufficiency(entry, list(asked["fields"]["properties"]))
    corrections = sum(message["role"] == "assistant" for message in request.messages)
    reply: Mapping[str, Any] = entry["judge"][corrections]
    return reply


def _abstention(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    words = entry.get("disclaimer")
    reasoning = "The response declines and gives no answer." if words else "No passage declines to answer."
    return {"disclaimer": words, "reasoning": reasoning, "abstention_detected": words is not None}


def _sufficiency(entry: Mapping[str, Any], fields: list[str]) -> Mapping[str, Any]:
    missing = entry.get("missing", [])
    findings = {
        name: {"evidence": None if name in missing else "stated in the response", "found": name not in missing}
        for name in fields
    }
    reasoning = f"Nothing is said about {', '.join(missing)}." if missing else "Every field is there."
    return {"fields": findings, "reasoning": reasoning, "sufficient": not missing}


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
