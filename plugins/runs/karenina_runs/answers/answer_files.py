"""Files of answers for runs that do not ask their models: `ReplayStore.save` and `load`, and traces recorded by hand.

One JSON object: `{"version": 1, "miss_policy", "entries": [{"key": {"question_id", "answering_model", "replicate"},
"entry": {"answer": {...}, "answering_model", "replicate", "run_name", "timestamp", "fields"}}]}`, an entry a line.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from attrs import asdict, evolve, field, fields, frozen
from karenina_calls.ports.text import sanitize
from karenina_calls.records.manual import MANUAL, load_manual_traces
from karenina_vocabulary.traces import prompt_of, render_trace

from karenina_core.errors import ConfigError, Problem
from karenina_core.log import get_logger
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.values.convert import structure
from karenina_core.values.message import Message, TextBlock, trace_dicts, without_prompt
from karenina_core.values.model_config import ManualAnswer, ModelConfig
from karenina_core.values.question import Question

from ..files.atomic_files import replacing
from ..results.records import redacted

MissPolicy = Literal["strict", "fall_through", "leave_out"]

VERSION = 1
OF_ITEMS = ("workspace", "replayed_from", "fields", "fields_must_fit")
"""What an answer only has while an item is given it."""
MOST_SHOWN = 80
log = get_logger("karenina.run")
BEGINNING = re.compile(rb'\s*\{\s*"(?:version|miss_policy|entries)"\s*:')
ENCODE = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""ASCII: lone surrogates stay what they are."""


@frozen
class ReplayKey:
    """What an answer is found by. None: any model, or any replicate."""

    question_id: str
    answering_model: str | None = None
    """As `result.metadata.answering_model` has it."""
    replicate: int | None = None


@frozen(kw_only=True)
class ReplayEntry:
    """An answer, and where it was captured."""

    answer: CachedAnswer
    answering_model: str | None = None
    """The model that gave it, as `result.metadata.answering_model` has it."""
    replicate: int | None = None
    run_name: str | None = None
    timestamp: str | None = None
    """ISO 8601: when the item began."""
    fields: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """What judges have extracted from it, by judge as `result.metadata.parsing_model` has it. Empty: they are asked."""

    def replayed(self, *, strict: bool) -> CachedAnswer:
        """The answer as an item is given it. It says where it is from."""
        origin = {name: getattr(self, name) for name in ("run_name", "answering_model", "replicate", "timestamp")}
        return evolve(self.answer, replayed_from=origin, fields=self.fields, fields_must_fit=strict)


def miss_policy_of(value: Any) -> MissPolicy:
    """Raises ValueError for what is none."""
    if value not in get_args(MissPolicy):
        raise ValueError(f"miss_policy is {value!r}; it is one of: {', '.join(get_args(MissPolicy))}")
    return cast(MissPolicy, value)


def is_store(path: Path) -> bool:
    """Whether this looks like a file that `save` has written, and not like one of results."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return BEGINNING.match(file.read(256)) is not None


def save(
    entries: Iterable[tuple[ReplayKey, ReplayEntry]],
    miss_policy: MissPolicy,
    path: Path,
    redact: Callable[[str], str] | None = None,
) -> None:
    """See `ReplayStore.save`."""
    begin = f'{{"version":{VERSION},"miss_policy":"{miss_policy}","entries":['
    with replacing(path) as file:
        file.write(begin.encode("ascii"))
        separator = "\n"
        for key, entry in entries:
            answer = {a.name: getattr(entry.answer, a.name) for a in fields(CachedAnswer) if a.name not in OF_ITEMS}
            about = {a.name: getattr(entry, a.name) for a in fields(ReplayEntry) if a.name != "answer"}
            row = {"key": asdict(key), "entry": redacted({"answer": answer, **about}, redact or str)}
            file.write(f"{separator}{ENCODE(row)}".encode("ascii"))
            separator = ",\n"
        file.write(b"\n]}\n")


def load(path: Path) -> tuple[MissPolicy, list[tuple[ReplayKey, ReplayEntry]]]:
    """The policy and the entries of a file that `save` has written. Raises ConfigError."""
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
        policy = miss_policy_of(data.get("miss_policy", "strict"))
    except ValueError as error:
        raise ConfigError([Problem(str(path), str(error))]) from None
    return policy, [_read(row, f"{path}: entry {number}") for number, row in enumerate(data["entries"], 1)]


def of_manual_traces(
    traces: Mapping[str, Any] | str | Path,
    questions: Iterable[Question],
    answering_model: str | None,
    parsing_model: str | None,
) -> Iterator[tuple[ReplayKey, ReplayEntry]]:
    """See `ReplayStore.from_manual_traces`."""
    recorded = load_manual_traces(traces) if isinstance(traces, str | Path) else traces
    answers = ModelConfig(interface=MANUAL, manual_traces=recorded).manual_traces or {}
    left = dict.fromkeys(answers)
    for question in questions:
        text = question.question
        digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if found := [key for key in (question.id, text, digest) if key in answers]:
            yield ReplayKey(question.id, answering_model), _by_hand(answers[found[0]], answering_model, parsing_model)
        for key in found:
            left.pop(key, None)
    if left:
        log.warning(
            "recorded answers are to none of the questions", answers=len(left), first=next(iter(left))[:MOST_SHOWN]
        )


def _by_hand(recorded: ManualAnswer, answering_model: str | None, parsing_model: str | None) -> ReplayEntry:
    """As a run with the interface `manual` takes it."""
    cleaned, flags = sanitize(recorded.answer)
    trace = recorded.messages or (Message("assistant", (TextBlock(cleaned),)),)
    replies = without_prompt(trace)
    text = cleaned if len(replies) == 1 and not replies[0].tool_calls else render_trace(replies)
    answer = CachedAnswer(
        raw_llm_response=text,
        trace_messages=tuple(trace_dicts(trace)),
        conversation_context=tuple(message.to_dict() for message in prompt_of(trace)),
        text_flags=tuple(flags),
    )
    fields = {} if recorded.fields is None or parsing_model is None else {parsing_model: recorded.fields}
    return ReplayEntry(answer=answer, answering_model=answering_model, fields=fields)


def _read(row: Any, where: str) -> tuple[ReplayKey, ReplayEntry]:
    """Raises ConfigError."""
    if not isinstance(row, dict) or row.keys() != {"key", "entry"} or not isinstance(row["entry"], dict):
        raise ConfigError([Problem(where, 'must be {"key": {...}, "entry": {...}}')])
    answer = row["entry"].get("answer")
    if not isinstance(answer, dict) or set(answer) & set(OF_ITEMS):
        raise ConfigError([Problem(where, "has no answer that can be given to items")])
    return structure(row["key"], ReplayKey, f"{where}: key"), structure(row["entry"], ReplayEntry, f"{where}: entry")
