"""`--questions 0-5,7|ID,...`: which questions of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karenina_core.errors import ConfigError, Problem, did_you_mean

__all__ = ["select_questions"]

POSITIONS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def select_questions(text: str, ids: Sequence[str]) -> list[str]:
    """The chosen ids, each once, in the order of `ids`.

    An entry is an id, a position counted from 0, or a range of positions with both ends. What is an id is never read
    as a position. Raises ConfigError with every entry that names nothing.
    """
    if text in ids:  # an id may hold a comma
        return [text]
    chosen: set[str] = set()
    problems: list[Problem] = []
    for entry in (part.strip() for part in text.split(",")):
        found = _entry(entry, ids)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            chosen.update(found)
    if problems:
        raise ConfigError(problems)
    return [question for question in ids if question in chosen]


def _entry(entry: str, ids: Sequence[str]) -> Sequence[str] | Problem:
    if not entry:
        return Problem("--questions", "there is an empty entry; write 0-5,7 or ids, separated by commas")
    if entry in ids:
        return [entry]
    match = POSITIONS.fullmatch(entry)
    if match is None:
        return Problem("--questions", f"there is no question {entry!r}{did_you_mean(entry, ids)}")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last:
        return Problem("--questions", f"the range {entry} ends before it begins; write {last}-{first}")
    if last >= len(ids):
        there = f"positions go from 0 to {len(ids) - 1}" if ids else "the benchmark has no questions"
        return Problem("--questions", f"there is no position {last} (in {entry!r}); {there}")
    return ids[first : last + 1]
