"""A conversation as the one prompt that a session of the program begins with."""

from __future__ import annotations

from collections.abc import Sequence

from karenina_core.model.message import Message
from karenina_core.ports.text import sanitize

__all__ = ["prompt_of", "system_of"]

EARLIER = "What was said so far, each turn under the name of its speaker:"
NOW = "Reply to this:"


def system_of(messages: Sequence[Message], more: str | None = None) -> str:
    """The text of all system messages, after `more`."""
    texts = [more or "", *(message.text for message in messages if message.role == "system")]
    return "\n\n".join(text for text in texts if text)


def prompt_of(messages: Sequence[Message]) -> str:
    """The text to reply to. Earlier turns stand before it, in words: a session cannot be given replies."""
    said = [message for message in messages if message.role != "system"]
    if len(said) <= 1:
        return sanitize(said[0].text if said else "")[0]
    earlier = (f"[{message.role}]\n{message.text}" for message in said[:-1] if message.text)
    return sanitize("\n\n".join([EARLIER, *earlier, NOW, said[-1].text]))[0]
