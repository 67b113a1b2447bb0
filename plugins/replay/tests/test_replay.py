"""What is recorded comes back, nothing else does, and no secret is ever written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.ports.port_calls import LLMCall
from karenina_calls.records.requests import Request
from karenina_replay.recording import Player, Recorder, Recording, Writer
from karenina_replay.settings import ReplaySettings

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.errors import ConfigError, ParseError, PortError, RunDirectoryError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import CallContext, LLMResponse, OutputFormat, ParsePortResult, PortCapabilities, Tool
from karenina_core.testing import Reply, ScriptedServer
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.convert import unstructure
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

TEXTS = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, lambda v: st.dictionaries(TEXTS, v, max_size=3)
)
MESSAGES = st.lists(
    st.builds(Message.system, TEXTS) | st.builds(Message.user, TEXTS) | st.builds(Message.assistant, TEXTS),
    min_size=1,
    max_size=3,
)
OUTPUTS = st.none() | st.builds(
    OutputFormat,
    st.sampled_from(["json_schema", "tool_call", "json_object", "text"]),
    st.dictionaries(TEXTS, JSON, max_size=2),
)
USAGE = st.builds(UsageMetadata, st.integers(0, 9), st.integers(0, 9), st.integers(0, 18), st.none() | st.floats(0, 1))
RESPONSES = st.builds(
    LLMResponse,
    content=TEXTS,
    tool_calls=st.lists(
        st.builds(ToolUseBlock, TEXTS, TEXTS, st.dictionaries(TEXTS, JSON, max_size=2)), max_size=2
    ).map(tuple),
    structured=st.none() | TEXTS,
    thinking=st.none() | TEXTS,
    usage=USAGE,
    finish_reason=st.none() | TEXTS,
    flags=st.lists(st.sampled_from(["nul", "lone_surrogate"]), unique=True).map(tuple),
)
ERRORS = st.builds(
    PortError,
    TEXTS,
    kind=st.sampled_from(["rate_limited", "server", "auth", "bad_response"]),
    status=st.none() | st.integers(400, 599),
)
CALLS = st.builds(CallContext, st.sampled_from(["generation", "parsing"]), replicate=st.integers(1, 3))
MODEL = ModelConfig(model_name="m", interface="anything")
TARGET = CallTarget.of_model("llm", MODEL)


def recording(port: Any, writer: Writer) -> CallPort:
    return CallPort(TARGET, port, (Layer(Recorder(writer), "replay"),))


def replaying(port: Any, recording: Recording) -> CallPort:
    return CallPort(TARGET, port, (Layer(Player(recording), "replay"),))


@define
class Scripted:
    """A port that gives the next outcome of a list."""

    outcomes: list[Any]
    asked: int = 0
    capabilities: PortCapabilities = field(factory=PortCapabilities)

    async def ainvoke(self, messages: Sequence[Message], **options: Any) -> LLMResponse:
        return self._next()

    async def aparse(self, messages: Sequence[Message], schema: Any, **options: Any) -> ParsePortResult:
        return self._next()

    async def aclose(self) -> None:
        pass

    def _next(self) -> Any:
        outcome = self.outcomes[self.asked]
        self.asked += 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def outcome_of(port: Any, messages: Any, output: Any, call: Any) -> Any:
    try:
        return await port.ainvoke(messages, output=output, call=call)
    except PortError as error:
        return (str(error), error.kind, error.status)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(MESSAGES, OUTPUTS, CALLS, RESPONSES | ERRORS), min_size=1, max_size=5, unique_by=lambda c: repr(c[:3])
    )
)
def test_replaying_a_recording_is_the_identity(calls: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        recorder = recording(Scripted([outcome for *_, outcome in calls]), Writer(path))
        live = [asyncio.run(outcome_of(recorder, m, o, c)) for m, o, c, _ in calls]
        asyncio.run(recorder.aclose())
        player = replaying(Scripted([]), Recording(path))
        assert [asyncio.run(outcome_of(player, m, o, c)) for m, o, c, _ in calls] == live


MODELS = st.builds(
    ModelConfig,
    model_name=st.sampled_from(["a", "b"]),
    temperature=st.sampled_from([0.0, 0.1]),
    max_tokens=st.sampled_from([1, 2]),
)
REQUESTS = st.builds(
    LLMCall,
    MODELS.map(partial(CallTarget.of_model, "llm")),
    MESSAGES,
    OUTPUTS,
    st.none() | st.sampled_from([0.0, 0.5]),
    st.lists(st.builds(Tool, name=st.sampled_from(["a", "b"]), description=TEXTS), max_size=2),
    CALLS,
).map(lambda call: call.request)


@given(REQUESTS, REQUESTS)
def test_different_requests_never_share_a_key(a: Request, b: Request) -> None:
    assert (a.key == b.key) == (a == b)


def test_equal_calls_get_their_replies_in_order_and_then_the_last_one(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "calls.jsonl")
    recorder = recording(Scripted([LLMResponse(content="1"), LLMResponse(content="2")]), writer)
    question = [Message.user("?")]
    for _ in range(2):
        asyncio.run(recorder.ainvoke(question))
    asyncio.run(recorder.aclose())
    player = replaying(Scripted([]), Recording(tmp_path / "calls.jsonl"))
    assert [asyncio.run(player.ainvoke(question)).content for _ in range(3)] == ["1", "2", "2"]


def test_a_failure_that_was_overcome_is_not_replayed(tmp_path: Path) -> None:
    outcomes = [PortError("busy", kind="rate_limited"), LLMResponse(content="ok")]
    recorder = recording(Scripted(outcomes), Writer(tmp_path / "calls.jsonl"))
    question = [Message.user("?")]
    with pytest.raises(PortError):
        asyncio.run(recorder.ainvoke(question))
    asyncio.run(recorder.ainvoke(question))
    asyncio.run(recorder.aclose())
    player = replaying(Scripted([]), Recording(tmp_path / "calls.jsonl"))
    assert asyncio.run(player.ainvoke(question)).content == "ok"


def test_parsers_are_recorded_too_with_their_failures(tmp_path: Path) -> None:
    failure = ParseError("no JSON", raw_response="hm")
    failure.usage, failure.channel = UsageMetadata(1, 2, 3), "text"
    result = ParsePortResult(data={"a": 1}, usage=UsageMetadata(1, 1, 2), raw='{"a": 1}')
    recorder = recording(Scripted([result, failure]), Writer(tmp_path / "calls.jsonl"))
    asyncio.run(recorder.aparse([Message.user("a")], {"type": "object"}))
    with pytest.raises(ParseError):
        asyncio.run(recorder.aparse([Message.user("b")], {"type": "object"}))
    asyncio.run(recorder.aclose())
    player = replaying(Scripted([]), Recording(tmp_path / "calls.jsonl"))
    assert asyncio.run(player.aparse([Message.user("a")], {"type": "object"})) == result
    with pytest.raises(ParseError) as caught:
        asyncio.run(player.aparse([Message.user("b")], {"type": "object"}))
    assert (caught.value.raw_response, caught.value.usage, caught.value.channel) == ("hm", failure.usage, "text")


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "line 1"), ('{"key": "x"}', "line 1"), ('\n{"format": 9, "key": "x", "reply": {}}', "format is 9")],
)
def test_a_broken_recording_names_its_line(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text(content)
    with pytest.raises(ConfigError, match=message):
        Recording(tmp_path / "calls.jsonl")


def test_a_missing_recording_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--record"):
        Recording(tmp_path / "nothing.jsonl")


def test_nothing_is_recorded_over(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text("kept")
    with pytest.raises(RunDirectoryError, match="exists"):
        Writer(tmp_path / "calls.jsonl").open()
    assert (tmp_path / "calls.jsonl").read_text() == "kept"


def test_record_and_replay_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="not both"):
        ReplaySettings(record="a", replay="b")


# Whole runs

QUICK = RetryPolicy(server=AttemptPolicy(3, 0.0, 0.01))
SPEC = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "target",
            "type": "str",
            "description": "the protein named as target",
            "ground_truth": "BCL2",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}
BENCHMARK = Benchmark(
    name="b",
    questions=[
        Question(
            id=f"q{i}",
            question=f"Target of venetoclax? {i}",
            answer_template=json.dumps(SPEC),
            template_language="karenina-template",
        )
        for i in range(3)
    ],
)


NOWHERE = "http://127.0.0.1:9/v1"


def run(
    url: str, plugin: dict[str, str], interface: str = "openai_endpoint", settings: Any = None, **model: Any
) -> Any:
    app = Karenina.installed(settings={"replay": plugin})
    config = ModelConfig(model_name="scripted", interface=interface, endpoint_base_url=url, **model)
    return BENCHMARK.run_verification(
        VerificationConfig(answering_models=[config], parsing_models=[config], retry_policy=QUICK, **(settings or {})),
        run_name="fixed",
        app=app,
    )


def timeless(results: Any) -> list[dict[str, Any]]:
    """Results without times, sorted."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("seconds", "timestamp", "execution_time")}
        return [strip(v) for v in value] if isinstance(value, list | tuple) else value

    return sorted((strip(unstructure(result)) for result in results), key=lambda row: row["metadata"]["question_id"])


