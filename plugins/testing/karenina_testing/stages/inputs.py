"""What a stage is given to work on: random items, and a context that notices every breach of the declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Literal

from attrs import evolve, field, frozen
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.services.similarity import similarities
from karenina_calls.usage_totals import usage_metadata
from karenina_judging.services import LOAD_TEMPLATE, OTHER_MODEL, SIMILARITIES

from karenina_core.errors import ContractError, PortError, TemplateError
from karenina_core.pipeline.artifact_keys import VERDICT_VIEWS
from karenina_core.pipeline.assemble import USAGE
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.config import AttemptPolicy, EvaluationMode, ModelConfig, RetryPolicy, VerificationConfig
from karenina_core.values.identity import TaskIdentity
from karenina_core.values.outcome import Effect
from karenina_core.values.question import Question, TemplateSource
from karenina_core.values.rubric import Rubric

from ..fakes import FakeHandle, ScriptedCall, ScriptedLLM, ScriptedReply, application, example_of
from ..watch.source_lines import line_of_caller

Behaviour = Literal["good", "odd", "empty", "failing"]
"""How a scripted model answers: as asked, with text that is not what was asked for, with nothing, or not at all."""
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ONCE = AttemptPolicy(1)


@frozen
class Breach:
    """One breach of a stage's declaration, also where the stage caught the ContractError."""

    check: str
    """The name of the check that it fails."""
    message: str
    line: str


class WatchedContext(VerificationContext):
    """A context that remembers breaches of the running stage's declaration, and where they happened."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self.breaches: list[Breach] = []

    @property
    def app(self) -> Karenina:
        """The application that the context was made with, else one of the installed plugins."""
        return self._app or _installed()

    def get_artifact(self, key: Any, default: Any = None) -> Any:
        return self._watched("declared_reads", super().get_artifact, key, default)

    def has_artifact(self, key: str) -> bool:
        return bool(self._watched("declared_reads", super().has_artifact, key))

    def set_artifact(self, key: str, value: Any) -> None:
        self._watched(self._breach_of_write("produces", key, self._artifacts), super().set_artifact, key, value)

    def set_result_field(self, name: str, value: Any) -> None:
        breach = self._breach_of_write("result_fields", name, self._result_fields)
        self._watched(breach, super().set_result_field, name, value)

    def revise_result_field(self, name: str, value: Any) -> None:
        self._watched(self._breach_of_write("revises", name, {}), super().revise_result_field, name, value)

    def extend_result_field(self, name: str, entries: Any) -> None:
        self._watched(self._breach_of_write("extends", name, {}), super().extend_result_field, name, entries)

    def record(self, **effect: Any) -> None:
        self._watched("typed_output", partial(super().record, **effect))

    def _breach_of_write(self, attribute: str, key: str, store: Mapping[str, Any]) -> str:
        if key in VERDICT_VIEWS:
            return "verdict_recorded"
        if self._stage is not None and key not in getattr(self._stage, attribute):
            return "declared_writes"
        return "written_once" if key in store else "typed_output"

    def _watched(self, check: str, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except ContractError as error:
            self.breaches.append(Breach(check, str(error), line_of_caller()))
            raise


@cache
def _installed() -> Karenina:
    return application(installed=True)


@frozen(kw_only=True)
class StageInput:
    """One random item as it is when the stage's turn comes."""

    question: Question
    config: VerificationConfig = field(factory=VerificationConfig)
    mode: EvaluationMode = "template_only"
    rubric: Rubric | None = None
    artifacts: Mapping[str, Any] = field(factory=dict)
    result_fields: Mapping[str, Any] = field(factory=dict)
    effects: tuple[Effect, ...] = ()
    cached_answer_data: CachedAnswer | None = None
    handle: FakeHandle | None = None
    """The template; None where it cannot be loaded."""
    answering: Behaviour = "good"
    parsing: Behaviour = "good"
    error: str | None = None
    """An error that an earlier stage set. Only final stages are given one."""

    def context(self, **facts: Any) -> WatchedContext:
        """A fresh context with this item in it. `facts` are arguments of `VerificationContext` that take precedence."""
        calls: list[CallRecord] = facts.get("calls", [])
        answering, parsing = scripted(self.answering, "answering"), scripted(self.parsing, "parsing")
        about = (calls, self.question.id, self.question.question)
        identity = TaskIdentity(
            self.question.id, self.question.template_id, answering.config.identity, parsing.config.identity
        )

        async def client_of(model: ModelConfig) -> ModelClient:
            return ModelClient(evolve(parsing, config=model), *about)

        async def load(source: TemplateSource) -> FakeHandle:
            if self.handle is None:
                raise TemplateError("line 3: invalid syntax")
            return self.handle

        given: dict[str, Any] = {
            "question": self.question,
            "task": identity,
            "config": self.config,
            "mode": self.mode,
            "rubric": self.rubric,
            "answering": ModelClient(answering, *about),
            "parsing": ModelClient(parsing, *about),
            "cached_answer_data": self.cached_answer_data,
            "calls": calls,
        }
        services = {OTHER_MODEL: client_of, LOAD_TEMPLATE: load, USAGE: partial(usage_metadata, calls)}
        services |= facts.pop("services", {})
        context = WatchedContext(**(given | facts), services=services)
        services.setdefault(SIMILARITIES, lambda pairs: similarities(context.app, context.config, context.calls, pairs))
        context.started = BEGAN  # else no two contexts are the same
        for key, value in self.artifacts.items():
            context.set_artifact(key, value)
        for name, value in self.result_fields.items():
            context.set_result_field(name, value)
        for effect in self.effects:
            context.record(field=effect.field, verdict=effect.verdict, reason=effect.reason, outcome=effect.outcome)
        if self.error is not None:
            context.mark_error(self.error, stage="an earlier stage")
        return context

    def __str__(self) -> str:
        """The item in one line, without what is as usual."""
        usual = StageInput(question=self.question)
        names = ("artifacts", "result_fields", "effects", "mode", "rubric", "answering", "parsing", "error")
        parts = [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) != getattr(usual, name)]
        features = f"features={sorted(self.config.features)}" if self.config.features else ""
        text = ", ".join([*parts, *([features] if features else [])]) or "a plain item"
        return text if len(text) <= 400 else text[:399] + "…"


def scripted(behaviour: Behaviour, role: str) -> Model:
    """A model that answers in one way."""

    def answer(call: ScriptedCall) -> ScriptedReply:
        if behaviour == "failing":
            return PortError("the server is down", kind="server")
        if behaviour == "empty":
            return ""
        if call.output is None:
            return "I would rather talk about {the weather}.\0" if behaviour == "odd" else "The answer is 42."
        example: Mapping[str, Any] = example_of(call.output.schema)
        return {"something_else": example} if behaviour == "odd" else example

    return asked_once(f"{role}-model", ScriptedLLM(answer, channels=("json_schema", "text")))


def asked_once(name: str, llm: ScriptedLLM) -> Model:
    """A model of which nothing is asked again, so that failures take no time."""
    return Model(config=_config(name), llm=llm)


@cache
def _config(name: str) -> ModelConfig:
    """Made once: a thousand contexts have it."""
    retries = RetryPolicy(rate_limited=ONCE, timeout=ONCE, connection=ONCE, server=ONCE)
    return ModelConfig(model_name=name, interface="scripted", retry_policy=retries)
