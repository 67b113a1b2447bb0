"""Declarations of the published stages that other distributions bring, without their work."""

from __future__ import annotations

from karenina_core import ArtifactKeys, Category, Stage, VerificationContext
from karenina_core.pipeline.stage import with_traits

CLASSICAL = ("llm", "regex", "callable", "metric")


class _Double(Stage):
    def execute(self, context: VerificationContext) -> None: ...


class RubricEvaluation(_Double):
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (
        ArtifactKeys.RUBRIC_RESULT,
        ArtifactKeys.LLM_TRAIT_LABELS,
        ArtifactKeys.METRIC_CONFUSION_LISTS,
        ArtifactKeys.METRIC_RESULTS,
    )
    included_when = with_traits(*CLASSICAL)


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


class DeepJudgmentRubricAutoFail(_Double):
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    included_when = with_traits(*CLASSICAL)
    after = ("RubricEvaluation", "AgenticRubricEvaluation")


STAGES = (
    RubricEvaluation,
    AgenticRubricEvaluation,
    DeepJudgmentRubricAutoFail,
)
