"""Settings."""

from __future__ import annotations

from attrs import frozen

from karenina_core.errors import ConfigError, Problem


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
