"""Entry point `in-process-runtime`: Python templates, executed in this process."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl


@hookimpl
def karenina_register_template_runtimes(registry: Any) -> None:
    registry.add("karenina_template.python_source:InProcessRuntime", name="in-process")
