"""Entry point `declarative-runtime`: templates that are data and execute no code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karenina_core import hookimpl

if TYPE_CHECKING:
    from karenina_vocabulary.kinds import TemplateRuntimeRegistry


@hookimpl
def karenina_register_template_runtimes(registry: TemplateRuntimeRegistry) -> None:
    registry.add("karenina_template.structured:DeclarativeRuntime", name="declarative")
