"""Judgment strategies: how a judge gets from an answer to a filled template. Strategies are plugins; stages ask for
one by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from attrs import field, frozen
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.handle import FilledTemplate, TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.traces import EvaluationInput
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.stage import Skip
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question

INVENTED_QUOTATIONS = "invented_quotations"
"""The caveat of results for which a judge gave quotations that are not in what it read, to the end."""


@frozen(kw_only=True)
class Judgment:
    """A filled template and how it came about."""

    filled: FilledTemplate
    channel: str | None = None
    repairs: int = 0
    evidence: Mapping[str, Any] = field(factory=dict)
    """Artifacts of deep judgment, by key; those that are left out are "not performed". The result field
    `attributes_with_invented_excerpts` too, where there are any."""
    bound: bool = False
    """Whether the values have to be in the excerpts of their fields."""


class JudgmentStrategy(Protocol):
    """Fills a template from an answer."""

    name: str

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        """Raises ParseError where the judge's replies cannot be used, PortError where it cannot be reached."""

    def calls(self, question: Question, config: VerificationConfig) -> Iterable[PlannedCall]:
        """Those that it makes for an item, `unless_decided`; see `karenina_vocabulary.planned_calls`."""


class TraitStrategy(Protocol):
    """A judgment strategy that can also score a trait: what the evaluator of `llm` traits asks for by name."""

    name: str

    async def score(self, trait: LLMRubricTrait, case: TraitCase, rules: TraitEvidenceRules) -> TraitScore:
        """The score of a boolean or score trait, with its evidence. It takes its own places (`case.in_turn`)."""

    def trait_calls(
        self, question: Question, rules: TraitEvidenceRules, config: VerificationConfig
    ) -> Iterable[PlannedCall]:
        """Those that it makes for one trait."""


NOT_PERFORMED: Mapping[str, Any] = MappingProxyType(
    {
        ArtifactKeys.DEEP_JUDGMENT_PERFORMED: False,
        ArtifactKeys.EXTRACTED_EXCERPTS: {},
        ArtifactKeys.ATTRIBUTE_REASONING: {},
        ArtifactKeys.DEEP_JUDGMENT_STAGES_COMPLETED: [],
        ArtifactKeys.DEEP_JUDGMENT_MODEL_CALLS: 0,
        ArtifactKeys.DEEP_JUDGMENT_EXCERPT_RETRY_COUNT: 0,
        ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS: [],
        ArtifactKeys.HALLUCINATION_RISK_ASSESSMENT: None,
    }
)
"""The artifacts of deep judgment where it was not performed."""
READS = (
    ArtifactKeys.RECURSION_LIMIT_REACHED,
    ArtifactKeys.TRACE_VALIDATION_FAILED,
    ArtifactKeys.ABSTENTION_DETECTED,
    ArtifactKeys.SUFFICIENCY_DETECTED,
)
"""The artifacts that `fillable` looks at, beside the answer and the template."""


REGEX_ONLY = "regex_only (no LLM)"
TRACE_ONLY = "trace_only (no LLM)"


def fillable(context: VerificationContext) -> bool | Skip:
    """Whether the template is to be filled in from this answer, or why it is not."""
    if context.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, False):
        return Skip("the answering agent reached its limit")
    if context.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED, False):
        return Skip("the trace is not valid")
    if context.get_artifact(ArtifactKeys.ABSTENTION_DETECTED, None):
        return Skip("the model abstained")
    if context.get_artifact(ArtifactKeys.SUFFICIENCY_DETECTED, None) is False:
        return Skip("the answer is insufficient")
    if context.verdict.verdict is False and context.verdict.decided_by is not None:
        return Skip(f"{context.verdict.decided_by.stage} has decided already")
    missing = [k for k in (ArtifactKeys.RAW_LLM_RESPONSE, ArtifactKeys.ANSWER) if not context.has_artifact(k)]
    return Skip(f"there is no {missing[0]}") if missing else True


def extraction_hints(context: VerificationContext, handle: TemplateHandle) -> list[str]:
    """A section of a prompt with the hints of the template's fields; none where there are none to show."""
    hints = [f"- {field.name}: {field.hint}" for field in handle.fields() if field.hint]
    shown = hints and context.config.include_extraction_hints
    return ["\n".join(["Hints:", *hints])] if shown else []


def own_strategy(handle: object) -> str | None:
    """The judgment strategy that alone can fill this template, which its runtime says in an attribute `strategy`; None:
    any can, and the run chooses. Such a template says nothing about what is in an answer: nobody else asks for its
    fields."""
    found: str | None = getattr(handle, "strategy", None)
    return found


def code_alone(handle: TemplateHandle) -> str:
    """What results name as the judge of a template that has no fields for one."""
    return TRACE_ONLY if handle.trace_fields() else REGEX_ONLY
