"""Answers of an earlier run, given to another run in place of asking the answering models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import evolve
from karenina_vocabulary.tasks import PromptTask

from karenina_core.log import get_logger
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.values.question import Question
from karenina_core.values.result import VerificationResult

from ..results.stored import stored_results
from .answer_files import MissPolicy, ReplayEntry, ReplayKey, is_store, load, miss_policy_of, of_manual_traces, save

__all__ = ["MissPolicy", "ReplayEntry", "ReplayKey", "ReplayStore", "Replicates", "answer_of", "as_store"]

Replicates = Literal["all", "first", "last"]
log = get_logger("karenina.run")


class ReplayStore:
    """Answers by question, model and replicate, held in memory.

    `miss_policy` says what becomes of an item without one: `strict` refuses the run before a model is called,
    `fall_through` asks its answering model, and `leave_out` leaves its question out of the run. Raises ValueError for
    any other.
    """

    def __init__(self, miss_policy: MissPolicy = "strict") -> None:
        self.miss_policy = miss_policy_of(miss_policy)
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
            log.warning("there is another answer already; the new one takes its place", question=key.question_id)
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
        save(self, self.miss_policy, Path(path), redact)

    @classmethod
    def load(cls, path: str | Path) -> ReplayStore:
        """Read what `save` has written. Raises ConfigError."""
        policy, entries = load(Path(path))
        return cls._of(entries, policy)

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
        return cls._of(of_manual_traces(traces, questions, answering_model, parsing_model), miss_policy)

    @classmethod
    def _of(cls, entries: Iterable[tuple[ReplayKey, ReplayEntry]], miss_policy: MissPolicy) -> ReplayStore:
        store = cls(miss_policy)
        for key, entry in entries:
            store.register(key, entry)
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
