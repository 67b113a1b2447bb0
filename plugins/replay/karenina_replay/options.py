"""Options of `karenina verify`."""

from __future__ import annotations

from pathlib import Path

from karenina_core.plugin.command_line import PluginOption

OPTIONS = (
    PluginOption("--record", "Write every model call to this new file.", "record", Path, "FILE"),
    PluginOption(
        "--replay",
        "Answer every model call from this file, without network and keys; a call that is not in it is an error.",
        "replay",
        Path,
        "FILE",
    ),
)
