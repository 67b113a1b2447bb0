"""Whatever goes wrong with spans, items have the results that they have without; and how a run ends is recorded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import karenina_opentelemetry
import pytest
from karenina_calls.models.model_ports import middleware
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.port_calls import AgentCall
from karenina_calls.services.embedding import Embeddings
from karenina_calls.services.shared import embedder_of
from karenina_opentelemetry import tracing
from karenina_opentelemetry.items import finished, started
from karenina_opentelemetry.tracing import use_provider
from karenina_runs.execute.runner import Destination, execute
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Sampler, SamplingResult
from opentelemetry.trace import SpanKind, StatusCode

from karenina_core import Karenina, ModelConfig, hookimpl
from karenina_core.errors import ConfigError, ParseError, PortError
from karenina_core.ports.middleware import CallKind, CallTarget, Proceed
from karenina_core.ports.values import AgentResult, LLMResponse, PortCapabilities
from karenina_core.testing import ScriptedServer, application
from karenina_core.values.message import Message, UsageMetadata

Traced = Callable[..., Any]
MODEL = ModelConfig(interface="litellm", model_name="m", endpoint_base_url="http://localhost/v1")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_complained", set())


class Breaks(SpanProcessor):
    """Of somebody else."""

    def __init__(self, where: str) -> None:
        self.where = where

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.where == "start":
            raise RuntimeError("broken")

    def on_end(self, span: Any) -> None:
        if self.where == "end":
            raise RuntimeError("broken")


class Undecided(Sampler):
    def should_sample(self, *_: Any, **__: Any) -> SamplingResult:
        raise RuntimeError("broken")

    def get_description(self) -> str:
        return "undecided"


def sent_to(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def provider_of(where: str) -> TracerProvider:
    if where == "sampler":
        return TracerProvider(sampler=Undecided())
    provider = TracerProvider()
    provider.add_span_processor(Breaks(where))
    return provider


@pytest.mark.parametrize("where", ["start", "end", "sampler"])
def test_a_broken_provider_costs_a_line_and_no_item(
    where: str, app_with: Callable[..., Karenina], untraced: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    app = app_with(enabled=True)
    use_provider(app, provider_of(where))
    with caplog.at_level(logging.WARNING):
        assert [str(result.outcome) for result in untraced(app, "q", "p")] == ["passed", "passed"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("a span is not as it should be")
    assert "RuntimeError: broken" in line


def test_what_is_not_sampled_is_not_sent_and_costs_no_item(
    app_with: Callable[..., Karenina], untraced: Callable[..., Any]
) -> None:
    exporter, app = InMemorySpanExporter(), app_with(enabled=True)
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_provider(app, provider)
    assert str(untraced(app, "q")[0].outcome) == "passed"
    assert exporter.get_finished_spans() == ()


def test_an_application_that_makes_no_spans_takes_no_provider(app_with: Callable[..., Karenina]) -> None:
    for app in (app_with(), application()):
        with pytest.raises(ConfigError, match="'enabled': True"):
            use_provider(app, TracerProvider())


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_run_that_fails_or_is_interrupted_says_so(
    app_with: Callable[..., Karenina], prepared: Callable[..., Any], model_server: ScriptedServer, interrupt: bool
) -> None:
    app, exporter = app_with(enabled=True), InMemorySpanExporter()
    use_provider(app, sent_to(exporter))

    def refuse(result: Any) -> None:
        raise OSError("no room for it")

    async def run() -> None:
        work = asyncio.create_task(execute(prepared(app, "slow" if interrupt else "q"), on_result=refuse))
        if interrupt:
            await asyncio.to_thread(model_server.wait_for, 1, 30)
            work.cancel()
        with pytest.raises(asyncio.CancelledError if interrupt else OSError):
            await work
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(run())
    app.loop.close()
    ended = {span.name: span for span in exporter.get_finished_spans()}
    status = "interrupted" if interrupt else "failed"
    assert ended["run"].attributes["karenina.run.status"] == ended["run"].attributes["error.type"] == status
    assert ended["run"].status.status_code is StatusCode.ERROR
    cut = {name for name, span in ended.items() if span.attributes.get("error.type") == "cancelled"}
    assert cut == ({"item", "stage GenerateAnswer", "chat plain"} if interrupt else set())


@pytest.mark.parametrize("opens", [True, False])
def test_a_run_inside_of_a_run_is_a_part_of_it(
    traced: Traced, app_with: Callable[..., Karenina], prepared: Callable[..., Any], opens: bool
) -> None:
    """Also where its sink cannot be opened, so that it ends without having begun."""

    class Runs:
        @hookimpl
        def karenina_wrap_stage(self, stage: Any) -> Any:
            async def around(context: Any, proceed: Any) -> None:
                if stage.name == "GenerateAnswer" and context.question_id == "outer":
                    sinks = [] if opens else ["jsonl:/no/such/folder/results.jsonl"]
                    with contextlib.suppress(ConfigError):
                        await execute(prepared(inner, "inner"), Destination(sinks=sinks))
                await proceed()

            return around

    inner = app_with(enabled=True)
    exporter = InMemorySpanExporter()
    provider = sent_to(exporter)
    use_provider(inner, provider)
    run = traced("outer", provider=provider, plugins=[Runs()])
    runs = run.of("run")
    assert len(runs) == (2 if opens else 1)
    (outer,) = [span for span in runs if span.parent is None]
    assert all(span.end_time <= outer.end_time for span in run.spans)
    (item,) = [span for span in run.of("item") if span.attributes["karenina.question.id"] == "outer"]
    assert run.parent(item) is outer
    assert [run.parent(span) for span in runs if span is not outer] == ([item] if opens else [])
    assert outer.attributes["karenina.run.status"] == "completed"
    inner.loop.close()


def test_runs_that_one_task_begins_inside_of_each_other_end_in_turn() -> None:
    app = application(karenina_opentelemetry, settings={"opentelemetry": {"enabled": True}})
    exporter = InMemorySpanExporter()
    use_provider(app, sent_to(exporter))

    async def main() -> None:
        started({"run_name": "outer"}, app)
        outer = trace.get_current_span()
        started({"run_name": "inner"}, app)
        finished({}, "completed")
        assert trace.get_current_span() is outer
        finished({}, "completed")
        assert not trace.get_current_span().get_span_context().is_valid
        finished({}, "completed")  # of a run that has not begun

    asyncio.run(main())
    inner, outer = exporter.get_finished_spans()
    assert inner.attributes["karenina.run.name"] == "inner"
    assert outer.attributes["karenina.run.name"] == "outer"
    assert inner.parent.span_id == outer.context.span_id


class Port:
    """Gives back, or raises, what it is made with."""

    def __init__(self, given: Any, *, needs_provider: bool = True) -> None:
        self.given = given
        self.capabilities = PortCapabilities(needs_provider=needs_provider)

    async def ainvoke(self, messages: Sequence[Message], **_: Any) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    async def aparse(self, messages: Sequence[Message], schema: Any, **_: Any) -> Any:
        return await self.ainvoke(messages)


def traced_app(exporter: InMemorySpanExporter) -> Karenina:
    app = application(karenina_opentelemetry, settings={"opentelemetry": {"enabled": True}})
    use_provider(app, sent_to(exporter))
    return app


def asked(port: Port, method: str = "ainvoke") -> Any:
    """The span of one call."""
    exporter, target = InMemorySpanExporter(), CallTarget.of_model("llm", MODEL)
    call = getattr(CallPort(target, port, middleware(traced_app(exporter), target)), method)
    arguments = [[Message.user("?")], {}] if method == "aparse" else [[Message.user("?")]]

    async def main() -> None:
        await asyncio.gather(call(*arguments), return_exceptions=True)

    asyncio.run(main())
    (span,) = exporter.get_finished_spans()
    return span


def test_a_call_that_is_played_back_went_nowhere() -> None:
    span = asked(Port(LLMResponse(content="x"), needs_provider=False))
    assert span.kind is SpanKind.INTERNAL
    assert "server.address" not in span.attributes
    span = asked(Port(LLMResponse(content="x")))
    assert span.kind is SpanKind.CLIENT
    assert span.attributes["server.port"] == 80


def test_unknown_tokens_are_no_number() -> None:
    span = asked(Port(LLMResponse(content="x", usage_unavailable=True)))
    assert [name for name in span.attributes if "usage" in name] == []


def test_a_judge_that_talks_nonsense_has_cost_its_tokens() -> None:
    error = ParseError("no JSON")
    error.usage = UsageMetadata(10, 2, 12, cache_read_tokens=4)
    attributes = asked(Port(error), "aparse").attributes
    assert attributes["error.type"] == "judge"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (10, 2)
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 4


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (None, "plugin"),
        (PortError("no", kind="rate_limited"), "rate_limited"),
        (TimeoutError("no"), "timeout"),
        (ZeroDivisionError("no"), "ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("method", ["ainvoke", "aparse"])
def test_a_failed_call_says_of_which_kind(given: Any, kind: str, method: str) -> None:
    span = asked(Port(given), method)
    assert span.attributes["error.type"] == kind
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()


def test_an_agent_that_failed_records_what_it_did(traced: Traced) -> None:
    class Fails:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any:
            async def failing(call: AgentCall, proceed: Proceed) -> AgentResult:
                error = PortError("the work is lost", kind="server")
                error.evidence = {"agent_result": await proceed(call)}
                raise error

            return failing if target.kind == "work" else None

    inside = type("z_fails", (Fails,), {})  # plugins are in front of each other in the order of their names
    agent = traced("q", answering="agent", plugins=[inside()]).one("invoke_agent")
    assert agent.attributes["error.type"] == "server"
    assert agent.attributes["gen_ai.usage.input_tokens"] == 30
    assert agent.attributes["karenina.agent.turns"] == 2


def test_an_embedder_has_spans() -> None:
    class Embeds:
        def __init__(self, model: str) -> None:
            self.model = model

        def problem(self) -> str | None:
            return None

        async def aembed(self, texts: Sequence[str]) -> Embeddings:
            return Embeddings(vectors=((1.0, 0.0),) * len(texts), model="used", usage=UsageMetadata(7, 0, 7))

    class Brings:
        @hookimpl
        def karenina_register_embedders(self, registry: Any) -> None:
            registry.add(Embeds, name="mine")

    app = application(karenina_opentelemetry, Brings(), settings={"opentelemetry": {"enabled": True}})
    exporter = InMemorySpanExporter()
    use_provider(app, sent_to(exporter))
    embedder = embedder_of(app, "mine", "small")
    assert embedder.problem() is None
    assert asyncio.run(embedder.aembed(["said"])).model == "used"
    (span,) = exporter.get_finished_spans()
    assert span.name == "embeddings small"
    assert span.attributes["gen_ai.operation.name"] == "embeddings"
    assert span.attributes["gen_ai.provider.name"] == "mine"
    assert span.attributes["gen_ai.embeddings.dimension.count"] == 2
    assert span.attributes["gen_ai.usage.input_tokens"] == 7


@pytest.mark.parametrize("kind", ["agent", "search", "tool"])
def test_calls_that_have_no_spans_are_left_alone(kind: CallKind) -> None:
    target = CallTarget.of_model(kind, MODEL) if kind == "agent" else CallTarget(kind, "mine")
    assert middleware(traced_app(InMemorySpanExporter()), target) == ()
