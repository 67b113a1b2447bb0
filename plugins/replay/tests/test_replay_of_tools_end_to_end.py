"""Whole runs with tools: what a recording must not hold, and what happens where it does not hold enough."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from karenina_calls.secrets.known_secrets import SECRET_VARIABLES

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig, hookimpl
from karenina_core.log import get_logger
from karenina_core.ports.values import Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.message import ToolUseBlock

TOKEN = "s3cr3tT0kenAbcDef0123456789xyz"
FIELD = {
    "name": "target",
    "type": "str",
    "description": "the protein named as target",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}
BENCHMARK = Benchmark(
    name="b",
    questions=[
        Question(
            id="q",
            question="Target of venetoclax?",
            answer_template=json.dumps({"class_name": "Answer", "fields": [FIELD]}),
            template_language="karenina-template",
        )
    ],
)


@frozen(kw_only=True)
class Books:
    """Settings of the plugin that has the server."""

    variables: Mapping[str, tuple[str, ...]] = field(factory=dict, metadata={SECRET_VARIABLES: True})


class Library:
    """A server whose tool returns what is scripted."""

    says: Any = ToolOutcome("BCL2")

    def __init__(self, name: str, address: str) -> None: ...

    async def aopen(self) -> None: ...

    async def alist(self) -> Sequence[Tool]:
        async def look_up(given: Mapping[str, Any]) -> Any:
            if isinstance(self.says, BaseException):
                raise self.says
            return self.says

        return [Tool(name="look_up", description="Looks up.", run=look_up)]

    async def aclose(self) -> None: ...


def working(request: Any) -> Any:
    if request.schema is not None:
        return {"target": "BCL2"}
    if not any(message["role"] == "tool" for message in request.messages):
        return Reply("Let me look.", tool_calls=[ToolUseBlock("a", "look_up", {})])
    return Reply("It is BCL2.")


def verified(server: type[Library], url: str, settings: Any, out: Path | None = None, address: str = "here") -> Any:
    class Tools:
        @hookimpl
        def karenina_register_settings(self, registry: Any) -> None:
            registry.add(Books, name="books")

        @hookimpl
        def karenina_register_tool_servers(self, registry: Any) -> None:
            registry.add(server, name="mcp", replaces="mcp")

    judge = ModelConfig(model_name="scripted", interface="openai_endpoint", endpoint_base_url=url)
    answering = ModelConfig(
        model_name="scripted",
        interface="openai_endpoint",
        endpoint_base_url=url,
        mcp_urls_dict={"library": address},
    )
    config = VerificationConfig(answering_models=[answering], parsing_models=[judge])
    app = application(Tools(), installed=True, settings=settings)
    (result,) = BENCHMARK.run_verification(config, run_name="fixed", run_dir=out, app=app)
    return result


def test_a_token_in_the_address_of_a_server_is_in_no_recording_and_no_result(tmp_path: Path) -> None:
    class Echoing(Library):
        says = ToolOutcome(f"your token is {TOKEN}")

    recording = tmp_path / "calls.jsonl"
    with ScriptedServer(working) as server:
        settings = {"replay": {"record": str(recording)}}
        verified(Echoing, server.url, settings, tmp_path / "run", f"https://h/mcp?token={TOKEN}")
    texts = [
        path.read_text("utf-8", "replace") for path in (recording, *(tmp_path / "run").rglob("*")) if path.is_file()
    ]
    assert any("your token is" in text for text in texts)
    assert [text for text in texts if TOKEN in text] == []


def test_variables_that_plugins_are_trusted_with_are_secrets_of_the_run_whatever_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Echoing(Library):
        says = ToolOutcome(f"your token is {TOKEN}", warning=f"odd: {TOKEN}")

    monkeypatch.setenv("BOOKS", TOKEN)
    recording = tmp_path / "calls.jsonl"
    with ScriptedServer(working) as server:
        settings = {"replay": {"record": str(recording)}, "books": {"variables": {"library": ["BOOKS"]}}}
        verified(Echoing, server.url, settings, tmp_path / "run", "https://h/mcp")
    texts = [
        path.read_text("utf-8", "replace") for path in (recording, *(tmp_path / "run").rglob("*")) if path.is_file()
    ]
    assert any("your token is" in text for text in texts)
    assert [text for text in texts if TOKEN in text] == []
    monkeypatch.setattr(logging.getLogger("karenina"), "propagate", True)
    get_logger("karenina.test").warning(f"the log has no {TOKEN}")
    assert {record.getMessage() for record in caplog.records if record.name == "karenina.test"} == {
        "the log has no [redacted]"
    }


@pytest.mark.parametrize(
    "says", [None, b"bytes", KeyError("x"), asyncio.CancelledError("mine"), ToolOutcome("no", True)]
)
def test_a_tool_that_fails_is_replayed_as_it_failed(tmp_path: Path, says: Any) -> None:
    class Failing(Library):
        pass

    Failing.says = says
    recording = tmp_path / "calls.jsonl"
    with ScriptedServer(working) as server:
        live = verified(Failing, server.url, {"replay": {"record": str(recording)}})
    again = verified(Failing, "http://127.0.0.1:9/v1", {"replay": {"replay": str(recording)}})
    assert live.generation.trace_messages[1]["tool_result"]["is_error"] is True
    assert [row["content"] for row in again.generation.trace_messages] == [
        row["content"] for row in live.generation.trace_messages
    ]


def test_a_tool_call_that_was_not_recorded_ends_the_item_and_is_named(tmp_path: Path) -> None:
    recording = tmp_path / "calls.jsonl"
    with ScriptedServer(working) as server:
        assert verified(Library, server.url, {"replay": {"record": str(recording)}}).metadata.error is None
    lines = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    kept = [line for line in lines if line["kind"] != "tool" or line["tool"] is None]
    assert len(kept) == len(lines) - 1
    recording.write_text("\n".join(map(json.dumps, kept)), "utf-8")
    result = verified(Library, "http://127.0.0.1:9/v1", {"replay": {"replay": str(recording)}})
    assert str(result.outcome).startswith("error")
    assert "tool 'look_up'" in str(result.metadata.error)
