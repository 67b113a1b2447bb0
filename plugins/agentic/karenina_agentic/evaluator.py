"""`AgenticTraitEvaluator`: one agentic trait, from an agent's investigation to a score."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from karenina_judging.asking import closed_object
from karenina_judging.scoring import read_score, score_schema
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.record_traits import TemplateKind, read_record, record_schema
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import Karenina, ModelConfig
from karenina_core.errors import ContractError, FillError, KareninaError, ParseError, WorkspaceError, one_line, place_of
from karenina_core.log import get_logger
from karenina_core.pipeline.engine import error_kind, stops_item
from karenina_core.ports.model_client import ModelClient

from .agents import Assignment, Investigation, Material, cut_short, investigated, with_own
from .prompts import EXTRACTION, RECORD_EXTRACTION, extraction_text, investigation_system, shared_system

NO_CLASS = -1
"""How results write that a literal trait was given a text that is no class of it."""
KEYS = {"boolean": "result", "score": "score", "literal": "classification"}
LONGEST_REASON = 1000  # characters; chosen
log = get_logger("karenina.agentic")


@frozen(kw_only=True)
class Finding:
    """What became of one trait: a score or the reason why there is none, and the record of the investigation."""

    score: TraitScore
    trace: str | None = None
    """None where no investigation came to an end."""


def exported(trait: AgenticRubricTrait, score: TraitScore) -> Any:
    """The score as results keep it: -1 where a literal trait was given a text that is no class, None without a score.

    A template kind's is `{field: value}`.
    """
    if score.state == "ok":
        return score.value
    return NO_CLASS if score.state == "invalid" and trait.kind == "literal" else None


class AgenticTraitEvaluator:
    """Evaluates agentic traits with one model: it investigates as an agent, then its record is read for a score.

    score, trace = await AgenticTraitEvaluator(ModelConfig(...)).evaluate_trait(trait, question, response)
    """

    def __init__(self, model: ModelClient | ModelConfig, app: Karenina | None = None) -> None:
        """A model of a run, or the configuration of one, which is then opened for each call of `evaluate_trait` and
        `run_extraction`; the other methods need a model that is open. It has to be able to use tools."""
        self.given, self.app = model, app

    @property
    def model(self) -> ModelClient:
        if isinstance(self.given, ModelConfig):
            raise ContractError("this evaluator has no open model: use evaluate_trait or run_extraction")
        return self.given

    @asynccontextmanager
    async def _opened(self, question: str = "") -> AsyncIterator[AgenticTraitEvaluator]:
        if not isinstance(self.given, ModelConfig):
            yield self
            return
        from karenina_calls.models.models import open_client  # a run has opened its models itself

        async with open_client(self.given, question, app=self.app) as client:
            yield AgenticTraitEvaluator(client)

    async def evaluate_trait(
        self,
        trait: AgenticRubricTrait,
        question: str,
        response: str = "",
        workspace: Path | None = None,
        trace_file: Path | None = None,
    ) -> tuple[Any, str | None]:
        """`(score, trace)` of one trait; `(None, None)` where the investigation failed, `(None, trace)` where no score
        could be read from it, or it was cut short by a limit.

        The score of a template kind is `{field: value}`; of a literal trait it is the position of the class, -1 for a
        text that is none. Failures are logged as warnings and raise nothing, but for a configuration that names no
        model which can be opened (KareninaError).
        """
        material = Material(question=question, response=response, workspace=workspace, trace_file=trace_file)
        async with self._opened(question) as evaluator:
            finding = await evaluator.find(trait, material)
        return exported(trait, finding.score), finding.trace

    async def run_extraction(self, trait: AgenticRubricTrait, trace: str) -> Any:
        """The score that an investigation's record gives, as `evaluate_trait` does.

        Raises ParseError where the replies hold no score, PortError where the model cannot be reached.
        """
        async with self._opened() as evaluator:
            return exported(trait, await evaluator.extract(trait, trace))

    async def find(self, trait: AgenticRubricTrait, material: Material) -> Finding:
        """What becomes of one trait, with the reason where there is no score. Never raises for a failure."""
        try:
            investigation = await self.investigate([trait], material)
        except BaseException as error:  # adapters, agents and their tools are third-party code
            return Finding(score=failed(error, trait, "investigation", question=self.model.question_id))
        return await self.read(trait, investigation)

    async def read(self, trait: AgenticRubricTrait, investigation: Investigation, **more: Any) -> Finding:
        """What a finished investigation says about a trait. `more` are details. Never raises for a failure."""
        details = {"turns": investigation.turns, **more}
        if investigation.limit is not None:
            details["limit"] = investigation.limit
            whose = "the traits that share it" if more.get("shared") else "the trait"
            settings = {"turns": f"max_turns of {whose}", "time": f"timeout_seconds of {whose}"}
            error = cut_short(investigation.limit, self.model, **settings)
            where = {"question": self.model.question_id, "trait": trait.name}
            log.warning("an investigation was cut short", **where, limit=investigation.limit)
            score = TraitScore(state="error", reason=str(error), kind=error.kind, details=details)
        elif investigation.unexamined:
            score = TraitScore(state="error", reason=investigation.unexamined, kind="agent", details=details)
        else:
            try:
                score = await self.extract(trait, investigation.trace, details)
            except BaseException as error:  # the same
                score = failed(error, trait, "extraction", details, question=self.model.question_id)
        return Finding(score=score, trace=investigation.trace)

    async def investigate(self, traits: Sequence[AgenticRubricTrait], material: Material) -> Investigation:
        """Let one agent look into what the traits may see, with the largest of their limits.

        It works on a copy of the workspace. Raises PortError where the model cannot be reached, OSError where the
        workspace cannot be copied.
        """
        assignment = Assignment(
            task=PromptTask.RUBRIC_AGENTIC_TRAIT_INVESTIGATION,
            system=investigation_system(traits[0]) if len(traits) == 1 else shared_system(traits),
            modes=tuple(trait.context_mode for trait in traits),
            trace_as_file=any(trait.materialize_trace for trait in traits),
            max_turns=max(trait.max_turns for trait in traits),
            timeout=max(trait.timeout_seconds for trait in traits),
        )
        return await investigated(self.model, assignment, material)

    async def extract(
        self, trait: AgenticRubricTrait, trace: str, details: Mapping[str, Any] | None = None
    ) -> TraitScore:
        """The score that a record gives; `invalid` where the replies held one that is none of this trait.

        Raises ParseError and PortError.
        """
        reader = _Reader(trait)
        system = RECORD_EXTRACTION if isinstance(trait.kind, TemplateKind) else EXTRACTION
        schema = reader.schema
        task = PromptTask.RUBRIC_AGENTIC_TRAIT_EXTRACTION
        shape = {"json_schema": schema, "format_instructions": ""}
        messages = self.model.prompt(task, with_own(self.model, system), extraction_text(trait, trace), shape)
        known = dict(details or {})
        try:
            result = await self.model.parse(task, messages, schema, validate=reader.read)
        except ParseError:
            if not reader.problem:
                raise
            where = {"question": self.model.question_id, "trait": trait.name}
            log.warning("no score could be read from an investigation", **where, error=reader.problem)
            return TraitScore(
                state="invalid", reason=reader.problem[:LONGEST_REASON], label=reader.no_class, details=known
            )
        value = result.parsed
        label = trait.get_class_names()[value] if trait.kind == "literal" else None
        return TraitScore(value=value, label=label, details=known)


def failed(
    error: BaseException,
    trait: AgenticRubricTrait,
    step: str,
    details: Mapping[str, Any] | None = None,
    *,
    question: str,
) -> TraitScore:
    """The score of a trait whose investigation or extraction ended with this error, which is logged with the id of the
    question.

    Raises the error again where it stops the whole item.
    """
    if stops_item(error):
        raise error
    where = {"question": question, "trait": trait.name}
    if not isinstance(error, WorkspaceError):  # that one says what to do; where it was raised is no help
        where["traceback"] = "".join(traceback.format_exception(error))
    log.warning(f"the {step} of a trait failed", error=one_line(error), **where)
    named = isinstance(error, KareninaError) and str(error)
    message = str(error) if named else f"{one_line(error)}{place_of(error, '')}"
    reason = f"the {step} failed: {message}"[:LONGEST_REASON]
    return TraitScore(state="error", reason=reason, kind=error_kind(error), details=dict(details or {}))


@define
class _Reader:
    """Reads the replies about one trait. Remembers what was wrong with the last one that was read."""

    trait: AgenticRubricTrait
    problem: str = ""
    no_class: str | None = field(default=None, init=False)
    """What a literal trait was given instead of a class."""

    @property
    def schema(self) -> dict[str, Any]:
        kind = self.trait.kind
        if isinstance(kind, TemplateKind):
            return record_schema(kind)
        return closed_object({KEYS[str(kind)]: {**score_schema(self.trait), "description": f"{self.trait.name}"}})

    async def read(self, data: Mapping[str, Any]) -> Any:
        """The score. Raises FillError, in words for the model."""
        kind = self.trait.kind
        self.problem, self.no_class = "", None
        try:
            if isinstance(kind, TemplateKind):
                return read_record(kind, data)
            value = data.get(KEYS[str(kind)])
            if kind == "literal" and isinstance(value, str):
                self.no_class = value[:LONGEST_REASON]
            if value is None:
                raise FillError(f"{KEYS[str(kind)]} is missing")
            score = read_score(self.trait, value)
        except FillError as error:
            self.problem = str(error)
            raise
        return score
