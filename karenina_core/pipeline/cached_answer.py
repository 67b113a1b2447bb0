"""What an item can be given from before, and what ends it early."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ..errors import ErrorKind

__all__ = ["CachedAnswer", "ItemError"]


@frozen(kw_only=True)
class CachedAnswer:
    """An answer that was generated before, to be judged again without asking the answering model."""

    raw_llm_response: str
    trace_messages: tuple[Mapping[str, Any], ...] = ()
    recursion_limit_reached: bool = False
    answering_mcp_servers: tuple[str, ...] = ()
    usage_metadata: Mapping[str, Any] = field(factory=dict)
    agent_metrics: Mapping[str, Any] | None = None
    conversation_context: tuple[Mapping[str, Any], ...] = ()
    text_flags: tuple[str, ...] = ()
    usage_unavailable: bool = False
    few_shot_example_count: int = 0
    workspace: Path | None = None
    """The folder that the answer was worked out in, as its model left it. It is looked at in copies."""
    replayed_from: Mapping[str, Any] | None = None
    """Where it was captured, if that was in another run; see `GenerationPart.replayed_from`."""
    fields: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """What judges have extracted from it before, by the judge's name: they are not asked for that again."""
    fields_must_fit: bool = False
    """Whether such fields that the template does not take are an error; else the judge is asked."""


@frozen
class ItemError:
    """The first error of an item: what happened, of which kind, in which stage."""

    message: str
    kind: ErrorKind
    stage: str | None
