"""The span of a run. It is the parent of everything that the run does."""

from __future__ import annotations

from asyncio import current_task
from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import Any

from attrs import frozen
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from .tracing import Tracing, ended, fill, tracing_of

__all__ = ["finished", "started"]


@frozen
class _Run:
    tracing: Tracing
    span: Span
    token: Token[Context]
    task: Any
    outer: _Run | None
    """The run that this one is a part of, where a stage runs a benchmark of its own."""


_runs: ContextVar[_Run | None] = ContextVar("karenina_traced_run", default=None)


def started(run: Mapping[str, Any], app: Any) -> None:
    """Begin the span, and make it the current one of the run's task and of every task that it starts."""
    facts = {"run.name": run.get("run_name"), "benchmark": run.get("benchmark"), "run.items": run.get("items")}
    tracing = tracing_of(app)
    span = tracing.begun("run", {f"karenina.{name}": value for name, value in facts.items()})
    if span is not None:
        token = context.attach(trace.set_span_in_context(span))
        _runs.set(_Run(tracing, span, token, current_task(), _runs.get()))


def finished(summary: Mapping[str, Any], status: str) -> None:
    """End it. A run that ended before it had begun has no span; one that it is a part of continues."""
    run = _runs.get()
    if run is None or run.task is not current_task():
        return
    _runs.set(run.outer)
    outcomes = summary.get("outcomes") or {}
    fill(run.span, {f"karenina.outcomes.{name}": count for name, count in outcomes.items()})
    fill(run.span, {"karenina.run.status": status})
    if status != "completed":
        run.tracing.failed(run.span, status)
    context.detach(run.token)
    ended(run.span)
