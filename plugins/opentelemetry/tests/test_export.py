"""Where spans go: nowhere while off, to a receiver, to the program's own provider; never at an item's cost."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from karenina_opentelemetry import exporting
from karenina_opentelemetry.exporting import OTLP, TIMEOUTS, Forgiving, made_provider, traces_address
from karenina_opentelemetry.settings import TracingSettings
from karenina_opentelemetry.tracing import own_provider
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import ProxyTracerProvider

from karenina_core import Karenina, __version__
from karenina_core.errors import ConfigError

App = Callable[..., Karenina]
Run = Callable[..., Any]
HOST = Path(__file__).parent / "data" / "program_with_a_provider.py"


@pytest.fixture
def flushed() -> Iterator[Callable[[str], None]]:
    """`flushed(endpoint)`: what is waiting for this receiver is sent."""
    used: list[Any] = []

    def flush(endpoint: str) -> None:
        used.append(own_provider("otlp", endpoint))
        used[-1].force_flush()

    yield flush
    for provider in used:
        provider.shutdown()
    own_provider.cache_clear()


def test_spans_arrive_at_a_real_receiver(
    receiver: Any, untraced: Run, app_with: App, flushed: Callable[[str], None], words: tuple[str, str]
) -> None:
    app = app_with(enabled=True, exporter="otlp", endpoint=receiver.url)
    assert str(untraced(app, "q", "broken")[0].outcome)
    flushed(receiver.url)
    assert set(receiver.paths) == {"/v1/traces"}
    names = {span.name for span in receiver.spans}
    assert {"run", "item", "stage GenerateAnswer", "chat plain", "chat judge"} <= names
    roots = [span for span in receiver.spans if not span.parent_span_id]
    assert [root.name for root in roots] == ["run"]
    assert {span.trace_id for span in receiver.spans} == {roots[0].trace_id}
    sent = b"".join(receiver.bodies)
    assert [word for word in words if word.encode() in sent] == []
    assert isinstance(trace.get_tracer_provider(), ProxyTracerProvider), "the program's provider is its own business"


def test_a_receiver_that_is_down_costs_one_line(
    untraced: Run, app_with: App, flushed: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        app = app_with(enabled=True, exporter="otlp", endpoint=endpoint)
        with caplog.at_level(logging.INFO):
            began = time.monotonic()
            assert [str(result.outcome) for result in untraced(app, "q0", "q1")] == ["passed", "passed"]
            took = time.monotonic() - began
            flushed(endpoint)
            flushed(endpoint)
    assert took < 4, "a run does not wait for its spans"
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1, lines
    assert lines[0].startswith("spans could not be sent and are lost; check exporter and endpoint")
    assert "Failed to export spans batch" in lines[0], "the reason is logged"


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
        ("https://a.example/otel", "https://a.example/otel/v1/traces"),
        ("https://a.example/otel/v1/traces/", "https://a.example/otel/v1/traces"),
        ("https://a.example/?of=me", "https://a.example/v1/traces?of=me"),
    ],
)
def test_an_endpoint_is_given_with_or_without_the_path_of_traces(endpoint: str, address: str) -> None:
    assert traces_address(endpoint) == address


class Slow(SpanExporter):
    """Fails after some time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        time.sleep(self.seconds)
        raise ConnectionError("not reachable")


