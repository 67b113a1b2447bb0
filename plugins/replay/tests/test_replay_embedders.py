"""The calls of embedders are recorded beside those of models, and come back without the embedder."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.ports.port_calls import LLMCall, ParserCall
from karenina_calls.records.requests import EmbeddingRequest
from karenina_calls.services.embedding import EmbedderPort, Embeddings
from karenina_calls.services.shared import embedder_of
from karenina_replay.recording import Player, Recorder, Recording, Writer, writer_of

from karenina_core import ModelConfig, hookimpl
from karenina_core.errors import KareninaError, PluginError, PortError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import CallContext, LLMResponse, PortCapabilities
from karenina_core.testing import application
from karenina_core.values.message import Message, UsageMetadata

EMBEDDER = CallTarget("embedder", "e", "m")
TEXTS = st.lists(st.text(max_size=10), max_size=3).map(tuple)
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
VECTORS = st.lists(
    st.lists(SINGLE | st.floats(allow_nan=False, allow_infinity=False), max_size=4).map(tuple), max_size=3
)
FOUND = st.builds(
    Embeddings,
    vectors=VECTORS.map(tuple),
    model=st.text(max_size=5),
    usage=st.builds(UsageMetadata, st.integers(0, 9), st.just(0), st.integers(0, 9), st.none() | st.floats(0, 1)),
)
FAILURES = st.builds(
    PortError, st.text(max_size=9), kind=st.sampled_from(["server", "auth"]), status=st.none() | st.integers(400, 599)
) | st.builds(PluginError, st.text(max_size=9))


@define
class Scripted:
    """An embedder that gives the next outcome of a list."""

    outcomes: list[Any]
    asked: list[tuple[str, ...]] = field(factory=list)

    def problem(self) -> str | None:
        return "it is not installed"

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        self.asked.append(tuple(texts))
        outcome = self.outcomes[len(self.asked) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        found: Embeddings = outcome
        return found


def outcome_of(embedder: EmbedderPort, texts: Sequence[str]) -> Any:
    try:
        return asyncio.run(embedder.aembed(texts))
    except KareninaError as error:
        return (str(error), error.kind, getattr(error, "status", None))


def recorder(writer: Writer, *outcomes: Any) -> CallPort:
    return CallPort(EMBEDDER, Scripted(list(outcomes)), (Layer(Recorder(writer)),))


def player(recording: Recording, target: CallTarget = EMBEDDER) -> CallPort:
    return CallPort(target, Scripted([]), (Layer(Player(recording)),))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TEXTS, FOUND | FAILURES), min_size=1, max_size=4, unique_by=lambda call: call[0]))
def test_replaying_an_embedder_is_the_identity(calls: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        writer = Writer(path)
        recording = recorder(writer, *(outcome for _, outcome in calls))
        live = [outcome_of(recording, texts) for texts, _ in calls]
        writer.close()
        replaying = player(Recording(path))
        assert [outcome_of(replaying, texts) for texts, _ in calls] == live


@given(SINGLE)
def test_a_number_of_single_precision_keeps_every_bit(number: float) -> None:
    written: float = json.loads(json.dumps(number))
    assert struct.pack("f", written) == struct.pack("f", number)


REQUESTS = st.builds(EmbeddingRequest, st.sampled_from("ab"), st.sampled_from("mn"), TEXTS)


@given(REQUESTS, REQUESTS)
def test_different_calls_never_share_a_key(a: EmbeddingRequest, b: EmbeddingRequest) -> None:
    assert (a.key == b.key) == (a == b)


def test_models_and_embedders_share_one_file_and_do_not_disturb_each_other(tmp_path: Path) -> None:
    class Port:
        capabilities = PortCapabilities()

        async def ainvoke(self, messages: Any, **options: Any) -> LLMResponse:
            return LLMResponse(content="ok")

        async def aclose(self) -> None:
            """Nothing to close."""

    writer = Writer(tmp_path / "calls.jsonl")
    model = ModelConfig(model_name="m", interface="anything")
    target = CallTarget.of_model("llm", model)
    asyncio.run(CallPort(target, Port(), (Layer(Recorder(writer)),)).ainvoke([Message.user("?")]))
    found = Embeddings(vectors=((0.1, 0.2),), model="really-used")
    asyncio.run(recorder(writer, found).aembed(["?"]))
    writer.close()
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["llm", "embedder"]
    assert lines[1]["texts"] == ["?"]
    assert lines[1]["reply"]["vectors"] == [[0.1, 0.2]]
    recording = Recording(tmp_path / "calls.jsonl")
    assert asyncio.run(player(recording, target).ainvoke([Message.user("?")])).content == "ok"
    assert asyncio.run(player(recording).aembed(["?"])) == found


LLM_KEY = "869c9ee3e93904796a3b1eaf6fc0c18204a309af251df3ecfcc640087ca322b2"
PARSER_KEY = "3127d439048c056921a025179af209153dd103fd4f95af3c5110e61f8ba629d7"


def test_recordings_of_before_are_found_again(tmp_path: Path) -> None:
    """The keys are those that version 0.1.0 wrote for these two calls, when it recorded models only."""
    model = ModelConfig(model_name="m", interface="anything", max_tokens=16384)  # the default at that time
    messages = [Message.user("?")]
    target, parsing = CallTarget.of_model("llm", model), CallContext("parsing", replicate=2)
    assert LLMCall(target, messages, context=CallContext("generation")).request.key == LLM_KEY
    assert ParserCall(target, messages, {"type": "object"}, parsing).request.key == PARSER_KEY
    old = {"format": 1, "key": LLM_KEY, "kind": "llm", "reply": {"content": "ok"}}
    (tmp_path / "old.jsonl").write_text(f"{json.dumps(old)}\n")
    recording = Recording(tmp_path / "old.jsonl")
    assert recording.find(LLM_KEY)[0] == {"content": "ok"}
    with pytest.raises(PortError, match="holds no call of task 'embedding' to e:m"):
        asyncio.run(player(recording).aembed(["a"]))


def test_a_call_that_was_not_recorded_is_an_error_that_names_it(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "calls.jsonl")
    asyncio.run(recorder(writer, Embeddings(vectors=((1.0,),), model="m")).aembed(["a"]))
    writer.close()
    read = Recording(tmp_path / "calls.jsonl")
    for name, model, texts in (("e", "m", ["b"]), ("e", "n", ["a"]), ("f", "m", ["a"])):
        with pytest.raises(PortError, match=r"\(1 texts, key .*record again with --record") as caught:
            asyncio.run(player(read, CallTarget("embedder", name, model)).aembed(texts))
        assert (caught.value.kind, caught.value.final) == ("invalid_request", True)


def test_a_failure_that_was_overcome_is_not_replayed(tmp_path: Path) -> None:
    found = Embeddings(vectors=((1.0,),), model="m")
    writer = Writer(tmp_path / "calls.jsonl")
    recording = recorder(writer, PortError("busy", kind="rate_limited"), found)
    assert outcome_of(recording, ["a"])[1] == "rate_limited"
    asyncio.run(recording.aembed(["a"]))
    writer.close()
    assert asyncio.run(player(Recording(tmp_path / "calls.jsonl")).aembed(["a"])) == found


@define(eq=False)
class Brings:
    """A plugin with one embedder, which counts how often it is made."""

    made: list[str] = field(factory=list)

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        made = self.made

        class Letters(Scripted):
            reports_cost = True

            def __init__(self, model: str) -> None:
                made.append(model)
                super().__init__([Embeddings(vectors=((1.0,),), model="really-used")])

        registry.add(Letters, name="letters")


def test_an_application_records_and_replays_its_embedders(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    plain = embedder_of(application(Brings(), installed=["replay"]), "letters", "m")
    assert type(plain.inner).__name__ == "Letters"
    app = application(Brings(), installed=["replay"], settings={"replay": {"record": file}})
    embedder = embedder_of(app, "letters", "m")
    assert embedder_of(app, "letters", "m") is embedder
    assert embedder.problem() == "it is not installed", "what is recorded must work"
    assert (embedder.needs_provider, embedder.reports_cost) == (True, True), "as the one behind it"
    assert not Path(file).exists()
    found = asyncio.run(embedder.aembed(["a"]))
    writer_of(app.settings("replay")).close()
    replaying = application(Brings(), installed=["replay"], settings={"replay": {"replay": file}})
    replayed = embedder_of(replaying, "letters", "m")
    assert replayed.problem() is None, "what is replayed need not"
    assert replayed.needs_provider is False
    assert asyncio.run(replayed.aembed(["a"])) == found
