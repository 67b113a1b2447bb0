"""Files of recorded answers.

One JSON object: a key is a question's id, its text or the MD5 of its text, a value the answer or an object with
`answer` and, for a run without a judge, `fields`. An answer is a text, or a list of messages: `[{"role": "user",
"content": "..."}, {"role": "assistant", "content": "..."}]`, with their tool calls, as a trace or a chat completion has
them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.config import ManualAnswer
from karenina_core.values.message import read_messages

from ..files.bounded import MOST_LEVELS, is_deeper, read_bounded

MANUAL = "manual"
"""The interface that answers from such a file."""
ENTRY_KEYS = ("answer", "fields")
LONGEST_KEY = 80
"""Characters of a key in a message. Chosen: they fit on a line."""
FORM = 'write "the answer", [{"role": "...", "content": "..."}, ...] or {"answer": "...", "fields": {...}}'


def keys_of(question_id: str, text: str, answers: Mapping[str, Any]) -> list[str]:
    """The keys of the recorded answers that are to this question, the one that counts first."""
    md5 = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return [key for key in dict.fromkeys((question_id, text, md5)) if key and key in answers]


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys were written more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]


def load_manual_traces(path: str | Path) -> dict[str, ManualAnswer]:
    """The recorded answers of a JSON file, by key as written.

    Raises ConfigError with every problem, each naming the file and the key.
    """
    try:
        data = json.loads(
            read_bounded(path, pipes=True).decode("utf-8-sig"), object_pairs_hook=_Object, parse_constant=_no_constant
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([Problem(str(path), f"cannot be read ({reason}); check the path")]) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem(str(path), "is not UTF-8; save it as UTF-8")]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError([Problem(str(path), f"is not JSON: {error}; by question, {FORM}")]) from None
    if is_deeper(data, MOST_LEVELS):
        raise ConfigError([Problem(str(path), f"is nested deeper than {MOST_LEVELS} levels")])
    if not isinstance(data, _Object):
        raise ConfigError([Problem(str(path), f"must be one JSON object: by question, {FORM}")])
    problems = []
    for key, what in _faults(data):
        shown = key if len(key) <= LONGEST_KEY else key[: LONGEST_KEY - 1] + "…"
        problems.append(Problem(f"{path}: {shown!r}" if key else str(path), what))
    if problems:
        raise ConfigError(problems)
    return {key: _answer(entry) for key, entry in data.items()}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _faults(data: _Object) -> Iterator[tuple[str, str]]:
    """What is wrong, and under which key; no key for what concerns the whole file."""
    if not data:
        yield "", "holds no answers"
    for key in data.repeated:
        yield key, "occurs more than once; keep one answer per question"
    for key, entry in data.items():
        if not key.strip():
            yield key, "a key must be a question's id, its text or the MD5 of its text"
        answer = entry
        if isinstance(entry, _Object):
            answer = entry.get("answer")
            for name in entry:
                if name not in ENTRY_KEYS:
                    yield key, f"unknown key {name!r}{did_you_mean(name, ENTRY_KEYS)}; {FORM}"
            for name in _repeated(entry):
                yield key, f"{name!r} occurs more than once"
            if not isinstance(entry.get("fields"), _Object | None):
                yield key, "fields must be an object: the values that a judge would extract from the answer, by field"
        if isinstance(answer, list):
            if twice := next(_repeated(answer), None):
                yield key, f"{twice!r} occurs more than once in one message"
                continue
            try:
                read_messages(answer)
            except ValueError as error:
                yield key, str(error)
        elif not isinstance(answer, str):
            yield key, f"the answer must be a text; {FORM}" if isinstance(entry, _Object) else FORM


def _repeated(value: Any) -> Iterator[str]:
    if isinstance(value, _Object):
        yield from value.repeated
        for entry in value.values():
            yield from _repeated(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _repeated(entry)


def _answer(entry: Any) -> ManualAnswer:
    given = entry["answer"] if isinstance(entry, dict) else entry
    fields = entry.get("fields") if isinstance(entry, dict) else None
    messages = () if isinstance(given, str) else read_messages(given)
    text = given if isinstance(given, str) else [m.text for m in messages if m.role == "assistant"][-1]
    return ManualAnswer(text, json.loads(json.dumps(fields)), messages)
