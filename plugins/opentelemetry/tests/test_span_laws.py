"""Laws of spans: every one ends and hangs where it belongs, and none has content, whatever the content is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import karenina_opentelemetry
import pytest
from attrs import define
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from karenina_calls.models.model_ports import middleware
from karenina_calls.ports.call_port import CallPort
from karenina_calls.services.embedding import Embeddings
from karenina_opentelemetry.items import around_item
from karenina_opentelemetry.tracing import fill, tracing_of, use_provider
from karenina_testing.strategies import results
from karenina_vocabulary.rubric_part import FAILED, read_traits
from karenina_vocabulary.trait_scale import scale_classes
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from karenina_core import ModelConfig
from karenina_core.errors import ParseError, PortError
from karenina_core.ports.middleware import CallKind, CallTarget
from karenina_core.ports.values import (
    AgentResult,
    CallContext,
    LLMResponse,
    ParsePortResult,
    PortCapabilities,
    Tool,
    ToolOutcome,
)
from karenina_core.testing import application
from karenina_core.values.identity import ModelIdentity, TaskIdentity, question_urn
from karenina_core.values.message import Message, ToolUseBlock

PARENTS = {
    "run": {None},
    "item": {"run"},
    "stage": {"item"},
    "chat": {"stage", "invoke_agent"},
    "invoke_agent": {"stage"},
    "execute_tool": {"invoke_agent"},
}
MARK = "\u2603"
"""In all content, and in nothing else."""
CONTENT = st.text(st.characters(exclude_characters=MARK), max_size=30).map(lambda text: f"{MARK}{text}")
MODEL = ModelConfig(interface="litellm", model_name="m")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(st.sampled_from(["fine", "busy", "broken"]), min_size=1, max_size=4),
    concurrency=st.integers(1, 4),
    replicates=st.integers(1, 2),
    answering=st.sampled_from(["plain", "agent"]),
)
def test_every_span_ends_and_hangs_where_it_belongs(
    traced: Callable[..., Any], kinds: list[str], concurrency: int, replicates: int, answering: str
) -> None:
    ids = [f"{kind} {number}" for number, kind in enumerate(kinds)]
    run = traced(*ids, answering=answering, concurrency=concurrency, replicate_count=replicates)
    assert len(run.of("item")) == len(run.results) == len(kinds) * replicates
    for span in run.spans:  # `traced` itself looks whether each was ended
        parent = run.parent(span) if span.parent else None
        assert (parent.name.split()[0] if parent else None) in PARENTS[span.name.split()[0]], span.name
        assert parent is None or parent.start_time <= span.start_time <= span.end_time <= parent.end_time


class Broken(Exception):
    """What a stranger's code raises."""


@define
class Port:
    """Says and raises whatever it is given."""

    text: str
    fails: bool = False
    capabilities: PortCapabilities = PortCapabilities()

    async def ainvoke(self, messages: Sequence[Message], **_: Any) -> LLMResponse:
        if self.fails:
            raise Broken(self.text)
        call = ToolUseBlock("1", "look", {"at": self.text})
        return LLMResponse(content=self.text, thinking=self.text, structured=self.text, tool_calls=(call,))

    async def aparse(self, messages: Sequence[Message], schema: Mapping[str, Any], **_: Any) -> ParsePortResult:
        if self.fails:
            raise ParseError(self.text, raw_response=self.text)
        return ParsePortResult(data={self.text: self.text}, raw=self.text)

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=((1.0, 2.0),) * len(texts), model="m")

    async def arun(self, messages: Sequence[Message], tools: Sequence[Tool], *_: Any, **__: Any) -> AgentResult:
        assert tools[0].run is not None
        await tools[0].run({self.text: self.text})
        done = AgentResult(final_response=self.text, raw_trace=self.text, trace_messages=tuple(messages))
        if self.fails:
            error = PortError(self.text, kind="plugin")
            error.evidence = {"agent_result": done}
            raise error
        return done


def spans_app(*, content: bool = False) -> Any:
    return application(karenina_opentelemetry, settings={"opentelemetry": {"enabled": True, "content": content}})


@contextmanager
def spans_of(app: Any) -> Iterator[list[Any]]:
    """The spans that were ended inside of the block, after it."""
    exporter, provider, found = InMemorySpanExporter(), TracerProvider(), list[Any]()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_provider(app, provider)
    yield found
    found.extend(exporter.get_finished_spans())
    provider.shutdown()


