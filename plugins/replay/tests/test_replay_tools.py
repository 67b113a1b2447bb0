"""Models that work with tools are recorded and replayed turn by turn, with what their servers offered and answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.tools.tool_servers import ToolServer
from karenina_replay.recording import Player, Recorder, Recording, Writer

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig, hookimpl
from karenina_core.errors import PortError, RunDirectoryError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.convert import unstructure
from karenina_core.values.message import Message, ToolUseBlock

NOWHERE = "http://127.0.0.1:9/v1"
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
            id=f"q{i}",
            question=f"Target of venetoclax? {i}",
            answer_template=json.dumps({"class_name": "Answer", "fields": [FIELD]}),
            template_language="karenina-template",
        )
        for i in range(2)
    ],
)


class Library:
    """A server of tools that are here."""

    says = "The target of venetoclax is BCL2."

    def __init__(self, name: str, address: str) -> None: ...

    async def aopen(self) -> None: ...

    async def alist(self) -> Sequence[Tool]:
        async def look_up(given: Mapping[str, Any]) -> ToolOutcome:
            return ToolOutcome(f"{self.says} {json.dumps(given)}", is_error="drug" not in given)

        return [Tool(name="look_up", description="Looks up.", run=look_up)]

    async def aclose(self) -> None: ...


class Unreachable(Library):
    """A server that cannot be reached any more."""

    async def aopen(self) -> None:
        raise PortError("nothing listens", kind="connection")


def working(request: Any) -> Any:
    if request.schema is not None:
        return {"target": "BCL2"}
    results = [message for message in request.messages if message["role"] == "tool"]
    if not results:
        first, second = ToolUseBlock("a", "look_up", {"drug": "venetoclax"}), ToolUseBlock("b", "look_up", {})
        return Reply("Let me look.", tool_calls=[first, second], reasoning="I need a source.")
    return Reply("It is BCL2.")


def run(url: str, plugin: dict[str, str], interface: str, client: type = Library, **fields: Any) -> Any:
    class Tools:
        @hookimpl
        def karenina_register_tool_servers(self, registry: Any) -> None:
            registry.add(client, name="mcp", replaces="mcp")

    app = application(Tools(), installed=True, settings={"replay": plugin})
    judge = ModelConfig(model_name="scripted", interface=interface, endpoint_base_url=url)
    answerer = ModelConfig(
        model_name="scripted",
        interface=interface,
        endpoint_base_url=url,
        mcp_urls_dict={"library": "here"},
        **fields,
    )
    config = VerificationConfig(answering_models=[answerer], parsing_models=[judge])
    return BENCHMARK.run_verification(config, run_name="fixed", app=app)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "timestamp", "execution_time")}
    return [timeless(entry) for entry in value] if isinstance(value, list | tuple) else value


def rows(results: Any) -> list[Any]:
    return sorted((timeless(unstructure(r)) for r in results), key=lambda row: str(row["metadata"]["question_id"]))


@pytest.mark.parametrize("interface", ["openai_endpoint", "litellm"])
def test_replaying_the_work_of_a_model_gives_the_same_result_without_its_server(interface: str, tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(working) as server:
        live = run(server.url, {"record": file}, interface)
        assert server.count == 6
    replayed = run(NOWHERE, {"replay": file}, interface)
    assert rows(replayed) == rows(live)
    assert [str(result.outcome) for result in replayed] == ["passed"] * 2
    assert [row["role"] for row in replayed[0].generation.trace_messages] == ["assistant", "tool", "tool", "assistant"]


def test_a_limit_is_replayed_as_it_was(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(working) as server:
        live = run(server.url, {"record": file}, "openai_endpoint", agent_max_turns=1)
    replayed = run(NOWHERE, {"replay": file}, "openai_endpoint", agent_max_turns=1)
    assert rows(replayed) == rows(live)
    assert {str(result.outcome) for result in replayed} == {"auto_failed(RecursionLimitAutoFail)"}


def test_a_replay_connects_to_no_tool_server_and_runs_no_tool(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(working) as server:
        live = run(server.url, {"record": file}, "openai_endpoint")
    assert rows(run(NOWHERE, {"replay": file}, "openai_endpoint", Unreachable)) == rows(live)


def test_a_server_that_was_not_recorded_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    with ScriptedServer(working) as server:
        run(server.url, {"record": str(file)}, "openai_endpoint")
    lines = [line for line in file.read_text().splitlines() if json.loads(line)["kind"] != "tool"]
    file.write_text("\n".join(lines))
    with pytest.raises(PortError, match=r"holds no call of the tool server 'library' \(its list of tools"):
        run(NOWHERE, {"replay": str(file)}, "openai_endpoint")


SERVED: list[ToolOutcome | Exception] = [ToolOutcome("1"), OSError("no disk"), ToolOutcome("no", is_error=True)]


def test_equal_calls_of_a_tool_get_their_outcomes_in_order_also_failures(tmp_path: Path) -> None:
    outcomes = list(SERVED)

    class Moody(Library):
        async def alist(self) -> Sequence[Tool]:
            async def count(given: Mapping[str, Any]) -> ToolOutcome:
                outcome = outcomes.pop(0)
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome

            return [Tool(name="count", description="Counts.", input_schema={"type": "object"}, run=count)]

    async def called(server: ToolServer, times: int) -> list[ToolOutcome]:
        (tool,) = await server.alist()
        assert (tool.name, tool.description, tool.input_schema) == ("count", "Counts.", {"type": "object"})
        assert tool.run is not None
        found = []
        for _ in range(times):
            try:
                found.append(await tool.run({"n": 1}))
            except OSError as error:
                found.append(ToolOutcome(f"the tool failed: OSError: {error}", is_error=True))
        return found

    writer = Writer(tmp_path / "calls.jsonl")
    target = CallTarget("tool", "s")
    live = asyncio.run(called(CallPort(target, Moody("s", ""), (Layer(Recorder(writer)),)), 3))
    writer.close()
    player = Player(Recording(tmp_path / "calls.jsonl"))
    replayed = asyncio.run(called(CallPort(target, Unreachable("s", ""), (Layer(player),)), 4))
    assert replayed == [*live, live[-1]]


class Plain:
    """A port that was written before there were tools."""

    capabilities = PortCapabilities()

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None
    ) -> LLMResponse:
        return LLMResponse(content="Because.")

    async def aclose(self) -> None: ...


def test_a_port_without_tools_is_recorded_and_replayed_as_before(tmp_path: Path) -> None:
    file, target = tmp_path / "calls.jsonl", CallTarget.of_model("llm", ModelConfig(model_name="m", interface="plain"))
    recorder = CallPort(target, Plain(), (Layer(Recorder(Writer(file))),))
    assert asyncio.run(recorder.ainvoke([Message.user("Why?")])).content == "Because."
    asyncio.run(recorder.aclose())
    assert "tools" not in json.loads(file.read_text().splitlines()[-1])["parameters"]
    player = CallPort(target, Plain(), (Layer(Player(Recording(file))),))
    assert asyncio.run(player.ainvoke([Message.user("Why?")])).content == "Because."
    assert player.capabilities.supports_tools is False


def test_a_model_that_is_open_for_one_item_leaves_the_recording_to_the_others(tmp_path: Path) -> None:
    file, writer = tmp_path / "calls.jsonl", Writer(tmp_path / "calls.jsonl")
    targets = [CallTarget.of_model("llm", ModelConfig(model_name=n, interface="plain")) for n in ("a", "b")]
    whole, brief = (CallPort(target, Plain(), (Layer(Recorder(writer)),)) for target in targets)

    async def items() -> None:
        await whole.aopen()
        for number in range(2):
            await brief.aopen()
            for port in (whole, brief):
                await port.ainvoke([Message.user(f"Why? {number}")])
            await brief.aclose()
            await brief.aclose()
        await whole.aclose()

    asyncio.run(items())
    assert len(file.read_text().splitlines()) == 4
    with pytest.raises(RunDirectoryError, match="record to another file"):
        asyncio.run(whole.aopen())
