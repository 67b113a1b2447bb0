"""Declarations of the published stages that other distributions bring, without their work."""

from __future__ import annotations

from karenina_core import ArtifactKeys, Category, Stage, VerificationContext
from karenina_core.pipeline.stage import with_traits


class _Double(Stage):
    def execute(self, context: VerificationContext) -> None: ...


class AgenticRubricEvaluation(_Double):
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (
        ArtifactKeys.AGENTIC_RUBRIC_EVALUATION_PERFORMED,
        ArtifactKeys.AGENTIC_TRAIT_SCORES,
        ArtifactKeys.AGENTIC_TRAIT_INVESTIGATION_TRACES,
    )
    included_when = with_traits("agentic")
    after = ("RubricEvaluation",)


STAGES = (AgenticRubricEvaluation,)
