"""Regular expressions of templates and rubrics, run over untrusted text.

They find what Python's `re` finds. Unlike `re`, a search ends after a time, and other threads run meanwhile: a
pattern with a repetition inside a repetition can take years for a text of a hundred characters.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from attrs import field, frozen

from .dialect import as_regex

T = TypeVar("T")
SECONDS = 2.0
"""Of processor time for one search in a short text. Usual patterns take milliseconds; one that runs into this limit
would hardly ever have ended."""
PER_CHARACTER = 2e-6
"""Seconds more for each character of the text. Measured: 0.03 to 0.2 millionths of a second for usual patterns, whose
time grows as the text does, 1.4 for one of 200 words in either case."""
FLAGS = ("ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE")
"""Those of `re` that change what a text pattern finds; their values differ between the two engines."""
ENOUGH = 0.9
"""Of the time of a search: clocks are not exact."""


@frozen
class Expression:
    """A regular expression with flags of `re`. Every method raises TimeoutError where a search takes too long."""

    pattern: str
    flags: int = 0
    _engine: Any = field(init=False, eq=False, repr=False)

    @_engine.default
    def _compile(self) -> Any:
        import regex  # type: ignore[import-untyped]  # it brings no types; only patterns that are used pay for it

        flags = [getattr(regex, name) for name in FLAGS if self.flags & getattr(re, name)]
        return regex.compile(as_regex(self.pattern, self.flags), sum(flags, regex.VERSION0))

    @property
    def groups(self) -> int:
        """How many capture groups it has."""
        return int(self._engine.groups)

    def search(self, text: str, seconds: float = SECONDS, stopped: threading.Event | None = None) -> Any:
        """The first match, or None. Once `stopped` is set, the search is not given more time than it has."""
        return self._timed(
            lambda limit: self._engine.search(text, concurrent=True, timeout=limit),
            seconds + PER_CHARACTER * len(text),
            stopped or threading.Event(),
        )

    def fullmatch(self, text: str, start: int = 0) -> Any:
        """The match of the whole text from `start` on, or None."""
        seconds = SECONDS + PER_CHARACTER * len(text)
        return self._timed(lambda limit: self._engine.fullmatch(text, start, concurrent=True, timeout=limit), seconds)

    def matches(self, text: str, most: int | None = None) -> list[Any]:
        """All matches that do not overlap, from left to right, at most `most`."""

        def find(limit: float) -> list[Any]:
            found: list[Any] = []
            ends, look = time.thread_time() + limit, time.monotonic() + limit
            for match in self._engine.finditer(text, concurrent=True, timeout=limit):
                found.append(match)
                if most is not None and len(found) >= most:
                    break
                if time.monotonic() > look:  # each of them may have been quick; this clock is the quicker one to read
                    left = ends - time.thread_time()
                    if left < 0:
                        raise TimeoutError
                    look = time.monotonic() + left
            return found

        return self._timed(find, SECONDS + PER_CHARACTER * len(text))

    def _timed(self, search: Callable[[float], T], seconds: float, stopped: threading.Event | None = None) -> T:
        """The limit of the engine counts the processor time of all threads: where others have used it up, there is
        more."""
        limit = seconds
        while True:
            began = time.thread_time()
            try:
                return search(limit)
            except TimeoutError:
                taken = time.thread_time() - began
                if (stopped is not None and stopped.is_set()) or taken >= ENOUGH * seconds:
                    raise TimeoutError(
                        f"the pattern {self.pattern!r:.200} was stopped after {seconds:.3g} s; rewrite it so that no "
                        "repetition holds another one, or is followed by one that takes the same characters"
                    ) from None
            limit *= min(4.0, 1.2 * seconds / max(taken, 0.01 * seconds))  # 4: others may be done soon


def listed(matches: Sequence[Any]) -> list[Any]:
    """What `re.findall` makes of matches: texts, or the groups where the pattern has any."""
    groups = matches[0].re.groups if matches else 0
    if groups > 1:
        return [match.groups("") for match in matches]
    return [match.group(groups) or "" for match in matches]


@lru_cache(maxsize=1024)
def expression(pattern: str, flags: int = 0) -> Expression:
    """The expression, compiled once. Raises ValueError for what is no regular expression of `re`, or one that the
    engine cannot be given, and what a parser may run into, such as OverflowError.
    """
    try:
        return Expression(pattern, flags)
    except re.error as error:
        raise ValueError(f"{pattern!r:.200} is not a regular expression: {error}") from None
