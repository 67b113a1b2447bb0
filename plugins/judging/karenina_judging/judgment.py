"""Judgment strategies: how a judge gets from an answer to a filled template. Strategies are plugins; stages ask for
one by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import field, frozen
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.handle import FilledTemplate, TemplateHandle
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.traces import EvaluationInput
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.pipeline.context import VerificationContext

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


class JudgmentStrategy(Protocol):
    """Fills a template from an answer."""

    name: str

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        """Raises ParseError where the judge's replies cannot be used, PortError where it cannot be reached."""
        ...


class TraitStrategy(Protocol):
    """A judgment strategy that can also score a trait: what the evaluator of `llm` traits asks for by name."""

    name: str

    async def score(self, trait: LLMRubricTrait, case: TraitCase, rules: TraitEvidenceRules) -> TraitScore:
        """The score of a boolean or score trait, with its evidence. It takes its own places (`case.in_turn`)."""
        ...
