"""The plugin `compare`: its settings."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

NAME = "compare"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_compare.settings:CompareSettings", name=NAME)