@pytest.mark.parametrize(("seconds", "attempts"), [(0.6, 2), (0.0, 5)])
def test_a_silent_receiver_holds_up_one_batch_and_not_all(
    seconds: float, attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow(seconds)
    exporter = Forgiving(slow, pause=1.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            assert exporter.export([]) is SpanExportResult.FAILURE
        time.sleep(1.1 if seconds else 0)
        exporter.export([])
    assert slow.asked == attempts
    (line,) = [record.getMessage() for record in caplog.records]
    assert "ConnectionError: not reachable" in line


def test_lines_about_exporters_of_the_program_stay(caplog: pytest.LogCaptureFixture) -> None:
    made_provider("otlp", "http://127.0.0.1:9").shutdown()
    with caplog.at_level(logging.WARNING):
        logging.getLogger(OTLP).warning("of the program")
    assert [record.getMessage() for record in caplog.records] == ["of the program"]


@pytest.mark.parametrize(
    ("variables", "name", "version"),
    [
        ({}, "karenina", __version__),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine", None),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=mine,service.version=7"}, "mine", "7"),
    ],
)
def test_spans_say_which_service_they_are_of(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str, version: str | None
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    provider = made_provider("console", "")
    provider.shutdown()
    attributes = provider.resource.attributes
    assert (attributes["service.name"], attributes.get("service.version")) == (name, version)


@pytest.mark.parametrize("variable", ["", *TIMEOUTS])
def test_the_time_for_a_batch_is_ours_unless_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A receiver that takes the connection and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        if variable:
            monkeypatch.setenv(variable, "0.2")
        else:
            monkeypatch.setattr(exporting, "TIMEOUT", 0.2)
        exporter = exporting._otlp(f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert Forgiving(exporter).export([]) is SpanExportResult.FAILURE
        assert time.monotonic() - began < 2
        exporter.shutdown()


def test_a_program_that_is_ended_sends_what_there_is(
    receiver: Any, model_server: Any, benchmark_file: Callable[..., Path], forking: Any
) -> None:
    """The command line, ended at once by a second SIGTERM while a model is asked; its spans say so."""
    file = benchmark_file("slow")
    command = ["verify", file.name]
    for role in ("answering", "parsing"):
        asked = {"model": "plain", "interface": "openai_endpoint", "base-url": model_server.url}
        command += [word for name, value in asked.items() for word in (f"--{role}-{name}", value)]
    for name, value in (("enabled", "true"), ("exporter", "otlp"), ("endpoint", receiver.url)):
        command += ["--set", f"plugins.opentelemetry.{name}={value}"]
    ran = forking.start(*command, folder=file.parent, ends=True)
    model_server.wait_for(1, timeout=90)
    ran.send_signal(signal.SIGTERM)
    while "interrupt again" not in ran.stderr:
        assert ran.poll(0.01) is None, "it ended before it was to end at once"
    ran.send_signal(signal.SIGTERM)
    assert ran.wait() not in (0, 1, 2), ran.stderr
    ended = {span.name: {fact.key: fact.value.string_value for fact in span.attributes} for span in receiver.spans}
    assert ended["run"]["karenina.run.status"] == "interrupted"
    assert {name for name, facts in ended.items() if facts.get("error.type") == "cancelled"} >= {"item", "chat plain"}


def test_off_is_off(receiver: Any, untraced: Run, app_with: App) -> None:
    app = app_with(exporter="otlp", endpoint=receiver.url)
    assert str(untraced(app, "q")[0].outcome) == "passed"
    assert receiver.bodies == []
    assert own_provider.cache_info().currsize == 0
    for hook, arguments in (
        ("karenina_wrap_item", {}),
        ("karenina_wrap_stage", {"stage": None}),
        ("karenina_wrap_call", {"target": None}),
    ):
        wrappers = dict(app.implementations(hook))
        assert wrappers["karenina_opentelemetry"](**arguments) is None


def test_an_installed_plugin_that_is_off_imports_nothing() -> None:
    code = (
        "import sys, karenina_opentelemetry as plugin\n"
        "from karenina_core.testing import application\n"
        "app = application(plugin)\n"
        "assert [f() for _, f in app.implementations('karenina_wrap_item')] == [None]\n"
        "app.observe('karenina_run_started', run={})\n"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry')))\n"
    )
    assert _printed([sys.executable, "-c", code]) == "[]\n"


def test_the_providers_of_programs_are_used_and_left_alone(receiver: Any) -> None:
    printed = json.loads(_printed([sys.executable, str(HOST), receiver.url]).splitlines()[-1])
    assert {"run", "item", "chat plain", "chat judge"} <= set(printed["names"])
    assert printed["root"] == "of the program"
    assert printed["same"], "the provider was replaced"
    assert printed["after"], "the provider was shut down"
    assert receiver.bodies == [], "the program's provider decides where spans go"


def test_the_console_is_stderr_and_the_end_of_a_program_loses_nothing(forking: Any) -> None:
    program = f"import runpy, sys\nsys.argv = [{str(HOST)!r}, 'console']\n"
    program += "runpy.run_path(sys.argv[0], run_name='__main__')\nraise SystemExit(0)"
    ran = forking.start(prelude=program, ends=True)
    assert ran.wait() == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["names"] == []
    spans = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
    assert {"run", "item", "chat plain"} <= {span["name"] for span in spans}


def test_without_a_place_to_go_a_line_says_so(untraced: Run, app_with: App, caplog: pytest.LogCaptureFixture) -> None:
    assert str(untraced(app_with(enabled=True), "q")[0].outcome) == "passed"
    (line,) = [record.getMessage() for record in caplog.records if "spans go nowhere" in record.getMessage()]
    assert "set exporter" in line


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"endpoint": "http://localhost:4318"}, "without exporter"),
        ({"exporter": "otlp", "endpoint": "localhost:4318"}, "no URL"),
        ({"exporter": "otlp", "endpoint": "http://[::1"}, "no URL"),
        ({"exporter": "otlp", "endpoint": "http://me:word@localhost"}, "OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TracingSettings(enabled=True, **settings)


def test_a_missing_sdk_has_a_hint(receiver: Any) -> None:
    code = (
        "import sys\n"
        "from karenina_opentelemetry import tracing\n"
        "tracing.is_installed = lambda package: False\n"
        "try:\n    tracing.own_provider('otlp', '')\nexcept Exception as error:\n    print(error)\n"
    )
    assert "pip install 'karenina-opentelemetry[sdk]'" in _printed([sys.executable, "-c", code])


def _printed(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
