"""What the stages that fill a template in have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import TemplateHandle

from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.stage import Skip

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


def code_alone(handle: TemplateHandle) -> str:
    """What results name as the judge of a template that has no fields for one."""
    return TRACE_ONLY if handle.trace_fields() else REGEX_ONLY
