"""A model that works with tools and may fail, a judge, and where their spans arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import karenina_opentelemetry
import pytest
from attrs import define, evolve, field, frozen
from karenina_opentelemetry.tracing import use_provider
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from karenina_core import (
    Benchmark,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    hookimpl,
)
from karenina_core.ports.values import Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import ToolUseBlock

CANARY = "canary-of-the-content"
SECRET = "sk-a-secret-of-the-run"
RETRIES = RetryPolicy(
    rate_limited=AttemptPolicy(3, 0.0, 0.01),
    timeout=AttemptPolicy(1),
    connection=AttemptPolicy(1),
    server=AttemptPolicy(3, 0.0, 0.01),
)
TEMPLATE = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "target",
            "type": "str",
            "description": f"The target ({CANARY})",
            "ground_truth": "BCL2",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}


class Tools:
    """A tool server with one tool that works and one that does not."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name

    async def aopen(self) -> None: ...

    async def alist(self) -> Sequence[Tool]:
        async def look(arguments: Mapping[str, Any]) -> ToolOutcome:
            return ToolOutcome(f"{CANARY} {arguments['at']} {SECRET}")

        async def fail(arguments: Mapping[str, Any]) -> ToolOutcome:
            return ToolOutcome(f"no such thing: {CANARY}", is_error=True)

        schema = {"type": "object", "properties": {"at": {"type": "string"}}}
        return [Tool(name=tool.__name__, input_schema=schema, run=tool) for tool in (look, fail)]

    async def aclose(self) -> None: ...


