"""The judgment strategy `deep_judgment`. What it needs is imported when a run asks for it."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl


@hookimpl
def karenina_register_strategies(registry: Any) -> None:
    registry.add("karenina_deep_judgment.judging:DeepJudgment", name="deep_judgment")
