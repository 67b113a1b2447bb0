"""Tags around untrusted text that are known to this process alone: those of what is sent.

Keys, journals and recordings have calls with the tags that follow from the text. So a call is found again by what it
says, in a run that is resumed and in another one; and what was recorded shows no tag that a later judge will see.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from operator import is_
from typing import Any, TypeVar

from karenina_judging.untrusted_text import with_secret_tags

from karenina_core.ports.middleware import Call
from karenina_core.values.message import Message, TextBlock

R = TypeVar("R")
_SECRET = secrets.token_bytes(16)
MARK = "\n</untrusted-"
"""What ends a marked text, and is nowhere else: instructions speak of tags within a line."""


def with_own_tags(call: Call[R]) -> Call[R]:
    """The call as it is sent: the same one where its messages have no such tags."""
    given: Sequence[Message] = getattr(call, "messages", ())
    messages: Any = [_own(message) for message in given]
    if all(map(is_, messages, given)):
        return call
    sent: Call[R] = object.__new__(type(call))  # with the request, and so the key, of what is kept
    sent.__dict__.update(call.__dict__, messages=messages)
    return sent


def _own(message: Message) -> Message:
    for block in message.content:
        if isinstance(block, TextBlock) and MARK in block.text:
            break
    else:
        return message
    blocks = [
        TextBlock(with_secret_tags(block.text, _SECRET)) if isinstance(block, TextBlock) else block
        for block in message.content
    ]
    return Message(message.role, blocks, message.usage_metadata)
