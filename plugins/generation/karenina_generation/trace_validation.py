"""TraceValidationAutoFail: the trace of an agent with tools must end with a message of the model."""

from __future__ import annotations

from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.traces import evaluation_input

from karenina_core import Category, Skip, Stage, VerificationContext, hookimpl


class TraceValidationAutoFail(Stage):
    """Fails the verdict when an agent's trace does not end with an answer.

    Answers of a model that was asked without tools, and answers recorded by hand, are always valid.
    """

    category = Category.GUARD
    calls = ()
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.ANSWERING_MCP_SERVERS,)
    produces = (ArtifactKeys.TRACE_VALIDATION_FAILED, ArtifactKeys.TRACE_VALIDATION_ERROR, ArtifactKeys.MCP_ENABLED)
    result_fields = (*produces, "trace_extraction_error")

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        if allowed and not context.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE):
            return Skip("there is no answer")
        return allowed

    def execute(self, context: VerificationContext) -> None:
        enabled = bool(context.get_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS, []))
        agent = enabled or context.get_result_field("agent_metrics") is not None
        error = None
        if agent and not context.is_recorded:  # every stage that reads a final message looks for it in the same way
            rows = context.get_result_field("trace_messages", [])
            raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
            error = evaluation_input(rows, raw, full_trace=False).error
        context.set_artifact_and_result(ArtifactKeys.MCP_ENABLED, enabled)
        context.set_artifact_and_result(ArtifactKeys.TRACE_VALIDATION_FAILED, error is not None)
        context.set_artifact_and_result(ArtifactKeys.TRACE_VALIDATION_ERROR, error)
        if error is not None:
            context.set_result_field("trace_extraction_error", error)  # stages that would set it too are skipped then
            context.record(field=False, verdict=False, reason=error)


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(TraceValidationAutoFail)
