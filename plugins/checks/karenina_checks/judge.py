"""What both checks do with the judge: show it an answer, read its reply strictly, keep what it found."""

from __future__ import annotations

from attrs import frozen
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core import Stage, VerificationContext

__all__ = ["Finding", "examined", "keep"]


@frozen(kw_only=True)
class Finding:
    """What a check leaves behind, in the order of the four artifacts that it produces."""

    performed: bool
    detected: bool | None
    override_applied: bool = False
    reasoning: str | None = None


def examined(context: VerificationContext) -> EvaluationInput:
    """The text that the judge of the template reads too: the final message, or the whole trace on request."""
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    return evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_template)


def keep(stage: Stage, context: VerificationContext, finding: Finding) -> None:
    """Write a finding into the stage's artifacts and the result fields of the same names."""
    values = (finding.performed, finding.detected, finding.override_applied, finding.reasoning)
    for key, value in zip(stage.produces, values, strict=True):
        context.set_artifact_and_result(key, value)
