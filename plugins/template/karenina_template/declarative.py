"""Entry point `declarative-runtime`: templates that are data and execute no code."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl


@hookimpl
def karenina_register_template_runtimes(registry: Any) -> None:
    registry.add("karenina_template.declarative_templates:DeclarativeRuntime", name="declarative")
