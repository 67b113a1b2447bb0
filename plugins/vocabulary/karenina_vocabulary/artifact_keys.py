"""The artifacts that karenina's own stages hand to each other."""

from __future__ import annotations

from typing import Any

from karenina_core.pipeline.artifact_keys import CoreKeys, Key


class ArtifactKeys(CoreKeys):
    """The artifacts of the published pipeline."""

    RAW_ANSWER: Key[Any] = Key("RawAnswer", object)
    """The template's handle, as the benchmark has it."""
    ANSWER: Key[Any] = Key("Answer", object)
    """The template's handle, for this question."""
    TEMPLATE_VALIDATION_ERROR: Key[str | None] = Key("template_validation_error", str | None)
    RECURSION_LIMIT_REACHED: Key[bool] = Key("recursion_limit_reached", bool)
    ANSWERING_MODEL_STR: Key[str] = Key("answering_model_str", str)
    ANSWERING_MCP_SERVERS: Key[list[str]] = Key("answering_mcp_servers", list[str])
    TRACE_VALIDATION_FAILED: Key[bool] = Key("trace_validation_failed", bool)
    TRACE_VALIDATION_ERROR: Key[str | None] = Key("trace_validation_error", str | None)
    MCP_ENABLED: Key[bool] = Key("mcp_enabled", bool)
    ABSTENTION_CHECK_PERFORMED: Key[bool] = Key("abstention_check_performed", bool)
    ABSTENTION_DETECTED: Key[bool | None] = Key("abstention_detected", bool | None)
    ABSTENTION_OVERRIDE_APPLIED: Key[bool] = Key("abstention_override_applied", bool)
    ABSTENTION_REASONING: Key[str | None] = Key("abstention_reasoning", str | None)
    SUFFICIENCY_CHECK_PERFORMED: Key[bool] = Key("sufficiency_check_performed", bool)
    SUFFICIENCY_DETECTED: Key[bool | None] = Key("sufficiency_detected", bool | None)
    """True means sufficient."""
    SUFFICIENCY_OVERRIDE_APPLIED: Key[bool] = Key("sufficiency_override_applied", bool)
    SUFFICIENCY_REASONING: Key[str | None] = Key("sufficiency_reasoning", str | None)
    PARSED_ANSWER: Key[Any] = Key("parsed_answer", object)
    """The filled template."""
    PARSING_MODEL_STR: Key[str] = Key("parsing_model_str", str)
    TEMPLATE_EVALUATOR: Key[str | None] = Key("template_evaluator", str | None)
    """The judgment strategy that filled the template; None where no judge was needed."""
    DEEP_JUDGMENT_PERFORMED: Key[bool] = Key("deep_judgment_performed", bool)
    EXTRACTED_EXCERPTS: Key[dict[str, Any]] = Key("extracted_excerpts", dict[str, Any])
    ATTRIBUTE_REASONING: Key[dict[str, str]] = Key("attribute_reasoning", dict[str, str])
    DEEP_JUDGMENT_STAGES_COMPLETED: Key[list[str]] = Key("deep_judgment_stages_completed", list[str])
    DEEP_JUDGMENT_MODEL_CALLS: Key[int] = Key("deep_judgment_model_calls", int)
    DEEP_JUDGMENT_EXCERPT_RETRY_COUNT: Key[int] = Key("deep_judgment_excerpt_retry_count", int)
    ATTRIBUTES_WITHOUT_EXCERPTS: Key[list[str]] = Key("attributes_without_excerpts", list[str])
    HALLUCINATION_RISK_ASSESSMENT: Key[dict[str, str] | None] = Key(
        "hallucination_risk_assessment", dict[str, str] | None
    )
    INVESTIGATION_TRACE: Key[str | None] = Key("investigation_trace", str | None)
    AGENTIC_PARSING_PERFORMED: Key[bool] = Key("agentic_parsing_performed", bool)
    REGEX_VERIFICATION_RESULTS: Key[dict[str, Any]] = Key("regex_verification_results", dict[str, Any])
    REGEX_EXTRACTION_RESULTS: Key[dict[str, Any]] = Key("regex_extraction_results", dict[str, Any])
    VERIFY_GRANULAR_RESULT: Key[float | None] = Key("verify_granular_result", float | int | None)
    EMBEDDING_CHECK_PERFORMED: Key[bool] = Key("embedding_check_performed", bool)
    EMBEDDING_SIMILARITY_SCORE: Key[float | None] = Key("embedding_similarity_score", float | None)
    EMBEDDING_MODEL_USED: Key[str | None] = Key("embedding_model_used", str | None)
    EMBEDDING_OVERRIDE_APPLIED: Key[bool] = Key("embedding_override_applied", bool)
    RUBRIC_RESULT: Key[dict[str, Any] | None] = Key("rubric_result", dict[str, Any] | None)
    LLM_TRAIT_LABELS: Key[dict[str, str] | None] = Key("llm_trait_labels", dict[str, str] | None)
    METRIC_CONFUSION_LISTS: Key[dict[str, Any] | None] = Key("metric_confusion_lists", dict[str, Any] | None)
    METRIC_RESULTS: Key[dict[str, Any] | None] = Key("metric_results", dict[str, Any] | None)
    AGENTIC_RUBRIC_EVALUATION_PERFORMED: Key[bool] = Key("agentic_rubric_evaluation_performed", bool)
    AGENTIC_TRAIT_SCORES: Key[dict[str, Any]] = Key("agentic_trait_scores", dict[str, Any])
    AGENTIC_TRAIT_INVESTIGATION_TRACES: Key[dict[str, Any]] = Key("agentic_trait_investigation_traces", dict[str, Any])
