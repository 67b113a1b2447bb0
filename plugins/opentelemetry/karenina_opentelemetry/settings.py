"""Whether to trace, and where to."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from attrs import frozen

from karenina_core.errors import ConfigError, Problem


@frozen(kw_only=True)
class TracingSettings:
    """`[plugins.opentelemetry]`. If the program has its own tracer provider, the spans go there."""

    enabled: bool = False
    """Whether spans are made."""
    exporter: Literal["", "console", "otlp"] = ""
    """Where spans go in a program without a tracer provider: `console` writes them to stderr, one line of JSON each,
    `otlp` sends them over HTTP. Without one they go nowhere until the program sets a provider."""
    endpoint: str = ""
    """The address of the receiver for `otlp`, with or without its path `/v1/traces`. If it is not given, standard
    variables such as `OTEL_EXPORTER_OTLP_ENDPOINT` apply, else `http://localhost:4318`."""
    content: bool = False
    """Whether spans hold content: messages, arguments and answers of tools, reasons. Known secrets are masked."""
    metrics: bool = False
    """Whether items and calls are counted and measured, for the meter provider of the program; also without spans."""

    def __attrs_post_init__(self) -> None:
        if problems := [Problem("endpoint", text) for text in self._complaints()]:
            raise ConfigError(problems)

    def _complaints(self) -> list[str]:
        if not self.endpoint:
            return []
        if self.exporter != "otlp":
            return ["it has no effect without exporter = 'otlp'; set that, or remove the endpoint"]
        try:
            parts = urlsplit(self.endpoint)
        except ValueError:
            return ["it is no URL; give one such as http://localhost:4318"]
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return ["it is no URL of a web server; give one such as http://localhost:4318"]
        if "@" in parts.netloc:
            return ["it holds a user or a password; send them in OTEL_EXPORTER_OTLP_HEADERS instead"]
        return []
