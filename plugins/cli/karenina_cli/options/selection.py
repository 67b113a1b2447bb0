"""`--questions 0-5,7|ID,...`: which questions of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karenina_core.errors import ConfigError, Problem, did_you_mean

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
        match, problem = POSITIONS.fullmatch(entry), ""
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if entry in ids:
            chosen.add(entry)
        elif not entry:
            problem = "there is an empty entry; write 0-5,7 or ids, separated by commas"
        elif match is None:
            problem = f"there is no question {entry!r}{did_you_mean(entry, ids)}"
        elif first > last:
            problem = f"the range {entry} ends before it begins; write {last}-{first}"
        elif last >= len(ids):
            there = f"positions go from 0 to {len(ids) - 1}" if ids else "the benchmark has no questions"
            problem = f"there is no position {last} (in {entry!r}); {there}"
        else:
            chosen.update(ids[first : last + 1])
        problems += [Problem("--questions", problem)] if problem else []
    if problems:
        raise ConfigError(problems)
    return [question for question in ids if question in chosen]
