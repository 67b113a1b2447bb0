"""Spans for runs, items, stages, calls of models, agents and tools, and metrics of items and calls.

While it is off, nothing is imported and nothing is wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_core import hookimpl, neutral

NAME = "opentelemetry"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_opentelemetry.settings:TracingSettings", name=NAME)


@hookimpl
def karenina_run_started(run: Mapping[str, Any], app: Any) -> None:
    if _is_on(app):
        from .items import started

        started(run, app)


@hookimpl
def karenina_run_finished(summary: Mapping[str, Any], status: str, app: Any) -> None:
    if _is_on(app):
        from .items import finished

        finished(summary, status)


@hookimpl
def karenina_wrap_item(app: Any) -> Any | None:
    if not _is_on(app):
        return None
    from .items import around_item

    return around_item(app)


@hookimpl
@neutral
def karenina_wrap_stage(stage: Any, app: Any) -> Any | None:
    if not _is_on(app):
        return None
    from .items import around_stage

    return around_stage(stage, app)


@hookimpl
@neutral
def karenina_wrap_call(target: Any, app: Any) -> Any | None:
    spans = None
    if _is_on(app):
        from .calls import around

        spans = around(target, app)
    if not _counts(app):
        return spans
    from .metrics import measured

    return measured(target, app, spans)


@hookimpl
def karenina_item_finished(result: Any, app: Any) -> None:
    if _counts(app):
        from .metrics import instruments_of

        instruments_of(app).finished(result)


def _counts(app: Any) -> bool:
    settings = app.settings(NAME)
    return settings is not None and settings.metrics


def _is_on(app: Any) -> bool:
    settings = app.settings(NAME)
    return settings is not None and settings.enabled