async def say(app: Any, text: str, *, fails: bool) -> None:
    """A text as all content to and from models, agents, tools and embedders."""
    call, messages = CallContext("generation", question_text=text), [Message.system(text), Message.user(text)]

    def traced(target: CallTarget) -> CallPort:
        return CallPort(target, Port(text, fails), middleware(app, target))

    kinds: tuple[CallKind, ...] = ("llm", "parser", "work")
    llm, parser, work = (traced(CallTarget.of_model(kind, MODEL)) for kind in kinds)
    asked = llm.ainvoke(messages, call=call), parser.aparse(messages, {"title": text}, call=call)
    await asyncio.gather(*asked, return_exceptions=True)
    await traced(CallTarget("embedder", "minilm", "m")).aembed([text])

    async def look(arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome(text, is_error=fails, warning=text)

    tools = [Tool(name="look", description=text, input_schema={"title": text}, run=look)]
    await asyncio.gather(work.arun(messages, tools, call=call), return_exceptions=True)


NAMES = ["chat m", "chat m", "embeddings m", "execute_tool look", "invoke_agent m"]


@settings(max_examples=40, deadline=None)
@given(text=CONTENT, fails=st.booleans())
@example(text=f"{MARK}\ud800", fails=False)
@example(text=f"{MARK}\ud800", fails=True)
def test_no_content_gets_into_spans_unless_it_is_wanted(text: str, fails: bool) -> None:
    for content in (False, True):
        app = spans_app(content=content)
        with spans_of(app) as spans:
            asyncio.run(say(app, text, fails=fails))
        assert sorted(span.name for span in spans) == NAMES
        found = {span.name for span in spans if MARK in json.dumps(json.loads(span.to_json()), ensure_ascii=False)}
        assert found == (set(NAMES) - {"embeddings m"} if content else set())
        encode_spans(spans).SerializeToString()  # lone surrogates cannot be sent


def allowed_words(result: Any) -> set[str]:
    """Names, labels and kinds that the events of a result may hold."""
    words = {"karenina.verdict", "true", "false", *FAILED, result.metadata.outcome, result.metadata.outcome_detail}
    for trait in read_traits(result.rubric) if result.rubric else ():
        parts = {**trait.metrics, **(trait.value if isinstance(trait.value, dict) else {})}
        words |= {trait.name, *(f"{trait.name}.{part}" for part in parts), *scale_classes(trait.scale)}
    return {word.encode("utf-8", "replace").decode() for word in words if word}


@settings(max_examples=25, deadline=None)
@given(result=results())
def test_events_of_any_result_hold_names_numbers_and_labels_only(result: Any) -> None:
    app = spans_app()
    task = TaskIdentity("q", "no_template", ModelIdentity("i", "a"), ModelIdentity("i", "b"))

    async def proceed() -> Any:
        return result

    with spans_of(app) as spans:
        asyncio.run(around_item(app)(task, proceed))
    (item,) = spans
    assert item.attributes["karenina.outcome"] == result.metadata.outcome
    values = [value for event in item.events for value in event.attributes.values()]
    assert {value for value in values if isinstance(value, str)} <= allowed_words(result)
    assert "gen_ai.evaluation.explanation" not in {name for event in item.events for name in event.attributes}
    for event in item.events:  # a failed evaluation has no score, and one without failure has something to say
        names = {name.removeprefix("gen_ai.evaluation.") for name in event.attributes}
        assert not {"error.type", "score.value"} <= names
        assert names & {"error.type", "score.value", "score.label"}
    failed = [trait for trait in read_traits(result.rubric) if trait.state in FAILED] if result.rubric else []
    names = [event.attributes["gen_ai.evaluation.name"] for event in item.events if "error.type" in event.attributes]
    assert len(names) == len(failed) + (result.metadata.outcome == "error")
    encode_spans(spans).SerializeToString()


def test_names_that_cannot_be_sent_cost_no_other_span() -> None:
    app = spans_app()
    with spans_of(app) as spans, tracing_of(app).span("\ud800", {"karenina.question.id": "\udfff"}) as span:
        fill(span, {"karenina.benchmark": "\ud800", "karenina.nothing": "", "karenina.unknown": None})
    encode_spans(spans).SerializeToString()
    assert dict(spans[0].attributes) == {"karenina.question.id": "?", "karenina.benchmark": "?"}


@given(text=st.text(min_size=1))
def test_an_id_that_is_made_of_a_text_keeps_its_digits_alone(app_with_none: Any, text: str) -> None:
    from karenina_opentelemetry.items import _shown_id

    shown = _shown_id(question_urn(text), app_with_none)
    assert shown == f"question-{question_urn(text)[-8:]}"


@pytest.fixture(scope="module")
def app_with_none() -> Any:
    from karenina_opentelemetry.settings import TracingSettings
    from karenina_opentelemetry.tracing import Tracing

    return Tracing(TracingSettings(enabled=True))
