"""A run's journal, exported as a recording, is replayed without any call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.ports.stored_calls import Metered
from karenina_calls.ports.structured import StructuredParser
from karenina_replay.recording import Player, Recording
from karenina_runs.folder.recording import recording_lines, write_recording
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader

from karenina_core import ModelConfig
from karenina_core.errors import ConfigError, ParseError, PortError
from karenina_core.ports.call_origin import current_stage
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import CallContext, LLMResponse, ParsePortResult, PortCapabilities
from karenina_core.testing import ScriptedCall, ScriptedLLM
from karenina_core.values.message import Message, UsageMetadata

MODEL = ModelConfig(model_name="m", interface="anything")
USAGE = UsageMetadata(3, 4, 7, 0.25)
TARGET = CallTarget.of_model("llm", MODEL)


def metered(port: Any, journal: Journal) -> CallPort:
    return CallPort(TARGET, port).behind(Metered(MODEL, store=journal))


def replaying(port: Any, file: Path) -> CallPort:
    return CallPort(TARGET, port, (Layer(Player(Recording(file))),))


@define
class Counting:
    """A port whose replies are numbered."""

    asked: int = 0
    capabilities: PortCapabilities = field(factory=PortCapabilities)

    async def ainvoke(self, messages: Sequence[Message], **options: Any) -> LLMResponse:
        self.asked += 1
        if messages[-1].text == "fails":
            raise PortError("no", kind="server")
        return LLMResponse(content=f"reply {self.asked} to {messages[-1].text}", usage=USAGE)

    async def aparse(self, messages: Sequence[Message], schema: Any, **options: Any) -> ParsePortResult:
        self.asked += 1
        if messages[-1].text == "prose":
            raise ParseError("no JSON", raw_response="Well,")
        return ParsePortResult(data={"n": self.asked}, usage=USAGE, channel="text")

    async def aclose(self) -> None:
        """There is nothing to close."""


async def an_item(port: Any, version: str = "1") -> list[Any]:
    """What a run's item asks, and what it gets; equal calls get replies of their own."""
    current_item.set(ItemCalls("q1", "r1"))
    current_stage.set(("a stage", version))
    context = CallContext("generation", replicate=2)
    got: list[Any] = []
    for text in ("one", "two", "one", "\ud800 odd"):
        got.append(await port.ainvoke([Message.user(text)], call=context))
    for text in ("data", "prose"):
        try:
            got.append(await port.aparse([Message.user(text)], {"type": "object"}, call=CallContext("parsing")))
        except ParseError as error:
            got.append((str(error), error.raw_response))
    with pytest.raises(PortError):
        await port.ainvoke([Message.user("fails")], call=context)
    return got


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_journal_is_replayed(tmp_path: Path, version: str) -> None:
    asked = Counting()

    async def recorded() -> list[Any]:
        journal = Journal.open(tmp_path)
        got = await an_item(metered(asked, journal), version)
        await journal.aclose()
        return got

    got = asyncio.run(recorded())
    assert asked.asked == 7
    file = tmp_path / "recording.jsonl"
    with JournalReader.open(tmp_path) as reader:
        assert write_recording(reader, file) == 6
    replayed = replaying(Counting(), file)
    assert asyncio.run(an_item(replayed, version)) == got
    assert replayed.inner.asked == 0

    async def resumed() -> list[Any]:
        journal = Journal.open(tmp_path)
        again = await an_item(metered(asked, journal), version)
        await journal.aclose()
        return again

    assert asyncio.run(resumed()) == got
    assert asked.asked == 8  # what had failed was asked again, and nothing else


def test_a_journal_is_replayed_where_its_model_refused_a_channel(tmp_path: Path) -> None:
    """What failed is in no recording of a journal."""

    def script(call: ScriptedCall) -> Any:
        assert call.output is not None
        refused = PortError("not supported", kind="invalid_request", status=400)
        return refused if call.output.channel == "json_schema" else {"n": 1}

    llm = ScriptedLLM(script, channels=["json_schema", "tool_call", "text"])

    async def parsed(port: Any) -> list[ParsePortResult]:
        return [await StructuredParser(port).aparse([Message.user("?")], {"maxProperties": n}) for n in (1, 2)]

    async def recorded() -> list[ParsePortResult]:
        journal = Journal.open(tmp_path)
        got = await parsed(metered(llm, journal))
        await journal.aclose()
        return got

    got = asyncio.run(recorded())
    assert [result.channel for result in got] == ["tool_call"] * 2
    file = tmp_path / "recording.jsonl"
    with JournalReader.open(tmp_path) as reader:
        assert write_recording(reader, file) == 2
    asked = len(llm.calls)
    assert asyncio.run(parsed(replaying(llm, file))) == got
    assert len(llm.calls) == asked


def test_a_line_has_what_a_recording_has(tmp_path: Path) -> None:
    async def recorded() -> None:
        journal = Journal.open(tmp_path)
        await metered(Counting(), journal).ainvoke([Message.user("one")])
        await journal.aclose()

    asyncio.run(recorded())
    with JournalReader.open(tmp_path) as reader:
        (line,) = map(json.loads, recording_lines(reader))
    parts = [
        "format",
        "key",
        "kind",
        "model",
        "task",
        "replicate",
        "messages",
        "schema",
        "channel",
        "parameters",
        "reply",
    ]
    assert sorted(line) == sorted(parts)
    assert (line["format"], line["kind"], line["messages"][0]["content"][0]["text"]) == (1, "llm", "one")


def test_a_recording_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    Journal.open(tmp_path).close()
    with JournalReader.open(tmp_path) as reader:
        with pytest.raises(ConfigError, match="cannot be written"):
            write_recording(reader, tmp_path / "nowhere" / "recording.jsonl")
        (tmp_path / "taken").mkdir()
        with pytest.raises(ConfigError, match="cannot be written"):
            write_recording(reader, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.sqlite", "run.lock", "taken"]
