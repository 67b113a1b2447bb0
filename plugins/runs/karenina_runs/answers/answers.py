"""Answers of an earlier run or recorded by hand, given to a run in place of asking the answering models.

A file of them is one JSON object: `{"version": 1, "miss_policy", "entries": [{"key": {"question_id", "answering_model",
"replicate"}, "entry": {"answer": {...}, "answering_model", "replicate", "run_name", "timestamp", "fields"}}]}`, an
entry a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import asdict, evolve, field, fields, frozen
from karenina_calls.files.bounded import LEVELS_OF_RECORDS, MOST_RECORDED, read_json
from karenina_calls.ports.text import sanitize
from karenina_calls.records.manual import MANUAL, keys_of, load_manual_traces
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import prompt_of, render_trace

from karenina_core.errors import ConfigError, Problem
from karenina_core.log import get_logger
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.values.convert import structure
from karenina_core.values.message import Message, TextBlock, trace_dicts, without_prompt
from karenina_core.values.model_config import ManualAnswer, ModelConfig
from karenina_core.values.question import Question
from karenina_core.values.result import VerificationResult

from ..files.atomic_files import replacing
from ..results.lines import redacted
from ..results.stored import stored_results

MissPolicy = Literal["strict", "fall_through", "leave_out"]
Replicates = Literal["all", "first", "last"]
VERSION = 1  # of the format
OF_ITEMS = ("workspace", "replayed_from", "fields", "fields_must_fit")
"""What an answer only has while an item is given it."""
MOST_SHOWN = 80
"""Characters of a recorded answer's key in the log. Chosen: they fit on a line."""
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


