"""A provider of our own, for programs that have none. Imported where spans are sent; needs the SDK."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from urllib.parse import urlsplit, urlunsplit

from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter, SpanExportResult

from karenina_core import __version__
from karenina_core.errors import one_line
from karenina_core.log import get_logger

PATH = "/v1/traces"
TIMEOUT = 5.0
"""Seconds for one batch, with its attempts: what the end of a program waits for a receiver that is silent."""
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
"""Variables that say something else."""
SLOW = 0.5
"""Seconds; what took longer and failed would fill the queue, and hold up the end of the program batch by batch."""
PAUSE = 10.0
"""Seconds without another attempt after that."""
OTLP = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
log = get_logger("karenina.opentelemetry")


def made_provider(exporter: str, endpoint: str) -> TracerProvider:
    """A provider with one exporter; its last batch is sent when the interpreter exits."""
    if exporter == "console":
        made: SpanExporter = ConsoleSpanExporter(
            out=sys.stderr, formatter=lambda span: f"{span.to_json(indent=None)}\n"
        )
    else:
        made = _otlp(endpoint)
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "karenina", SERVICE_VERSION: __version__}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(Forgiving(made)))
    return provider


def traces_address(endpoint: str) -> str:
    """Where spans are sent to: the endpoint, with the path of traces at the end of its own."""
    parts = urlsplit(endpoint)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(PATH) else f"{path}{PATH}"))


def _otlp(endpoint: str) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    logging.getLogger(OTLP).addFilter(_ours)
    timeout = None if any(os.environ.get(name) for name in TIMEOUTS) else TIMEOUT
    return OTLPSpanExporter(endpoint=traces_address(endpoint) if endpoint else None, timeout=timeout)


class _Lines(logging.Filter):
    """Keeps what the library says while our own exporter sends; lines about exporters of the program pass."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = local()

    @contextmanager
    def kept(self) -> Iterator[list[str]]:
        """The lines of this thread, inside of the block."""
        lines: list[str] = []
        self._kept.lines = lines
        try:
            yield lines
        finally:
            self._kept.lines = None

    def filter(self, record: logging.LogRecord) -> bool:
        lines = getattr(self._kept, "lines", None)
        if lines is None:
            return True
        lines.append(record.getMessage())
        return False


_ours = _Lines()


class Forgiving(SpanExporter):
    """Warns once that spans cannot be sent; they are lost, and nothing else is."""

    def __init__(self, inner: SpanExporter, pause: float = PAUSE) -> None:
        self._inner = inner
        self._pause = pause
        self._warned = False
        self._again = 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        began = time.monotonic()
        if began < self._again:
            return SpanExportResult.FAILURE
        with _ours.kept() as lines:
            try:
                done = self._inner.export(spans)
            except Exception as error:  # an exporter is third-party code, and runs in a thread of its own
                done = SpanExportResult.FAILURE
                lines.append(one_line(error))
        if done is not SpanExportResult.SUCCESS:
            if time.monotonic() - began > SLOW:
                self._again = time.monotonic() + self._pause
            if not self._warned:
                self._warned = True
                remedy = "check exporter and endpoint in [plugins.opentelemetry], and that the receiver is running"
                log.warning(f"spans could not be sent and are lost; {remedy}", reason=" ".join(lines) or "unknown")
        return done

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)
