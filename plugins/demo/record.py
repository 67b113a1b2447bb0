"""Record the demo's model calls again: `python record.py [--out FILE]`.

Runs the demo's benchmark against a real HTTP server on loopback that says what `script.json` says: by question and
answering model the `answer` and the replies of the `judge`, or an error `status`. A `disclaimer` makes the answer an
abstention, `missing` fields make it insufficient, and `equivalence` is what the judge says about texts that differ.

About the rubric: `traits` are the scores of traits by name; `metric` and `record` are the whole replies about the
question's metric trait and its template kind; `deep` has the steps of its deep judgment; `present` says whether the
concept of its dynamic trait is there.

The embedder is asked for real, so it has to be installed. Needed whenever the benchmark, the script, a prompt or a
schema for the judge changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_demo.bundle import ADDRESS, BENCHMARK, CALLS, JUDGE, application, prepared
from karenina_runs.execute.runner import execute

from karenina_core import Benchmark
from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.config import AttemptPolicy, RetryPolicy

SCRIPT = Path(__file__).with_name("script.json")
TRAIT = re.compile(r"^(trait_\d+|result|score|classification): (.+)$", re.MULTILINE)
ONCE = RetryPolicy(server=AttemptPolicy(1))


@frozen
class Script:
    """What every model says."""

    items: Mapping[str, Mapping[str, Any]]
    questions: Mapping[str, str]
    """The text of every question, by its id."""

    def __call__(self, request: ServedRequest) -> Reply:
        item = self._item(request.text)
        if request.model == JUDGE:
            return Reply(_judged(item, request))
        entry = item[request.model]
        return Reply(entry["answer"]) if "answer" in entry else Reply.error(entry["status"], entry["error"])

    def _item(self, text: str) -> Mapping[str, Any]:
        """The entries about the question of a prompt; the last step of deep judgment only has its conclusion."""
        for name, question in self.questions.items():
            if question in text:
                return self.items[name]
        (item,) = (
            item
            for item in self.items.values()
            if any("deep" in entry and entry["deep"]["conclusion"] in text for entry in item.values())
        )
        return item


def _judged(item: Mapping[str, Any], request: ServedRequest) -> Mapping[str, Any]:
    """What the judge replies; the schema that it is given shows the task."""
    answers = [entry for entry in item.values() if entry.get("answer", "\0") in request.text]
    asked = (request.schema or {})["properties"]
    if not answers:
        return _without_the_answer(item, request.text, asked)
    (entry,) = answers
    if "abstention_detected" in asked:
        return _abstention(entry)
    if "sufficient" in asked:
        return _sufficiency(entry, list(asked["fields"]["properties"]))
    if (score := _trait(entry, request.text, asked)) is not None:
        return score
    if "judge" not in entry:  # an abstention that is compared with the template
        return dict.fromkeys(asked)
    corrections = sum(message["role"] == "assistant" for message in request.messages)
    reply: Mapping[str, Any] = entry["judge"][corrections]
    return reply


def _without_the_answer(item: Mapping[str, Any], text: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reply to what is asked about parts of an answer: steps of deep judgment, and whether texts mean the same."""
    for entry in item.values():
        steps = entry.get("deep", {})
        if steps and (steps["excerpts"][0] in text or steps["conclusion"] in text):
            return _deep(steps, asked)
    (entry,) = (entry for entry in item.values() if "equivalence" in entry)
    equivalence: Mapping[str, Any] = entry["equivalence"]
    return equivalence


def _trait(entry: Mapping[str, Any], text: str, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reply about traits; None where the template is asked for. The prompt has the keys of a reply, each with the
    name of its trait."""
    named = dict(TRAIT.findall(text.rpartition("The traits:\n")[2])) if "The traits:\n" in text else {}
    if named:
        return {key: entry["traits"][named[key]] for key in asked}
    if "tp_1" in asked:
        metric: Mapping[str, Any] = entry["metric"]
        return metric
    if set(asked) == set(entry.get("record", ())):
        record: Mapping[str, Any] = entry["record"]
        return record
    if all("concept" in str(about.get("description")) for about in asked.values()):
        return dict.fromkeys(asked, entry["present"])
    return _deep(entry["deep"], asked) if "deep" in entry and set(asked) <= set(entry["deep"]) else None


def _deep(steps: Mapping[str, Any], asked: Mapping[str, Any]) -> Mapping[str, Any]:
    if "excerpts" in asked:
        offered = [{"text": text, "explanation": None, "confidence": "high"} for text in steps["excerpts"]]
        return {"excerpts": offered}
    return {key: steps[key] for key in asked}


def _abstention(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    words = entry.get("disclaimer")
    reasoning = "The response declines and gives no answer." if words else "No passage declines to answer."
    answer = None if words else entry["answer"]
    return {"answer": answer, "disclaimer": words, "reasoning": reasoning, "abstention_detected": words is not None}


def _sufficiency(entry: Mapping[str, Any], fields: list[str]) -> Mapping[str, Any]:
    missing = entry.get("missing", [])
    findings = {
        name: {"evidence": None if name in missing else "stated in the response", "found": name not in missing}
        for name in fields
    }
    reasoning = f"Nothing is said about {', '.join(missing)}." if missing else "Every field is there."
    return {"fields": findings, "reasoning": reasoning, "sufficient": not missing}


def record(target: Path) -> None:
    """Write the recording. The same script gives the same bytes on the same processor; on another one the last digits
    of the embedder's vectors may differ.

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
