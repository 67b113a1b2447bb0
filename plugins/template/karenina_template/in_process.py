"""Entry point `in-process-runtime`: Python templates, executed in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karenina_core import hookimpl

if TYPE_CHECKING:
    from karenina_vocabulary.kinds import TemplateRuntimeRegistry


@hookimpl
def karenina_register_template_runtimes(registry: TemplateRuntimeRegistry) -> None:
    registry.add("karenina_template.python_source:InProcessRuntime", name="in-process")