def honest(request: Any) -> Any:
    return {"target": "BCL2"} if request.schema else "Venetoclax binds BCL2."


def test_a_replayed_run_equals_the_recorded_one_without_a_server(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(honest) as server:
        live = run(server.url, {"record": file})
    replayed = run(NOWHERE, {"replay": file})
    assert timeless(replayed) == timeless(live)
    assert [result.metadata.outcome for result in replayed] == ["passed"] * 3


def test_a_call_that_was_not_recorded_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(honest) as server:
        run(server.url, {"record": file})
    results = run(NOWHERE, {"replay": file}, temperature=0.9)
    assert {str(result.outcome) for result in results} == {"error(invalid_request)"}
    assert "holds no call of task 'generation' for question 'q0'" in str(results[0].metadata.error) + str(
        [r.metadata.error for r in results]
    )
    assert "--record" in str(results[0].metadata.error)


@pytest.mark.parametrize("interface", ["openai_endpoint", "litellm"])
def test_a_replay_needs_no_key_and_opens_no_adapter(
    interface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "calls.jsonl")
    monkeypatch.setenv("CANARY_API_KEY", "canary-4711-secret")
    with ScriptedServer(honest) as server:
        live = run(server.url, {"record": file}, interface, api_key_env="CANARY_API_KEY")
        assert server.requests[0].headers["authorization"] == "Bearer canary-4711-secret"
    monkeypatch.delenv("CANARY_API_KEY")
    assert timeless(run(NOWHERE, {"replay": file}, interface, api_key_env="CANARY_API_KEY")) == timeless(live)


def test_secrets_are_never_recorded_even_when_a_server_repeats_them(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    key = "canary-0815-secret"

    def echo(request: Any) -> Any:
        return {"target": "BCL2"} if request.schema else f"{request.headers['authorization']} BCL2"

    with ScriptedServer(echo) as server:
        run(server.url, {"record": str(file)}, endpoint_api_key=key)
    assert file.stat().st_size > 0
    assert key not in file.read_text()


def test_a_refused_channel_is_replayed_as_it_was(tmp_path: Path) -> None:
    def script(request: Any) -> Any:
        if request.channel == "json_schema":
            return Reply.error(400, "response_format is unknown")
        return {"target": "BCL2"} if request.channel == "tool_call" else "BCL2"

    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(script) as server:
        live = run(server.url, {"record": file})
    replayed = run(NOWHERE, {"replay": file})
    assert [r.metadata.outcome for r in replayed] == [r.metadata.outcome for r in live] == ["passed"] * 3
    assert {r.template.judge_channel for r in replayed} == {"tool_call"}


def refusing(request: Any) -> Any:
    if request.channel == "json_schema":
        return Reply.error(400, "response_format is unknown")
    return {"target": "BCL2"} if request.channel == "tool_call" else "BCL2"


@pytest.mark.parametrize(("recorded", "replayed"), [(1, 3), (3, 1)])
def test_a_refused_channel_is_replayed_whatever_is_asked_at_the_same_time(
    tmp_path: Path, recorded: int, replayed: int
) -> None:
    """One after the other, only the first call is refused: the others do not try the channel any more."""
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(refusing) as server:
        live = run(server.url, {"record": file}, settings={"concurrency": recorded})
        assert server.count == 7 or recorded > 1
    again = run(NOWHERE, {"replay": file}, settings={"concurrency": replayed})
    assert timeless(again) == timeless(live)
    assert {r.template.judge_channel for r in again} == {"tool_call"}


def test_what_is_recorded_on_no_channel_is_missing(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(refusing) as server:
        run(server.url, {"record": file}, settings={"concurrency": 1})
    lines = [line for line in Path(file).read_text().splitlines() if '"channel":"tool_call"' not in line]
    Path(file).write_text("\n".join(lines))
    results = run(NOWHERE, {"replay": file}, settings={"concurrency": 1})
    assert {str(result.outcome) for result in results} == {"error(invalid_request)"}
    assert {"holds no call of task" in str(result.metadata.error) for result in results} == {True}


def test_recording_waits_for_nothing_that_a_run_would_not_do(tmp_path: Path) -> None:
    """Making the ports for the check before a run neither makes the file nor calls a model."""
    file = tmp_path / "calls.jsonl"
    app = Karenina.installed(settings={"replay": {"record": str(file)}})
    model = ModelConfig(model_name="m", interface="openai_endpoint")
    with pytest.raises(ConfigError, match="endpoint_base_url"):
        BENCHMARK.run_verification(
            VerificationConfig(answering_models=[model], parsing_models=[evolve(model)]), app=app
        )
    assert not file.exists()
