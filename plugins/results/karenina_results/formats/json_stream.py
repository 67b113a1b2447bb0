"""Reading a large JSON document piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

CHUNK = 1 << 20
"""Characters that are read at a time; chosen."""
DELIMITERS = frozenset(" \t\r\n,:]}")
UNFINISHED = "Unterminated string"
LONGEST = 16
"""Characters of an escape, a number's beginning or a word that the end of what was read may cut."""


def elements(file: IO[str], array: str) -> Iterator[tuple[str, Any]]:
    """`(key, value)` of the object that a file holds; of the array under the key `array`, every element on its own.

    Numbers that JSON does not have (NaN) are None. Raises ValueError where the document is not an object, is damaged,
    or ends too early.
    """
    text = _Text(file)
    text.take("{")
    more = text.next() != "}"
    while more:
        key = text.value()
        if not isinstance(key, str):
            raise ValueError(f"expected a name, got {key!r}")
        text.take(":")
        if key == array and text.next() == "[":
            yield from ((key, value) for value in _elements(text))
        else:
            yield key, text.value()
        more = text.next() == ","
        if more:
            text.take(",")
    text.take("}")
    if text.next():
        raise ValueError(f"expected the end, got {text.next()!r}")


def _elements(text: _Text) -> Iterator[Any]:
    text.take("[")
    more = text.next() != "]"
    while more:
        yield text.value()
        more = text.next() == ","
        if more:
            text.take(",")
    text.take("]")


class _Text:
    """The rest of the document; only what is being looked at is in memory."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._decoder = json.JSONDecoder(parse_constant=lambda name: None)
        self._buffer = file.read(CHUNK).removeprefix("\ufeff")
        self._place = 0

    def next(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self._place < len(self._buffer) and self._buffer[self._place] in " \t\r\n":
                self._place += 1
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        if self.next() != character:
            raise ValueError(f"expected {character!r}, got {self.next()!r}" if self.next() else "it ends too early")
        self._place += 1

    def value(self) -> Any:
        self.next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._place)
                # What was read may end within a number: 12 can be the beginning of 12.5.
                if self._buffer[end : end + 1] in DELIMITERS or not self._more():
                    self._place = end
                    return value
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(UNFINISHED) or error.pos + LONGEST > len(self._buffer)
                if not (cut and self._more()):
                    raise ValueError(f"{error.msg}: {self._buffer[error.pos : error.pos + 40]!r}") from None
            except RecursionError:
                raise ValueError("it is nested too deeply") from None

    def _more(self) -> bool:
        """Read on, twice as much as did not suffice. False at the end."""
        left = len(self._buffer) - self._place
        chunk = self._file.read(max(CHUNK, left))
        if chunk:
            self._buffer = self._buffer[self._place :] + chunk
            self._place = 0
        return bool(chunk)
