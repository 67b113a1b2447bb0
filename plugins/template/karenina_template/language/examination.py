"""What `karenina doctor` says about template runtimes."""

from __future__ import annotations

from typing import Any

from karenina_vocabulary.kinds import TemplateRuntimeRegistry

from karenina_core.errors import PluginError
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section

__all__ = ["template_runtimes"]


def template_runtimes(app: Karenina) -> Section:
    """Every runtime, or why it cannot be loaded."""
    rows = [_row(app, name) for name in app.registry(TemplateRuntimeRegistry)]
    return Section.of("template_runtimes", "Template runtimes", ("name", "languages", "isolation", "reason"), rows)


def _row(app: Karenina, name: str) -> dict[str, Any]:
    try:
        runtime = app.registry(TemplateRuntimeRegistry).load(name)
    except PluginError as error:
        return {"name": name, "languages": [], "isolation": None, "executes_code": None, "reason": str(error)}
    made = runtime() if isinstance(runtime, type) else runtime
    return {
        "name": name,
        "languages": sorted(made.languages),
        "isolation": made.isolation,
        "executes_code": made.executes_code,
        "reason": "",
    }
