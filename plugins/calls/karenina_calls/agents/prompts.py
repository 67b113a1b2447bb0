"""Messages as the one prompt that a program takes."""

from __future__ import annotations

from collections.abc import Sequence

from karenina_core.values.message import Message

from ..ports.text import sanitize

EARLIER = "What was said so far, each turn under the name of its speaker:"
NOW = "Reply to this:"


def system_of(messages: Sequence[Message], more: str | None = None) -> str:
    """The text of all system messages, after `more`."""
    texts = [more or "", *(message.text for message in messages if message.role == "system")]
    return "\n\n".join(text for text in texts if text)


def prompt_of(messages: Sequence[Message]) -> str:
    """The text to reply to. Earlier turns come before it, as text: a session cannot be given replies."""
    turns = [message for message in messages if message.role != "system"]
    if len(turns) <= 1:
        return sanitize(turns[0].text if turns else "")[0]
    earlier = (f"[{message.role}]\n{message.text}" for message in turns[:-1] if message.text)
    return sanitize("\n\n".join([EARLIER, *earlier, NOW, turns[-1].text]))[0]
