"""Compiling the regular expressions of a benchmark: in bounded time, whoever wrote them."""

from __future__ import annotations

import re
import re._constants as constants  # type: ignore[import-not-found]  # typeshed leaves both out
import re._parser as parser  # type: ignore[import-not-found]
from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 100_000
"""Characters of a regular expression of a template or a trait. Chosen: one of so many takes a second to compile."""
OF_A_SET = 5000
"""What a set of characters costs to compile beside its ranges, in characters of a range. Measured: 0.2 ms and 40 ns."""
MOST_WORK = 20_000_000
"""Characters in the ranges of all sets of a pattern, each as often as it is there. Chosen: a second."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern of `re`. Raises re.error for what is none, and ValueError for one that takes too long to compile:
    `re` goes through every character of a range where letters of either case are the same.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern of {len(pattern):,} characters; {LONGEST_PATTERN:,} are the most")
    try:
        if "[" in pattern and _work(parser.parse(pattern, flags)) > MOST_WORK:
            raise ValueError(f"{pattern!r:.200} has too many or too large sets of characters; write fewer `[...]`")
        return re.compile(pattern, flags)
    except RecursionError:
        raise ValueError(f"{pattern!r:.200} is nested too deeply") from None


def _work(tree: Any) -> int:
    found = 0
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple) and node and node[0] is constants.IN:
            ranges = (part[1] for part in node[1] if part[0] is constants.RANGE)
            found += OF_A_SET + sum(high - low + 1 for low, high in ranges)
        elif isinstance(node, tuple | list | parser.SubPattern):
            waiting += node
    return found
