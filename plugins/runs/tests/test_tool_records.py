"""What a run says about the tools of its servers: which they were, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_calls.tools.tool_servers import tool_digest
from karenina_runs.execute.runner import Destination
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, RESULTS

from karenina_core import AdapterSpec, ModelConfig, VerificationResultSet, hookimpl
from karenina_core.ports import LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.values.message import ToolUseBlock

Make = Callable[..., Any]
SCHEMA = {"type": "object", "properties": {"drug": {"type": "string"}}}


@define(eq=False)
class Library:
    """A server of two tools. After `changed_after` calls there is a warning with every outcome."""

    changed_after: int = 1000
    calls: list[str] = field(factory=list)

    @hookimpl
    def karenina_register_tool_servers(self, registry: Any) -> None:
        library = self

        class Client:
            def __init__(self, name: str, address: str) -> None: ...

            async def aopen(self) -> None: ...

            async def alist(self) -> Sequence[Tool]:
                return [Tool(name=name, description=name, input_schema=SCHEMA, run=library.run) for name in ("a", "b")]

            async def aclose(self) -> None: ...

        registry.add(Client, name="mcp")

    async def run(self, given: Mapping[str, Any]) -> ToolOutcome:
        self.calls.append("call")
        return ToolOutcome("found", warning="the server changed" if len(self.calls) > self.changed_after else None)


class Worker:
    """Calls every tool, twice, and answers."""

    capabilities = PortCapabilities(supports_tools=True)

    async def ainvoke(self, messages: Any, *, tools: Any = (), **_: Any) -> LLMResponse:
        if len(messages) > 2:
            return LLMResponse(content="It is BCL2.")
        calls = [ToolUseBlock(f"{n}", tool.name, {"n": n}) for n, tool in enumerate([*tools, *tools])]
        return LLMResponse(content="", tool_calls=tuple(calls))

    async def aclose(self) -> None: ...


@pytest.fixture
def run(world: Make, tmp_path: Path) -> Callable[..., tuple[VerificationResultSet, dict[str, Any]]]:
    """`run(library, questions=..., **fields of the model)`: the results and the manifest."""

    def go(library: Library, questions: int = 1, **fields: Any) -> tuple[VerificationResultSet, dict[str, Any]]:
        here = world(AdapterSpec(interface="working", llm_factory=lambda model: Worker()), library, questions=questions)
        fields.setdefault("mcp_urls_dict", {"library": "http://localhost:1/mcp"})
        model = ModelConfig(**{"model_name": "w", "interface": "working", **fields})
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        results = here.run(here.config(answering_models=[model], concurrency=1), Destination(run_dir=folder))
        return results, json.loads((folder / "manifest.json").read_text())

    return go


def test_the_manifest_holds_what_every_server_offers_to_every_model(run: Make) -> None:
    _, said = run(Library(), mcp_tool_description_overrides={"a": "Looks it up."})
    offered = [Tool(name="a", description="Looks it up.", input_schema=SCHEMA), Tool(name="b", description="b")]
    offered[1] = Tool(name="b", description="b", input_schema=SCHEMA)
    assert said["tool_servers"] == [
        {
            "model": next(iter(said["models"])),
            "server": "library",
            "address": "http://localhost:1/mcp",
            "tools": ["a", "b"],
            "digest": tool_digest(offered),
        }
    ]


def test_equal_runs_have_equal_digests_and_what_the_model_sees_makes_the_difference(run: Make) -> None:
    usual = {"library": "http://localhost:1/mcp"}
    digests = [
        [row["digest"] for row in run(Library(), **fields)[1]["tool_servers"]]
        for fields in (
            {},
            {"mcp_urls_dict": usual},
            {"mcp_tool_filter": ["a"]},
            {"mcp_tool_description_overrides": {"a": "b"}},
            {"mcp_urls_dict": {**usual, "shop": "http://localhost:2/mcp"}},
        )
    ]
    assert digests[0] == digests[1]
    assert len({str(digest) for digest in digests}) == 4
    assert len(digests[4]) == 2
    assert digests[0][0] not in digests[4], "their tools were given other names"


def test_no_secret_of_an_address_is_in_the_run_directory(run: Make, tmp_path: Path) -> None:
    addresses = {
        "web": "https://me:hunter2-of-the-url@host/mcp?key=hunter2-of-the-query",
        "program": "tool --token=hunter2-of-the-option hunter2-bare",
    }
    run(Library(), mcp_urls_dict=addresses)
    written = "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())
    (journal,) = tmp_path.rglob("journal.sqlite")
    with JournalReader.open(journal) as reader:
        kept = [reader.bodies.unpacked(row.body) for table in (CALLS, RESULTS) for row in reader.rows(table)]
    assert kept
    assert "hunter2" not in written
    assert not [text for text in kept if "hunter2" in text]
    assert "https://host/mcp" in written
    assert "tool (2 arguments not shown)" in written


def test_a_run_without_servers_says_that_it_had_none(world: Make, tmp_path: Path) -> None:
    here = world()
    here.run(here.config(), Destination(run_dir=tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["tool_servers"] == []


def test_what_is_odd_about_a_server_is_a_warning_of_its_items_and_a_note_of_the_run(run: Make) -> None:
    library = Library(changed_after=4)
    results, said = run(library, questions=3)
    assert len(library.calls) == 12
    by_question = {result.metadata.question_id: result for result in results}
    assert [by_question[f"q{n}"].metadata.warnings for n in range(3)] == [(), *[("the server changed",)] * 2]
    assert {str(result.outcome) for result in results} == {"passed"}
    assert results.get_summary()["notes"] == ["the server changed"]
    assert said["summary"]["notes"] == ["the server changed"]


def test_a_server_that_is_as_it_was_is_no_note(run: Make) -> None:
    results, said = run(Library())
    assert results.get_summary()["notes"] == said["summary"]["notes"] == []
    assert results[0].metadata.warnings == ()
