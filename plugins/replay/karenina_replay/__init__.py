"""Record and replay the calls of models, embedders, search tools and tool servers."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl, neutral

NAME = "replay"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_replay.settings:ReplaySettings", name=NAME)


@hookimpl
@neutral
def karenina_wrap_call(target: Any, app: Any) -> Any | None:
    settings = app.settings(NAME)
    if settings is None or not (settings.record or settings.replay):
        return None
    from .recording import around  # only runs that record or replay pay for it

    return around(target, settings, app)