class Begun(SpanProcessor):
    """How many spans were begun."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.count += 1


class ToolServers:
    @hookimpl
    def karenina_register_tool_servers(self, registry: Any) -> None:
        registry.add(Tools, name="mcp")


def says(request: ServedRequest) -> Any:
    """The first request about `busy` is refused, every one about `broken` is, and `slow` takes its time; `agent` works
    with tools."""
    if request.schema is not None:
        wanted = request.schema["properties"]
        return {"target": "BCL2"} if "target" in wanted else {"result": True}
    if "broken" in request.text:
        return Reply.error(400, f"{CANARY} {SECRET}")
    if "slow" in request.text:
        return Reply("late", latency=10)
    if "busy" in request.text and request.number == 1:
        return Reply.error(429, f"{CANARY} {SECRET}")
    if request.model == "agent" and not any(message["role"] == "tool" for message in request.messages):
        calls = [ToolUseBlock("call_1", "look", {"at": CANARY}), ToolUseBlock("call_2", "fail", {"at": SECRET})]
        return Reply(f"{CANARY} {SECRET}", tool_calls=calls, usage=(10, 2))
    return Reply(f"It is BCL2. {CANARY} {SECRET}", usage=(20, 3))


def benchmark(*ids: str, rubric: bool = False) -> Benchmark:
    questions = [
        Question(
            id=name,
            question=f"What is the target? {name} {CANARY}",
            raw_answer=CANARY,
            answer_template=json.dumps(TEMPLATE),
            template_language="karenina-template",
        )
        for name in ids
    ]
    trait = LLMRubricTrait(name="neat", kind="boolean", description=CANARY)
    return Benchmark(name="targets", questions=questions, rubric=Rubric.from_traits([trait]) if rubric else None)


def config(url: str, answering: str = "plain", **more: Any) -> VerificationConfig:
    judge = ModelConfig(
        model_name="judge",
        interface="openai_endpoint",
        endpoint_base_url=url,
        endpoint_api_key=SECRET,
        max_retries=0,
        temperature=0.5,
        max_tokens=99,
    )
    servers = {"tools": "http://127.0.0.1:9/mcp"} if answering == "agent" else {}
    answerer = evolve(judge, id=answering, model_name=answering, mcp_urls_dict=servers, system_prompt=CANARY)
    return VerificationConfig(
        answering_models=[answerer],
        parsing_models=[judge],
        retry_policy=RETRIES,
        retry_max_elapsed_seconds=10,
        **more,
    )


def app_of(*plugins: Any, **settings: Any) -> Karenina:
    """An application of the installed plugins without tool servers, and of this one with these settings."""
    left_out = ("mcp", "opentelemetry")
    names = [info.name for info in Karenina.installed().plugins if info.name not in left_out]
    return application(
        karenina_opentelemetry, ToolServers(), *plugins, installed=names, settings={"opentelemetry": settings}
    )


@define(eq=False)
class Receiver:
    """What arrived at an OTLP receiver over HTTP."""

    url: str = ""
    bodies: list[bytes] = field(factory=list)
    paths: list[str] = field(factory=list)

    @property
    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = []
        for body in self.bodies:
            sent = ExportTraceServiceRequest.FromString(body)
            found += [span for r in sent.resource_spans for s in r.scope_spans for span in s.spans]
        return found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.paths.append(self.path)
            kept.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


@pytest.fixture
def model_server() -> Iterator[ScriptedServer]:
    with ScriptedServer(says) as server:
        yield server


@frozen(eq=False)
class Traced:
    """A finished run."""

    results: Any
    spans: Sequence[Any]

    def of(self, start: str) -> list[Any]:
        """The spans whose names begin so."""
        return [span for span in self.spans if span.name.startswith(start)]

    def one(self, start: str) -> Any:
        (span,) = self.of(start)
        return span

    def parent(self, span: Any) -> Any:
        (found,) = [other for other in self.spans if span.parent and other.context.span_id == span.parent.span_id]
        return found

    @property
    def text(self) -> str:
        """Everything that was exported."""
        return "\n".join(span.to_json() for span in self.spans)


@pytest.fixture
def traced(model_server: ScriptedServer) -> Callable[..., Traced]:
    """`traced(*question ids, answering=..., content=..., rubric=..., provider=..., plugins=..., **configuration)`."""

    def run(
        *ids: str,
        answering: str = "plain",
        content: bool = False,
        rubric: bool = False,
        provider: TracerProvider | None = None,
        plugins: Sequence[Any] = (),
        **more: Any,
    ) -> Traced:
        exporter, begun = InMemorySpanExporter(), Begun()
        provider = provider or TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.add_span_processor(begun)
        app = app_of(*plugins, enabled=True, content=content)
        use_provider(app, provider)
        asked = config(model_server.url, answering, **more)
        results = benchmark(*ids, rubric=rubric).run_verification(asked, app=app)
        app.loop.close()
        provider.shutdown()
        assert len(exporter.get_finished_spans()) == begun.count, "a span was not ended"
        return Traced(results, exporter.get_finished_spans())

    return run


@pytest.fixture
def untraced(model_server: ScriptedServer) -> Callable[..., Any]:
    """`untraced(app, *question ids)`: a run whose spans, if any, go where the application's settings say."""

    def run(app: Karenina, *ids: str) -> Any:
        results = benchmark(*ids).run_verification(config(model_server.url), app=app)
        app.loop.close()
        return results

    return run


@pytest.fixture
def benchmark_file(tmp_path: Path) -> Callable[..., Path]:
    """`benchmark_file(*question ids)`."""

    def save(*ids: str) -> Path:
        benchmark(*ids).save(tmp_path / "targets.jsonld")
        return tmp_path / "targets.jsonld"

    return save


@pytest.fixture
def prepared(model_server: ScriptedServer) -> Callable[..., Prepared]:
    """`prepared(app, *question ids)`: what `execute` runs."""
    return lambda app, *ids: prepare(benchmark(*ids), config(model_server.url), app=app)


@pytest.fixture
def app_with() -> Callable[..., Karenina]:
    """`app_with(**settings)`."""
    return app_of


@pytest.fixture
def words() -> tuple[str, str]:
    """Content and a secret; neither belongs into a span."""
    return CANARY, SECRET
