"""Files of answers that runs are given in place of asking models: `ReplayStore.save` and `load`, and traces recorded by
hand.

One JSON object: `{"version": 1, "miss_policy", "entries": [{"key": {"question_id", "answering_model", "replicate"},
"entry": {"answer": {...}, "answering_model", "replicate", "run_name", "timestamp", "fields"}}]}`, an entry a line.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from attrs import fields

from ..errors import ConfigError, Problem
from ..log import get_logger
from ..model.convert import structure
from ..model.manual import load_manual_traces
from ..model.message import Message, TextBlock, prompt_of, trace_dicts, without_prompt
from ..model.model_config import MANUAL, ManualAnswer, ModelConfig
from ..model.question import Question
from ..model.trace_text import render_trace
from ..pipeline.cached_answer import CachedAnswer
from ..plugin.application import Karenina
from ..ports.text import sanitize
from .answers import MissPolicy, ReplayEntry, ReplayKey, ReplayStore
from .stored import stored_results
from .whole_files import replacing

__all__ = ["as_store", "is_store", "load", "of_manual_traces", "save"]

VERSION = 1
OF_ITEMS = ("workspace", "replayed_from", "fields", "fields_must_fit")
"""What an answer only has while an item is given it."""
MOST_SHOWN = 80
log = get_logger("karenina.run")
BEGINNING = re.compile(rb'\s*\{\s*"(?:version|miss_policy|entries)"\s*:')
ENCODE = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""ASCII: lone surrogates stay what they are."""


def as_store(
    answers: ReplayStore | str | Path | None,
    *,
    app: Karenina | None = None,
    miss_policy: MissPolicy | None = None,
    parsed: bool = False,
) -> ReplayStore | None:
    """The store itself; that which a file holds; or a strict one of a run directory or of a file of results.

    `miss_policy` is that of the new store, and `parsed` captures fields too, as `ReplayStore.from_results` does. Raises
    ConfigError and BenchmarkError where there is nothing to read.
    """
    if answers is None or isinstance(answers, ReplayStore):
        return answers
    path = Path(answers)
    if is_store(path):
        store = ReplayStore.load(path)
        store.miss_policy = miss_policy or store.miss_policy
        return store
    return ReplayStore.from_results(stored_results(path, app), miss_policy=miss_policy or "strict", parsed=parsed)


def is_store(path: Path) -> bool:
    """Whether this looks like a file that `save` has written, and not like one of results."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return BEGINNING.match(file.read(256)) is not None


def save(store: ReplayStore, path: Path, redact: Callable[[str], str] | None = None) -> None:
    """See `ReplayStore.save`."""
    with replacing(path) as file:
        _write(store, file, redact)


def load(path: Path) -> ReplayStore:
    """See `ReplayStore.load`."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be read ({error.strerror}); check the path")]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError([Problem(str(path), f"is no file of answers: {error}")]) from None
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
        what = "is no file of answers; give one that ReplayStore.save has written, or the directory of a run"
        raise ConfigError([Problem(str(path), what)])
    if data.get("version") != VERSION:
        what = f"has the version {data.get('version')!r} of its format; this program reads {VERSION}"
        raise ConfigError([Problem(str(path), what)])
    try:
        store = ReplayStore(data.get("miss_policy", "strict"))
    except ValueError as error:
        raise ConfigError([Problem(str(path), str(error))]) from None
    for number, row in enumerate(data["entries"], 1):
        store.register(*_read(row, f"{path}: entry {number}"))
    return store


def of_manual_traces(
    store: ReplayStore,
    traces: Mapping[str, Any] | str | Path,
    questions: Iterable[Question],
    answering_model: str | None,
    parsing_model: str | None,
) -> ReplayStore:
    """Fill the store, see `ReplayStore.from_manual_traces`."""
    recorded = load_manual_traces(traces) if isinstance(traces, str | Path) else traces
    answers = ModelConfig(interface=MANUAL, manual_traces=recorded).manual_traces or {}
    left = dict.fromkeys(answers)
    for question in questions:
        text = question.question
        digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if found := [key for key in (question.id, text, digest) if key in answers]:
            store.register(
                ReplayKey(question.id, answering_model), _by_hand(answers[found[0]], answering_model, parsing_model)
            )
        for key in found:
            left.pop(key, None)
    if left:
        log.warning(
            "recorded answers are to none of the questions", answers=len(left), first=next(iter(left))[:MOST_SHOWN]
        )
    return store


def _by_hand(recorded: ManualAnswer, answering_model: str | None, parsing_model: str | None) -> ReplayEntry:
    """As a run with the interface `manual` takes it."""
    said, flags = sanitize(recorded.answer)
    trace = recorded.messages or (Message("assistant", (TextBlock(said),)),)
    told = without_prompt(trace)
    text = said if len(told) == 1 and not told[0].tool_calls else render_trace(told)
    answer = CachedAnswer(
        raw_llm_response=text,
        trace_messages=tuple(trace_dicts(trace)),
        conversation_context=tuple(message.to_dict() for message in prompt_of(trace)),
        text_flags=tuple(flags),
    )
    fields = {} if recorded.fields is None or parsing_model is None else {parsing_model: recorded.fields}
    return ReplayEntry(answer=answer, answering_model=answering_model, fields=fields)


def _write(store: ReplayStore, file: IO[bytes], redact: Callable[[str], str] | None) -> None:
    begin = f'{{"version":{VERSION},"miss_policy":"{store.miss_policy}","entries":['
    file.write(begin.encode("ascii"))
    separator = "\n"
    for line in map(ENCODE, _rows(store, redact)):
        file.write(f"{separator}{line}".encode("ascii"))
        separator = ",\n"
    file.write(b"\n]}\n")


def _rows(store: ReplayStore, redact: Callable[[str], str] | None) -> Iterator[dict[str, Any]]:
    for key, entry in store:
        answer = {a.name: getattr(entry.answer, a.name) for a in fields(CachedAnswer) if a.name not in OF_ITEMS}
        told = {a.name: getattr(entry, a.name) for a in fields(ReplayEntry) if a.name != "answer"}
        row = {
            "key": {a.name: getattr(key, a.name) for a in fields(ReplayKey)},
            "entry": _plain({"answer": answer, **told}, redact or str),
        }
        yield row


def _plain(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item, redact) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def _read(row: Any, where: str) -> tuple[ReplayKey, ReplayEntry]:
    """Raises ConfigError."""
    if not isinstance(row, dict) or row.keys() != {"key", "entry"} or not isinstance(row["entry"], dict):
        raise ConfigError([Problem(where, 'must be {"key": {...}, "entry": {...}}')])
    answer = row["entry"].get("answer")
    if not isinstance(answer, dict) or set(answer) & set(OF_ITEMS):
        raise ConfigError([Problem(where, "has no answer that can be given to items")])
    return structure(row["key"], ReplayKey, f"{where}: key"), structure(row["entry"], ReplayEntry, f"{where}: entry")
