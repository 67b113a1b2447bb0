"""Declarations of the published stages that other distributions bring, without their work."""

from __future__ import annotations

from karenina_core import ArtifactKeys, Category, Stage, VerificationContext, feature
from karenina_core.pipeline.stage import in_mode, with_traits

TEMPLATE_MODES = in_mode("template_only", "template_and_rubric")
CLASSICAL = ("llm", "regex", "callable", "metric")


class _Double(Stage):
    def execute(self, context: VerificationContext) -> None: ...


class AbstentionCheck(_Double):
    category = Category.PRE_PARSE_CHECK
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.RECURSION_LIMIT_REACHED,)
    produces = (
        ArtifactKeys.ABSTENTION_CHECK_PERFORMED,
        ArtifactKeys.ABSTENTION_DETECTED,
        ArtifactKeys.ABSTENTION_OVERRIDE_APPLIED,
        ArtifactKeys.ABSTENTION_REASONING,
    )
    included_when = feature("abstention")


class SufficiencyCheck(_Double):
    category = Category.PRE_PARSE_CHECK
    requires = (ArtifactKeys.RAW_LLM_RESPONSE, ArtifactKeys.ANSWER)
    reads = (
        ArtifactKeys.RECURSION_LIMIT_REACHED,
        ArtifactKeys.TRACE_VALIDATION_FAILED,
        ArtifactKeys.ABSTENTION_DETECTED,
    )
    produces = (
        ArtifactKeys.SUFFICIENCY_CHECK_PERFORMED,
        ArtifactKeys.SUFFICIENCY_DETECTED,
        ArtifactKeys.SUFFICIENCY_OVERRIDE_APPLIED,
        ArtifactKeys.SUFFICIENCY_REASONING,
    )
    included_when = TEMPLATE_MODES & feature("sufficiency")


class EmbeddingCheck(_Double):
    category = Category.ENHANCEMENT
    requires = (
        ArtifactKeys.PARSED_ANSWER,
        ArtifactKeys.FIELD_VERIFICATION_RESULT,
        ArtifactKeys.REGEX_VERIFICATION_RESULTS,
    )
    produces = (
        ArtifactKeys.EMBEDDING_CHECK_PERFORMED,
        ArtifactKeys.EMBEDDING_SIMILARITY_SCORE,
        ArtifactKeys.EMBEDDING_MODEL_USED,
        ArtifactKeys.EMBEDDING_OVERRIDE_APPLIED,
    )
    included_when = TEMPLATE_MODES
    before = ("DeepJudgmentAutoFail",)


class DeepJudgmentAutoFail(_Double):
    category = Category.ENHANCEMENT
    requires = (
        ArtifactKeys.DEEP_JUDGMENT_PERFORMED,
        ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS,
        ArtifactKeys.VERIFY_RESULT,
        ArtifactKeys.FIELD_VERIFICATION_RESULT,
    )
    included_when = TEMPLATE_MODES & feature("deep_judgment")


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
    AbstentionCheck,
    SufficiencyCheck,
    EmbeddingCheck,
    DeepJudgmentAutoFail,
    RubricEvaluation,
    AgenticRubricEvaluation,
    DeepJudgmentRubricAutoFail,
)
