"""The parts of results that several distributions write or read: checks, template and deep judgment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import evolve, field, fields_dict, frozen

from karenina_core.values.fields import texts
from karenina_core.values.result import GenerationPart
from karenina_core.values.result_parts import ResultPart


@frozen(kw_only=True)
class ChecksPart(ResultPart):
    """Guards and pre-parse checks. Present in every mode."""

    order: ClassVar[int] = 10
    always: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    abstention_check_performed: bool = False
    abstention_detected: bool | None = None
    abstention_override_applied: bool = False
    abstention_reasoning: str | None = None
    sufficiency_check_performed: bool = False
    sufficiency_detected: bool | None = None
    """True means sufficient."""
    sufficiency_override_applied: bool = False
    sufficiency_reasoning: str | None = None
    mcp_enabled: bool = False
    trace_validation_failed: bool = False
    trace_validation_error: str | None = None


@frozen(kw_only=True)
class TemplatePart(ResultPart):
    """Extracted fields and what code made of them.

    Names of the generation and of the checks can be read here too (`raw_llm_response`, `abstention_detected`, ...).
    """

    order: ClassVar[int] = 20
    has_columns: ClassVar[bool] = True
    template_validation_error: str | None = None
    template_verification_performed: bool = False
    parsed_gt_response: Mapping[str, Any] | None = None
    parsed_llm_response: Mapping[str, Any] | None = None
    verify_result: bool | None = None
    verify_granular_result: float | None = None
    field_verification_result: bool | None = None
    field_verification_error: str | None = None
    field_results: Mapping[str, bool | None] | None = None
    """Per verified field; None where the judge found nothing."""
    field_scores: Mapping[str, float | None] | None = None
    composition_strategy: str | None = None
    regex_validations_performed: bool = False
    regex_validation_results: Mapping[str, bool] | None = None
    regex_validation_details: Mapping[str, Any] | None = None
    regex_overall_success: bool | None = None
    regex_extraction_results: Mapping[str, Any] | None = None
    embedding_check_performed: bool = False
    """Whether there were wrong texts to compare, even if the embedder failed."""
    embedding_similarity_score: float | None = None
    """The lowest similarity among them; None if there were none, or the embedder failed."""
    embedding_override_applied: bool = False
    embedding_model_used: str | None = None
    ungrounded_values: tuple[str, ...] = field(default=(), converter=texts)
    """Fields whose value does not occur in the text that the judge read, checked by code; a mark, not a verdict. Truth
    values, choices and findings of an agent are not checked."""
    judge_channel: str | None = None
    """How structured output was requested from the judge: json_schema, tool_call, json_object or text; None if it was
    not."""
    judge_repairs: int = 0
    """How often the judge was shown a mistake and asked again."""
    investigation_trace: str | None = None
    agentic_parsing_performed: bool = False
    agentic_extraction_recovery: str | None = None
    agentic_extraction_error: str | None = None
    dynamic_parsing_performed: bool = False
    """Whether the judge was to decide if an agent is needed (`agentic_parsing_trigger` is `dynamic`)."""
    dynamic_parse_decision: str | None = None
    """`direct`: the final message gave the values; `escalated`: an agent was used; `answer_error_null`: the final
    message is only an API connection error, so every field is null."""
    dynamic_decision_reasoning: str | None = None
    _generation: GenerationPart | None = field(default=None, eq=False, repr=False)
    _checks: ChecksPart | None = field(default=None, eq=False, repr=False)

    @classmethod
    def of(cls, context: Any, found: Mapping[str, Any]) -> TemplatePart | None:
        if not context.evaluates_template:
            return None
        verdict = context.verdict
        return cls(**{**found, "verify_result": verdict.verdict, "field_verification_result": verdict.field})

    def linked(self, parts: Mapping[str, Any]) -> TemplatePart:
        generation, checks = parts.get("generation"), parts.get("checks")
        if self._generation is generation and self._checks is checks:
            return self
        if self._generation is not None or self._checks is not None:
            return evolve(self, generation=generation, checks=checks)
        object.__setattr__(self, "_generation", generation)  # new, and of no other result: it need not be copied
        object.__setattr__(self, "_checks", checks)
        return self

    def __getattr__(self, name: str) -> Any:
        """Read through to the generation and the checks."""
        if not name.startswith("_"):
            for part, cls in ((self._generation, GenerationPart), (self._checks, ChecksPart)):
                if name in fields_dict(cls):
                    return getattr(part or cls(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@frozen(kw_only=True)
class DeepJudgmentPart(ResultPart):
    """Evidence for the template's fields."""

    order: ClassVar[int] = 40
    has_columns: ClassVar[bool] = True
    deep_judgment_mode: str = "disabled"
    deep_judgment_performed: bool = False
    extracted_excerpts: Mapping[str, Any] = field(factory=dict)
    attribute_reasoning: Mapping[str, str] = field(factory=dict)
    deep_judgment_stages_completed: tuple[str, ...] = field(default=(), converter=texts)
    deep_judgment_model_calls: int = 0
    deep_judgment_excerpt_retry_count: int = 0
    attributes_without_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    attributes_with_invented_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    """Attributes without excerpts for which even the judge's last reply gave only quotations that are not in the text;
    for the others it had nothing to quote."""
    values_beyond_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    """Attributes with a text, number or date that is in none of their excerpts; checked with
    `deep_judgment_bind_values`."""
    deep_judgment_search_enabled: bool = False
    hallucination_risk_assessment: Mapping[str, str] | None = None

    @classmethod
    def of(cls, context: Any, found: Mapping[str, Any]) -> DeepJudgmentPart | None:
        """What was asked for is known even where nothing came of it."""
        config = context.config
        if not (context.evaluates_template and "deep_judgment" in config.features):
            return None
        asked = {
            "deep_judgment_mode": config.deep_judgment_mode,
            "deep_judgment_search_enabled": config.deep_judgment_search_enabled,
        }
        return cls(**{**found, **asked})