def is_store(path: Path) -> bool:
    """Whether this looks like a file that `save` has written, and not like one of results."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return BEGINNING.match(file.read(256)) is not None


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


class ReplayStore:
    """Answers by question, model and replicate, held in memory.

    `miss_policy` says what becomes of an item without one: `strict` refuses the run before a model is called,
    `fall_through` asks its answering model, and `leave_out` leaves its question out of the run. Raises ValueError for
    any other.
    """

    def __init__(self, miss_policy: MissPolicy = "strict") -> None:
        if miss_policy not in get_args(MissPolicy):
            raise ValueError(f"miss_policy is {miss_policy!r}; it is one of: {', '.join(get_args(MissPolicy))}")
        self.miss_policy = miss_policy
        self.overwritten = 0
        """How often another answer took the place of one with the same key."""
        self.asked_again: frozenset[tuple[str, str, int]] = frozenset()
        """Question, answering model and replicate of answers that a repair asks for in spite of those that are here,
        whatever the `miss_policy`. Not saved: the manifest of the run says it."""
        self._entries: dict[ReplayKey, ReplayEntry] = {}
        self._questions: set[str] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[ReplayKey, ReplayEntry]]:
        """Keys and entries, in the order in which keys came first."""
        return iter(self._entries.items())

    def __repr__(self) -> str:
        return f"<ReplayStore of {len(self)} answers, {self.miss_policy}>"

    def register(self, key: ReplayKey, entry: ReplayEntry) -> None:
        """Add an answer. One that differs takes the place of that which was there, with a warning in the log.

        The same answer once more, as of another judge, adds what that judge has extracted.
        """
        before = self._entries.get(key)
        # Usage is not compared: of an answer that judges share it is recorded once.
        if before is not None and all(
            getattr(before.answer, name) == getattr(entry.answer, name)
            for name in ("raw_llm_response", "trace_messages")
        ):
            entry = evolve(before, fields={**before.fields, **entry.fields})
        elif before is not None:
            self.overwritten += 1
            log.warning("there is another answer already; the new one replaces it", question=key.question_id)
        self._entries[key] = entry
        self._questions.add(key.question_id)

    def lookup(self, question_id: str, answering_model: str, replicate: int) -> ReplayEntry | None:
        """The answer that was registered most precisely: for this model and replicate, else for this model, else for
        this replicate of any model, else for any."""
        return next(
            (
                entry
                for model in (answering_model, None)
                for number in (replicate, None)
                if (entry := self._entries.get(ReplayKey(question_id, model, number))) is not None
            ),
            None,
        )

    def has_any_for(self, question_id: str) -> bool:
        """Whether there is an answer to this question, of whatever model."""
        return question_id in self._questions

    def save(self, path: str | Path, *, redact: Callable[[str], str] | None = None) -> None:
        """Write a file that `load` reads; it is there as a whole or not at all. `redact` takes secrets out of texts.

        Raises OSError.
        """
        begin = f'{{"version":{VERSION},"miss_policy":"{self.miss_policy}","entries":['
        with replacing(Path(path)) as file:
            file.write(begin.encode("ascii"))
            separator = "\n"
            for key, entry in self:
                answer = {a.name: getattr(entry.answer, a.name) for a in fields(CachedAnswer) if a.name not in OF_ITEMS}
                about = {a.name: getattr(entry, a.name) for a in fields(ReplayEntry) if a.name != "answer"}
                row = {"key": asdict(key), "entry": redacted({"answer": answer, **about}, redact or str)}
                file.write(f"{separator}{ENCODE(row)}".encode("ascii"))
                separator = ",\n"
            file.write(b"\n]}\n")

    @classmethod
    def load(cls, path: str | Path) -> ReplayStore:
        """Read what `save` has written. Raises ConfigError."""
        try:
            data = read_json(path, MOST_RECORDED, LEVELS_OF_RECORDS)
        except OSError as error:
            raise ConfigError([Problem(str(path), f"cannot be read ({error.strerror}); check the path")]) from None
        except ValueError as error:
            raise ConfigError([Problem(str(path), f"is not a file of answers: {error}")]) from None
        if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
            what = "is not a file of answers; give one that ReplayStore.save has written, or the directory of a run"
            raise ConfigError([Problem(str(path), what)])
        if data.get("version") != VERSION:
            what = f"has the version {data.get('version')!r} of its format; this program reads {VERSION}"
            raise ConfigError([Problem(str(path), what)])
        try:
            store = cls(data.get("miss_policy", "strict"))
        except ValueError as error:
            raise ConfigError([Problem(str(path), str(error))]) from None
        for number, row in enumerate(data["entries"], 1):
            where = f"{path}: entry {number}"
            if not isinstance(row, dict) or row.keys() != {"key", "entry"} or not isinstance(row["entry"], dict):
                raise ConfigError([Problem(where, 'must be {"key": {...}, "entry": {...}}')])
            answer = row["entry"].get("answer")
            if not isinstance(answer, dict) or set(answer) & set(OF_ITEMS):
                raise ConfigError([Problem(where, "has no answer that can be given to items")])
            key = structure(row["key"], ReplayKey, f"{where}: key")
            store.register(key, structure(row["entry"], ReplayEntry, f"{where}: entry"))
        return store

    @classmethod
    def from_results(
        cls,
        results: Iterable[VerificationResult] | str | Path,
        *,
        miss_policy: MissPolicy = "strict",
        answering_models: Iterable[str] | None = None,
        replicates: Replicates = "all",
        only_successful: bool = False,
        parsed: bool = False,
    ) -> ReplayStore:
        """The answers of results, or of the results in a run directory or file. Several judges' results of one answer
        give one entry.

        `answering_models` are named as `result.metadata.answering_model` has them; None means all. `replicates`: `all`
        keeps every replicate's answer as its own; `first` and `last` keep that one of each question and model, for
        every replicate. `only_successful` leaves out items that ended in an error; an answer that is wrong is no error,
        and an item that failed at its judge has an answer like any other. `parsed` also captures the fields that
        judges have extracted, which are then used in place of asking these judges. Raises ValueError for other
        `replicates`, and BenchmarkError where there is nothing to read.
        """
        if replicates not in get_args(Replicates):
            raise ValueError(f"replicates is {replicates!r}; it is one of: {', '.join(get_args(Replicates))}")
        store = cls(miss_policy)
        models = None if answering_models is None else frozenset(answering_models)
        for result in stored_results(results) if isinstance(results, str | Path) else results:
            about = result.metadata
            if models is not None and about.answering_model not in models:
                continue
            if (entry := _entry(result, parsed)) is None or (only_successful and about.outcome == "error"):
                continue
            number = about.replicate if replicates == "all" else None
            key = ReplayKey(about.question_id, about.answering_model, number)
            before = store._entries.get(key)
            there, new = (0 if found is None else found.replicate or 0 for found in (before, entry))
            if number is not None or before is None or there == new:
                store.register(key, entry)
            elif (new < there) == (replicates == "first"):
                store._entries[key] = entry
        return store

    @classmethod
    def from_manual_traces(
        cls,
        traces: Mapping[str, Any] | str | Path,
        questions: Iterable[Question],
        *,
        answering_model: str | None = None,
        parsing_model: str | None = None,
        miss_policy: MissPolicy = "strict",
    ) -> ReplayStore:
        """Answers that were recorded by hand, as `ModelConfig.manual_traces` takes them, or in a file of them.

        `questions` are those of the benchmark: an answer is found by a question's id, else its text, else the MD5 of
        its text. It is that of every replicate of `answering_model`, named as `result.metadata.answering_model` has
        it; None means any model. Fields that were recorded with it are used in place of asking `parsing_model`, and not
        without one. The log warns of answers to none of the questions. Raises ConfigError for traces that are none.
        """
        recorded = load_manual_traces(traces) if isinstance(traces, str | Path) else traces
        answers = ModelConfig(interface=MANUAL, manual_traces=recorded).manual_traces or {}
        store, left = cls(miss_policy), dict.fromkeys(answers)
        for question in questions:
            if found := keys_of(question.id, question.question, answers):
                entry = _by_hand(answers[found[0]], answering_model, parsing_model)
                store.register(ReplayKey(question.id, answering_model), entry)
            for key in found:
                left.pop(key, None)
        if left:
            first = next(iter(left))[:MOST_SHOWN]
            log.warning("recorded answers match none of the questions", answers=len(left), first=first)
        return store


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


def answer_of(result: VerificationResult) -> CachedAnswer | None:
    """The answer of a finished item, for other judges; None where there is none worth sharing."""
    generation = result.generation
    if not generation.has_answer:  # the messages of an agent that failed are none
        return None
    answer_calls = {task: row for task, row in generation.usage_metadata.items() if task == PromptTask.GENERATION}
    return CachedAnswer(
        raw_llm_response=generation.raw_llm_response,
        trace_messages=tuple(generation.trace_messages),
        recursion_limit_reached=generation.recursion_limit_reached,
        answering_mcp_servers=tuple(generation.answering_mcp_servers),
        usage_metadata=answer_calls,
        agent_metrics=generation.agent_metrics,
        conversation_context=tuple(generation.conversation_context),
        text_flags=tuple(generation.text_flags),
        usage_unavailable=generation.usage_unavailable,
        few_shot_example_count=result.metadata.few_shot_example_count,
        replayed_from=generation.replayed_from,
    )


def _entry(result: VerificationResult, parsed: bool) -> ReplayEntry | None:
    if (answer := answer_of(result)) is None:
        return None
    about, origin = result.metadata, answer.replayed_from or {}
    extracted = result.template.parsed_llm_response if parsed and result.template is not None else None
    return ReplayEntry(
        answer=evolve(answer, replayed_from=None),
        answering_model=origin.get("answering_model", about.answering_model),
        replicate=origin.get("replicate", about.replicate),
        run_name=origin.get("run_name", about.run_name),
        timestamp=origin.get("timestamp", about.timestamp),
        fields={} if extracted is None else {about.parsing_model: dict(extracted)},
    )
