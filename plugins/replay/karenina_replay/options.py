"""What to record, what to replay: options of `karenina verify`, and settings."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from karenina_core.errors import ConfigError, Problem
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


@frozen(kw_only=True, eq=False)
class ReplaySettings:
    """`[plugins.replay]`: at most one of the two files."""

    record: str | None = None
    """Write every call of a model, an embedder and a search tool to this file, which must not exist yet."""
    replay: str | None = None
    """Answer every call of a model, an embedder and a search tool from this file."""

    def __attrs_post_init__(self) -> None:
        if self.record and self.replay:
            raise ConfigError([Problem("record", "a run is recorded or replayed, not both; leave one of them out")])
