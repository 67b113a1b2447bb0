"""What `karenina doctor` says about template runtimes."""

from __future__ import annotations

from typing import Any

from karenina_vocabulary.kinds import TemplateRuntimeRegistry

from karenina_core.errors import PluginError
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section


def template_runtimes(app: Karenina) -> Section:
    """Every runtime, or why it cannot be loaded."""
    rows: list[dict[str, Any]] = []
    for name in app.registry(TemplateRuntimeRegistry):
        row: dict[str, Any] = {"name": name, "languages": [], "isolation": None, "executes_code": None, "reason": ""}
        try:
            runtime = app.registry(TemplateRuntimeRegistry).load(name)
        except PluginError as error:
            rows.append(row | {"reason": str(error)})
            continue
        made = runtime() if isinstance(runtime, type) else runtime
        facts = {"isolation": made.isolation, "executes_code": made.executes_code}
        row["reason"] = getattr(made, "unavailable", "")
        rows.append(row | {"languages": sorted(made.languages), **facts})
    return Section.of("template_runtimes", "Template runtimes", ("name", "languages", "isolation", "reason"), rows)
