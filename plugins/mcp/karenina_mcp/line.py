"""What is known about the line to a server beside its messages: its last words, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, field

__all__ = ["MOST_BYTES", "Line"]

MOST_BYTES = 4 * 1024 * 1024
"""Of one message of a server. What is longer is not read into memory."""
LAST_WORDS = 2000
"""Characters of a program's stderr that are kept."""


@define(eq=False)
class Line:
    """The state of one connection, filled in by its transport."""

    on_end: Callable[[], None] = lambda: None
    """Called when the other side has ended the connection."""
    exit_code: int | None = None
    status: int | None = None
    """The last HTTP status that was an error."""
    ended: bool = False
    """Whether the other side has ended the connection."""
    _words: bytearray = field(factory=bytearray)

    def end(self) -> None:
        self.ended = True
        self.on_end()

    def record(self, words: bytes) -> None:
        """Keep the end of what a program says beside its messages."""
        self._words += words[-4 * LAST_WORDS :]
        del self._words[: -4 * LAST_WORDS]

    def last_words(self, secrets: Iterable[str] = ()) -> str:
        """The end of what the program printed, at most 2000 characters, without secrets."""
        text = self._words.decode(errors="replace").strip()
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text[-LAST_WORDS:]
