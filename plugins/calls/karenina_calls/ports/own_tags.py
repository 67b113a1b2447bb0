"""Tags around untrusted text that are known to this process alone: those of what is sent.

Keys, journals and recordings have calls with the tags that follow from the text. So a call is found again by what it
says, in a run that is resumed and in another one; and what was recorded shows no tag that a later judge will see.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, TypeVar

from attrs import evolve
from karenina_judging.untrusted_text import with_secret_tags

from karenina_core.ports.middleware import Call
from karenina_core.values.message import Block, Message, TextBlock

R = TypeVar("R")
_SECRET = secrets.token_bytes(16)
MARK = "<untrusted-"


def with_own_tags(call: Call[R]) -> Call[R]:
    """The call as it is sent: the same one where its messages have no such tags."""
    messages: Sequence[Message] = getattr(call, "messages", ())
    if not any(MARK in block.text for message in messages for block in message.content if isinstance(block, TextBlock)):
        return call
    changed: Any = [evolve(message, content=[_own(block) for block in message.content]) for message in messages]
    return evolve(call, messages=changed)  # type: ignore[call-arg]  # a call of a model, which has messages


def _own(block: Block) -> Block:
    if isinstance(block, TextBlock) and MARK in block.text:
        return TextBlock(with_secret_tags(block.text, _SECRET))
    return block
