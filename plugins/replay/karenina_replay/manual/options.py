"""The option that names a file of recorded answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karenina_core.plugin.command_line import ModelField, PluginOption


def _read(path: Path) -> Any:
    from karenina_calls.records.manual import load_manual_traces  # only where it is typed

    return load_manual_traces(path)


OPTIONS = (
    PluginOption(
        "--manual-traces",
        "Recorded answers for the interface manual: a JSON object by question id or text.",
        ModelField("manual", "manual_traces", _read),
        Path,
        "FILE",
        help_later="The recorded answers, which the run does not keep.",
    ),
)
