"""Messages of a conversation or a trace, block by block, each text cut where it is very long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from karenina_runs.summaries.messages import shown_messages as read_messages

from .texts import cut

__all__ = ["Block", "ShownMessage", "shown_messages"]


class Block(NamedTuple):
    """What a message says, thinks, asks of a tool, or brings back from one."""

    label: str
    text: str
    left_out: int = 0


class ShownMessage(NamedTuple):
    """One message."""

    role: str
    blocks: tuple[Block, ...]


def shown_messages(rows: Iterable[Mapping[str, Any]]) -> list[ShownMessage]:
    """Messages in either form that results store; what is of no form as JSON."""
    return [
        ShownMessage(message.role, tuple(Block(block.label, *cut(block.text)) for block in message.blocks))
        for message in read_messages(rows)
    ]
