"""An answering model and a judge on one scripted server. What they say follows from what they were told by tools."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, frozen

from karenina_core import AgenticRubricTrait, Benchmark, ModelConfig, Question, Rubric, VerificationConfig
from karenina_core.testing import Reply, ServedRequest
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.convert import unstructure
from karenina_core.values.message import ToolUseBlock

SERVER = Path(__file__).parent / "data" / "currencies_on_stdio.py"
SALES = "store,amount\nLyon,30\nNice,12\n"
ASKED = "What do the sales in data/sales.csv add up to, in the currency of France? Write it to out/total.txt too."
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
TEMPLATE = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "total",
            "type": "str",
            "description": "The sum that is reported, with its currency",
            "ground_truth": "42 EUR",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}
RECORD = {
    "type": "template",
    "schema": {
        "type": "object",
        "properties": {"amount": {"type": "integer"}, "currency": {"type": "string"}},
        "required": ["amount", "currency"],
    },
}
TRAITS = (
    AgenticRubricTrait(
        name="saved", kind="boolean", description="Whether the total is in a file.", context_mode="workspace_only"
    ),
    AgenticRubricTrait(
        name="tidy", kind="score", description="How tidy the folder is.", max_score=9, materialize_trace=True
    ),
    AgenticRubricTrait(
        name="done",
        kind="literal",
        description="How far the agent came.",
        classes={"begun": "No total is reported.", "finished": "A total is reported."},
        context_mode="trace_only",
    ),
    AgenticRubricTrait(name="booked", kind=RECORD, description="What was reported."),
)
KEPT = AgenticRubricTrait(
    name="kept", kind="boolean", description="Whether it is kept.", materialize_trace=True, persist_trace=True
)
SCORES = {"saved": True, "tidy": 4, "done": 1, "booked.amount": 42, "booked.currency": "EUR"}
"""What the judge of the office makes of what the answering model of the office leaves."""
Calls = Sequence[tuple[str, Mapping[str, Any]]]
Say = Callable[[ServedRequest], Any]


def calling(turn: int, *calls: tuple[str, Mapping[str, Any]], text: str | None = None) -> Reply:
    """A reply that calls these tools."""
    blocks = [ToolUseBlock(f"call_{turn}_{number}", name, given) for number, (name, given) in enumerate(calls)]
    return Reply(text, tool_calls=blocks, usage=(10, 2))


def turn_of(request: ServedRequest) -> int:
    """How often the model has replied in this conversation."""
    return sum(message["role"] == "assistant" for message in request.messages)


def told(request: ServedRequest) -> list[str]:
    """What the tools have answered in this conversation."""
    return [str(message["content"]) for message in request.messages if message["role"] == "tool"]


def offered(request: ServedRequest) -> list[str]:
    """The names of the tools that the model may call."""
    return [tool["function"]["name"] for tool in request.body.get("tools") or ()]


def answers(request: ServedRequest) -> Any:
    """The answering model: asks for the currency where it can, reads the sales, writes the total, and reports it."""
    turn, seen = turn_of(request), told(request)
    asks = "currency" in offered(request)
    if turn == 0:
        first = ("currency", {"country": "France"}) if asks else ("search_files", {"text": "Lyon"})
        return calling(0, first, ("list_files", {"recursive": True}), text="Let me look.")
    if turn == 1:
        return calling(1, ("read_file", {"path": "data/sales.csv"}))
    amounts = re.findall(r",(\d+)", seen[2])
    total = f"{sum(map(int, amounts))} {seen[0] if asks else 'EUR'}"
    if turn == 2:
        files = (("out/total.txt", f"{total}\n"), ("out/notes.md", "I added the amounts."))
        return calling(2, *(("write_file", {"path": path, "content": text}) for path, text in files))
    return Reply(f"The sales add up to {total}.", usage=(20, 3))


def looks(request: ServedRequest) -> Any:
    """The investigating judge: looks at all that it can, tries to write, and reports what it has seen."""
    turn, seen = turn_of(request), told(request)
    if offered(request) and turn == 0:
        return calling(
            0, ("list_files", {"recursive": True}), ("write_file", {"path": "out/total.txt", "content": "0"})
        )
    if offered(request) and turn == 1:
        trace = re.search(r"saved to: (\S+)", request.text)
        return calling(
            1, *(("read_file", {"path": path}) for path in ("out/total.txt", *(trace.groups() if trace else ())))
        )
    everything = "\n".join([request.text, *seen])
    totals = ", ".join(sorted(set(re.findall(r"\d+ EUR", everything)))) or "no total"
    listed = re.findall(r"^([^.\s]\S*) \(\d+ bytes\)", seen[0], re.MULTILINE) if seen else ["none"]
    return Reply(f"Seen: {totals}; files: {' '.join(listed)}.", usage=(5, 1))


def scores(request: ServedRequest) -> Any:
    """The judge that reads a report, or an answer."""
    assert request.schema is not None
    wanted = set(request.schema["properties"])
    total = re.search(r"Seen: (\d+) (\w+)", request.text) or re.search(r"add up to (\d+) (\w+)", request.text)
    files = re.search(r"files: (.*)\.$", request.text, re.MULTILINE)
    if "sufficient" in wanted:
        return {"reasoning": "The file counts more.", "sufficient": False, "answer": None}
    if wanted == {"result"}:
        return {"result": bool(total and files and "out/total.txt" in files[1])}
    if wanted == {"score"}:
        return {"score": 1 + len(files[1].split()) if files else 0}
    if wanted == {"classification"}:
        return {"classification": "finished" if total else "begun"}
    assert total is not None, request.text
    if wanted == {"amount", "currency"}:
        return {"amount": int(total[1]), "currency": total[2]}
    return {"total": f"{total[1]} {total[2]}"}


def approves_in_words(request: ServedRequest) -> Any:
    """An investigator that reads one file, the trace where there is one, and asks no more."""
    if turn_of(request) == 0:
        trace = re.search(r"saved to: (\S+)", request.text)
        return calling(0, ("read_file", {"path": trace[1] if trace else "out/total.txt"}))
    return Reply("All is right: 42 EUR.", usage=(5, 1))


def approves(request: ServedRequest) -> Any:
    """A judge that finds everything right."""
    assert request.schema is not None
    return {"result": True} if "result" in request.schema["properties"] else {"total": "42 EUR"}


@define(eq=False)
class Office:
    """The script of the server: `answerer...` answers, any other model judges."""

    answers: Say = answers
    looks: Say = looks
    scores: Say = scores

    async def __call__(self, request: ServedRequest) -> Any:
        if request.model.startswith("answerer"):
            say = self.answers
        else:
            say = self.looks if request.schema is None else self.scores
        said = say(request)
        return await said if asyncio.iscoroutine(said) else said


@frozen
class Place:
    """Folders of one test: the root of workspaces with the question's folder `shop`, and a program of tools."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def program(self) -> Path:
        return self.folder / "currencies.py"

    @property
    def address(self) -> str:
        """Of the tool server. Skips the test where the SDK that it is spoken to with is missing."""
        pytest.importorskip("mcp", reason='the SDK is missing: pip install "karenina-mcp[sdk]"')
        return shlex.join([sys.executable, str(self.program), str(self.folder / "pids")])

    @property
    def processes(self) -> list[int]:
        """The ids of the tool servers that were started."""
        file = self.folder / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def clean(self) -> bool:
        """Whether beneath the root there is the question's folder as it was and nothing else."""
        return [path.name for path in self.root.iterdir()] == ["shop"] and files(self.root) == {
            "shop/data/sales.csv": SALES
        }


