"""A program that runs a benchmark: with a tracer provider of its own and a receiver's address in the settings, or with
`console` without one. The last line that it prints says what became of its provider."""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from karenina_core.testing import ScriptedServer


def _conftest() -> Any:
    path = Path(__file__).parents[1] / "conftest.py"
    spec = importlib.util.spec_from_file_location("of_the_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(target: str) -> None:
    made, exporter, provider = _conftest(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    console = target == "console"
    if not console:
        trace.set_tracer_provider(provider)
    where = {"exporter": "console"} if console else {"exporter": "otlp", "endpoint": target}
    app = made.app_of(enabled=True, **where)
    with ScriptedServer(made.says) as server:
        tracer = provider.get_tracer("program")
        with nullcontext() if console else tracer.start_as_current_span("of the program"):
            made.benchmark("q").run_verification(made.config(server.url), app=app)
    same = trace.get_tracer_provider() is provider
    before = exporter.get_finished_spans()
    tracer.start_span("after").end()
    roots = [span.name for span in before if span.parent is None]
    printed = {
        "names": [span.name for span in before],
        "root": roots[0] if roots else None,
        "same": same,
        "after": len(exporter.get_finished_spans()) == len(before) + 1,
    }
    print(json.dumps(printed))


if __name__ == "__main__":
    main(sys.argv[1])