@frozen(kw_only=True)
class DeepJudgmentRubricPart(ResultPart):
    """Evidence for rubric traits."""

    order: ClassVar[int] = 50
    has_columns: ClassVar[bool] = True
    deep_judgment_rubric_performed: bool = False
    """Whether some trait was due for deep judgment, whatever the result; a skipped trait does not count."""
    extracted_rubric_excerpts: Mapping[str, Any] = field(factory=dict)
    """By trait, a list of `{"text", "confidence", "similarity_score", "start", "end", "explanation", "left_out",
    "search_results", "search_error", "hallucination_risk", "hallucination_justification"}`, without unknown values. An
    entry with an empty text explains why there is none; `left_out` lists asides of the passage that the quotation
    lacks."""
    rubric_trait_reasoning: Mapping[str, str] = field(factory=dict)
    """By trait, if the judgment came that far."""
    deep_judgment_rubric_scores: Mapping[str, Any] = field(factory=dict)
    """Scores of the traits that were due for deep judgment, as in `llm_trait_scores`; None for those that failed."""
    standard_rubric_scores: Mapping[str, Any] = field(factory=dict)
    """Standard scores of `llm` traits: of those without deep judgment, and with `deep_judgment_rubric_standard_scores`
    also of those with it, for comparison."""
    trait_metadata: Mapping[str, Any] = field(factory=dict)
    """By trait due for deep judgment: `stages_completed` (list of names), `model_calls`, `had_excerpts`,
    `excerpt_retry_count`, `excerpt_validation_failed` (whether the last reply offered quotations and none of them is in
    the text), and if there are any, `warnings` (list of texts) and `error` (why there is no score)."""
    traits_without_valid_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    """Traits for which the judge, after all retries, gave no quotation that is in the text; traits for which the judge
    could not be reached or read are not listed."""
    rubric_hallucination_risk_assessment: Mapping[str, Any] = field(factory=dict)
    """By trait with some assessed quotation: `{"overall_risk": the highest, "per_excerpt_risks": [...]}`. The list has
    one entry per quotation, in the order of `extracted_rubric_excerpts`: `none`, `low`, `medium` or `high`, and None if
    that quotation was not assessed."""
    total_deep_judgment_model_calls: int = 0
    """Sum of `model_calls`: calls of the judge, including retries and corrections of a reply, without repeated
    requests."""
    total_traits_evaluated: int = 0
    """Traits that were judged deeply and have a score."""
    total_excerpt_retries: int = 0
    """Sum of `excerpt_retry_count`: how often the judge was asked for quotations again."""

    @property
    def traits_with_invented_excerpts(self) -> tuple[str, ...]:
        """Traits without excerpts for which the judge gave quotations to the end, none of which is in the text."""
        known = self.trait_metadata
        return tuple(n for n in self.traits_without_valid_excerpts if known.get(n, {}).get("excerpt_validation_failed"))

    @classmethod
    def of(cls, context: Any, found: Mapping[str, Any]) -> DeepJudgmentRubricPart | None:
        return cls(**found) if found.get("deep_judgment_rubric_performed") else None
