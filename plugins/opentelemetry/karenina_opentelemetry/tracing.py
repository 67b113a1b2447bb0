"""Where spans are made and what may be in them. Nothing that goes wrong with a span costs more than the span."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from attrs import define, field
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import redactor
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    ProxyTracerProvider,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
)

from karenina_core import ModelConfig, __version__
from karenina_core.errors import ConfigError, KareninaError, PluginError, one_line
from karenina_core.log import get_logger
from karenina_core.plugin.registry import is_installed

from .settings import TracingSettings

NAME = "opentelemetry"
SCOPE = "karenina"
NEEDED = {"console": "opentelemetry.sdk", "otlp": "opentelemetry.exporter.otlp.proto.http"}
log = get_logger("karenina.opentelemetry")
P = ParamSpec("P")
T = TypeVar("T")
_complained: set[tuple[str, str]] = set()


def harmless(function: Callable[P, T]) -> Callable[P, T | None]:
    """The function; what it raises is logged once and gives None. A provider and its processors are third-party
    code."""

    @wraps(function)
    def quietly(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            about = (function.__qualname__, type(error).__qualname__)
            if about not in _complained:
                _complained.add(about)
                log.warning("a span is not as it should be", where=about[0], error=one_line(error))
            return None

    return quietly


@define(eq=False)
class Tracing:
    """What makes the spans of one application."""

    settings: TracingSettings
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What is never written."""
    provider: TracerProvider | None = None
    """Where spans go, unless the program has a provider: one of our own."""
    given: TracerProvider | None = None
    """Where they go in any case; see `use_provider`."""

    @property
    def tracer(self) -> Tracer:
        """The program's provider is looked at every time: it may be set after the application was made."""
        own = None if _is_set() else self.provider
        return trace.get_tracer(SCOPE, __version__, tracer_provider=self.given or own)

    @contextmanager
    def span(
        self, name: str, facts: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL, within: Context | None = None
    ) -> Iterator[Span]:
        """The current span inside of the block, a child of that of `within` or of the current one.

        What is raised in the block is recorded by its type alone, and raised on.
        """
        span = self.begun(name, facts, kind, within)
        if span is None:
            yield INVALID_SPAN  # what is inside hangs beneath the next span outside
            return
        token = context.attach(trace.set_span_in_context(span, within))
        try:
            yield span
        except BaseException as error:
            self.failed(span, error_type(error), one_line(error))
            raise
        finally:
            context.detach(token)
            ended(span)

    @harmless
    def begun(
        self, name: str, facts: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL, within: Context | None = None
    ) -> Span:
        """A span that is to be ended. Samplers see its name and these facts."""
        return self.tracer.start_span(writable(name), within, kind, known(facts))

    @harmless
    def failed(self, span: Span, kind: str, message: str = "") -> None:
        """Mark a span as failed. What the error says is content."""
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, self.redacted(message) if self.settings.content else None))

    @harmless
    def content(self, span: Span, facts: Mapping[str, Any]) -> None:
        """Write content, as JSON unless it is a text; only where the settings allow it."""
        if self.settings.content and span.is_recording():
            for name, value in facts.items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
                span.set_attribute(name, self.redacted(text))

    def redacted(self, text: str) -> str:
        """The text without secrets, and with nothing that UTF-8 cannot hold."""
        masked: str = redactor(self.secrets)(text)
        return writable(masked)


@harmless
def ended(span: Span) -> None:
    """End a span."""
    span.end()


@harmless
def fill(span: Span, facts: Mapping[str, Any]) -> None:
    """Write those facts that are known."""
    for name, value in known(facts).items():
        span.set_attribute(name, value)


def known(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are neither None nor an empty text, in texts that can be sent."""
    found = {name: value for name, value in facts.items() if value is not None and value != ""}
    return {name: writable(value) if isinstance(value, str) else value for name, value in found.items()}


def writable(text: str) -> str:
    """The text; what UTF-8 cannot hold would cost every span that is sent together with this one."""
    return text.encode("utf-8", "replace").decode("utf-8")


def error_type(error: BaseException) -> str:
    """The kind of an error of karenina's, `cancelled`, `timeout`, or the name of its class."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, TimeoutError):
        return "timeout"
    return str(error.kind) if isinstance(error, KareninaError) else type(error).__qualname__


_of_applications: WeakKeyDictionary[Any, Tracing] = WeakKeyDictionary()
_making = Lock()


def use_provider(app: Any, provider: TracerProvider) -> None:
    """Send the spans of this application to a provider, instead of that of the program or of the settings.

    To be called before its first run. Raises ConfigError for an application that is made without `enabled`.
    """
    settings: TracingSettings | None = app.settings(NAME)
    if settings is None or not settings.enabled:
        raise ConfigError(
            "this application makes no spans; make it with settings={'opentelemetry': {'enabled': True}}, and with the "
            "plugin 'opentelemetry' not blocked"
        )
    with _making:
        _of_applications[app] = Tracing(settings, given=provider)


def tracing_of(app: Any, *models: ModelConfig) -> Tracing:
    """The tracing of an application; it masks the secrets of these models from now on.

    Raises PluginError where packages for the exporter are missing.
    """
    with _making:
        found = _of_applications.get(app)
        if found is None:
            found = _of_applications[app] = _made(app.settings(NAME))
        if found.settings.content:
            found.secrets |= frozenset(secrets_of(app, models))
    return found


def _made(settings: TracingSettings) -> Tracing:
    if _is_set():
        return Tracing(settings)
    if settings.exporter:
        return Tracing(settings, provider=own_provider(settings.exporter, settings.endpoint))
    log.warning(
        "tracing is on, but spans go nowhere until the program sets a tracer provider; "
        "set exporter in [plugins.opentelemetry] to send them"
    )
    return Tracing(settings)


def _is_set() -> bool:
    """Whether the program has a tracer provider."""
    return not isinstance(trace.get_tracer_provider(), ProxyTracerProvider)


@cache
def own_provider(exporter: str, endpoint: str) -> Any:
    """A provider that sends spans in the background, and what is left when the program ends. There is one for each
    place to send to; it is never the program's global one. Raises PluginError."""
    if not is_installed(NEEDED[exporter]):
        raise PluginError(
            f"exporter = {exporter!r} needs packages that are missing; install with: "
            "pip install 'karenina-opentelemetry[sdk]'"
        )
    from .exporting import made_provider

    return made_provider(exporter, endpoint)
