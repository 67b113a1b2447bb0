"""`--questions 0-5,7|ID,...` and `--answers`: which questions of a benchmark, and the answers that a run is given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from karenina_runs.answers.answers import MissPolicy, ReplayStore, as_store

from karenina_core.errors import BenchmarkError, ConfigError, Problem, did_you_mean
from karenina_core.plugin.application import Karenina

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


def given_answers(options: Mapping[str, Any], app: Karenina) -> ReplayStore | None:
    """What `--answers` names. Raises ConfigError."""
    path = options["answers"]
    if path is None:
        if idle := [name for name in ("ask_missing", "only_answered", "parsed") if options[name]]:
            option = f"--{idle[0].replace('_', '-')}"
            raise ConfigError([Problem(option, "says how answers are used, and there are none; add --answers DIR")])
        return None
    if options["ask_missing"] and options["only_answered"]:
        raise ConfigError([Problem("--only-answered", "leaves out what --ask-missing asks for; give one of them")])
    policies: dict[str, MissPolicy] = {"ask_missing": "fall_through", "only_answered": "leave_out"}
    policy = next((policy for name, policy in policies.items() if options[name]), None)
    try:
        found = as_store(path, app=app, miss_policy=policy, parsed=options["parsed"])
    except BenchmarkError as error:
        other = "answers without a run behind them are given with --manual-traces"
        raise ConfigError([Problem("--answers", f"{error}; {other}")]) from None
    if found is not None and options["parsed"] and not any(entry.fields for _, entry in found):
        what = f"{path} has no fields that judges have extracted; leave it out, and the judge is asked"
        raise ConfigError([Problem("--parsed", what)])
    return found