def make_place(folder: Path) -> Place:
    place = Place(folder)
    (place.root / "shop" / "data").mkdir(parents=True)
    (place.root / "shop" / "data" / "sales.csv").write_text(SALES)
    shutil.copyfile(SERVER, place.program)
    return place


def files(folder: Path) -> dict[str, str]:
    """The text of every file by its path."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def benchmark(*traits: AgenticRubricTrait, count: int = 1, root: Path | None = None) -> Benchmark:
    """Questions that are worked on in the folder `shop`."""
    questions = [
        Question(
            id=f"q{number}",
            question=ASKED if number == 0 else f"{ASKED} ({number})",
            raw_answer="42 EUR",
            answer_template=json.dumps(TEMPLATE),
            template_language="karenina-template",
            workspace_path="shop",
        )
        for number in range(count)
    ]
    rubric = Rubric.from_traits(traits) if traits else None
    return Benchmark(name="sales", questions=questions, rubric=rubric, workspace_root=root)


def models(url: str, tools: str | None = None, judges: Sequence[str] = ("judge",), **fields: Any) -> dict[str, Any]:
    """The models of a configuration; `fields` are those of the answering model, `tools` the address of its server."""
    known: dict[str, Any] = {
        "interface": "openai_endpoint",
        "endpoint_base_url": url,
        "max_retries": 0,
        "retry_policy": ONCE,
    }
    answerer: dict[str, Any] = {
        "model_name": "answerer",
        **known,
        "mcp_urls_dict": {"currencies": tools} if tools else {},
        **fields,
    }
    return {
        "answering_models": [ModelConfig(**answerer)],
        "parsing_models": [ModelConfig(model_name=name, **known) for name in judges],
    }


def configured(url: str, tools: str | None = None, **more: Any) -> VerificationConfig:
    return VerificationConfig(**{**models(url, tools), **more})


def override(url: str) -> AgenticRubricTrait:
    """A trait that a model of its own investigates."""
    (other,) = models(url, judges=["other"])["parsing_models"]
    return AgenticRubricTrait(name="own", kind="boolean", description="Whether it is there.", model_override=other)


def timeless(value: Any) -> Any:
    """Plain data without what differs between two runs of the same calls."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "timestamp", "execution_time")}
    return [timeless(entry) for entry in value] if isinstance(value, list | tuple) else value


def rows(results: Any) -> list[Any]:
    """Results as plain data, in an order of their own."""
    plain = [timeless(unstructure(result)) for result in results]
    return sorted(plain, key=lambda row: json.dumps(row["metadata"], sort_keys=True, default=str))
