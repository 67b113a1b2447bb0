"""`VerificationResult`: everything that happened to one item, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import evolve, field, fields_dict, frozen

from .fields import texts
from .identity import ModelIdentity
from .outcome import Outcome, OutcomeName
from .rubric_part import RubricPart

__all__ = [
    "EMPTY",
    "PARTS",
    "ChecksPart",
    "DeepJudgmentPart",
    "DeepJudgmentRubricPart",
    "GenerationPart",
    "LedgerEntry",
    "MetadataPart",
    "RubricPart",
    "TemplatePart",
    "TrailEntry",
    "VerificationResult",
]

EMPTY = "empty"
"""The text flag of an answer without any text, which tells it from one that was never given."""

Row = Mapping[str, Any]


def _rows(value: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(value)


@frozen(kw_only=True)
class MetadataPart:
    """Who, what, when, and how it ended."""

    question_id: str
    template_id: str
    result_id: str
    question_text: str
    raw_answer: str | None = None
    keywords: tuple[str, ...] = field(default=(), converter=texts)
    answering: ModelIdentity
    parsing: ModelIdentity
    answering_system_prompt: str | None = None
    """Of an answer that was given to the run only what was recorded with it, or configured for recorded answers."""
    parsing_system_prompt: str | None = None
    outcome: OutcomeName = "skipped"
    outcome_detail: str | None = None
    completed_without_errors: bool = True
    error: str | None = None
    warnings: tuple[str, ...] = field(default=(), converter=texts)
    caveats: tuple[str, ...] = field(default=(), converter=texts)
    """Names of what a reader of the result should mind: see [Caveats](#caveats)."""
    execution_time: float = 0.0
    """Seconds from the first stage to the last."""
    timestamp: str = ""
    """ISO 8601 with offset: when the item began."""
    run_name: str | None = None
    replicate: int = 1
    evaluation_mode: str = "template_only"
    few_shot_enabled: bool = False
    few_shot_example_count: int = 0
    retry_counts: Mapping[str, int] = field(factory=dict)
    """Failed attempts that were tried again, by kind of error."""
    template_isolation: str | None = None
    """How the template's code was kept apart: `no-code`, `in-process`, or the sandbox's level."""

    @property
    def answering_model(self) -> str:
        return str(self.answering)

    @property
    def parsing_model(self) -> str:
        return str(self.parsing)


@frozen(kw_only=True)
class GenerationPart:
    """The answer and how it came about. Present in every mode."""

    raw_llm_response: str = ""
    trace_messages: tuple[Row, ...] = field(default=(), converter=_rows)
    conversation_context: tuple[Row, ...] = field(default=(), converter=_rows)
    """The messages that were sent to the answering model; of a recorded conversation those before its first message."""
    answering_mcp_servers: tuple[str, ...] = field(default=(), converter=texts)
    recursion_limit_reached: bool = False
    """Whether an agent did not come to an end within its turns, its tool calls, or with the same call repeated. Which
    limit ended the work, those of time and money included, is in `agent_metrics`."""
    usage_metadata: Mapping[str, Any] = field(factory=dict)
    """`{task: {calls, attempts, replies, input_tokens, output_tokens, total_tokens, cost_usd, model, usage_unavailable,
    unknown_cost_attempts, ...}, "total": {...}}`: `attempts` are requests, `replies` those that had one, and
    `unknown_cost_attempts` those that had none and may be on the bill."""
    usage_unavailable: bool = False
    """Whether the provider did not say how many tokens the answer took."""
    agent_metrics: Mapping[str, Any] | None = None
    text_flags: tuple[str, ...] = field(default=(), converter=texts)
    """What was odd about the answer's text: `lone_surrogate`, `nul`, `bidi_control`, `truncated` (by max_tokens),
    `empty` (there is none, although the model was asked); `secret_removed`, with `secret_removed:NAME` for every
    variable or setting whose value was taken out of it."""
    replayed_from: Mapping[str, Any] | None = None
    """Where the answer was captured, if it was given to the run and its model not asked: `{"run_name",
    "answering_model", "replicate", "timestamp"}`, each None where it is not known."""

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer, be it an empty one."""
        return bool(self.raw_llm_response) or EMPTY in self.text_flags


@frozen(kw_only=True)
class ChecksPart:
    """Guards and pre-parse checks. Present in every mode."""

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
class TemplatePart:
    """Extracted fields and what code made of them.

    Names of the generation and of the checks can be read here too (`raw_llm_response`, `abstention_detected`, ...).
    """

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
    """Whether there were wrong texts to compare, also where the embedder failed."""
    embedding_similarity_score: float | None = None
    """The lowest similarity among them; None where there were none, or the embedder failed."""
    embedding_override_applied: bool = False
    embedding_model_used: str | None = None
    ungrounded_values: tuple[str, ...] = field(default=(), converter=texts)
    """Fields with a value that stands nowhere in the text that the judge read, as code finds; a mark, no verdict.
    Truth values, choices and what an agent found are not looked for."""
    judge_channel: str | None = None
    """How the judge was asked for structure: json_schema, tool_call, json_object or text; None where it was not."""
    judge_repairs: int = 0
    """How often the judge was shown a mistake and asked again."""
    investigation_trace: str | None = None
    agentic_parsing_performed: bool = False
    agentic_extraction_recovery: str | None = None
    agentic_extraction_error: str | None = None
    dynamic_parsing_performed: bool = False
    """Whether the judge was to decide if an agent is needed (`agentic_parsing_trigger` is `dynamic`)."""
    dynamic_parse_decision: str | None = None
    """`direct`: the final message gave the values; `escalated`: an agent was sent; `answer_error_null`: the final
    message is only the error of a connection to an API, so that every field is null."""
    dynamic_decision_reasoning: str | None = None
    _generation: GenerationPart | None = field(default=None, eq=False, repr=False)
    _checks: ChecksPart | None = field(default=None, eq=False, repr=False)

    def __getattr__(self, name: str) -> Any:
        """Read through to the generation and the checks."""
        if not name.startswith("_"):
            for part, cls in ((self._generation, GenerationPart), (self._checks, ChecksPart)):
                if name in fields_dict(cls):
                    return getattr(part or cls(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@frozen(kw_only=True)
class DeepJudgmentPart:
    """Evidence for the template's fields."""

    deep_judgment_mode: str = "disabled"
    deep_judgment_performed: bool = False
    extracted_excerpts: Mapping[str, Any] = field(factory=dict)
    attribute_reasoning: Mapping[str, str] = field(factory=dict)
    deep_judgment_stages_completed: tuple[str, ...] = field(default=(), converter=texts)
    deep_judgment_model_calls: int = 0
    deep_judgment_excerpt_retry_count: int = 0
    attributes_without_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    attributes_with_invented_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    """Those of them for which the judge gave quotations to the end, none of which is in the text; of the others it had
    nothing to quote."""
    deep_judgment_search_enabled: bool = False
    hallucination_risk_assessment: Mapping[str, str] | None = None


@frozen(kw_only=True)
class DeepJudgmentRubricPart:
    """Evidence for rubric traits."""

    deep_judgment_rubric_performed: bool = False
    """Whether some trait was to be judged deeply, whatever became of it; one that was skipped does not count."""
    extracted_rubric_excerpts: Mapping[str, Any] = field(factory=dict)
    """By trait, a list of `{"text", "confidence", "similarity_score", "start", "end", "explanation", "left_out",
    "search_results", "search_error", "hallucination_risk", "hallucination_justification"}`, without what is not known.
    An entry with an empty text explains why there is none; `left_out` lists asides of the passage that the quotation
    lacks."""
    rubric_trait_reasoning: Mapping[str, str] = field(factory=dict)
    """By trait, where the judgment came that far."""
    deep_judgment_rubric_scores: Mapping[str, Any] = field(factory=dict)
    """Scores of the traits that were to be judged deeply, as in `llm_trait_scores`; None for those that failed."""
    standard_rubric_scores: Mapping[str, Any] = field(factory=dict)
    """Scores that `llm` traits have in the standard way: of the other ones, and with
    `deep_judgment_rubric_standard_scores` of those that were judged deeply too, for comparison."""
    trait_metadata: Mapping[str, Any] = field(factory=dict)
    """By trait that was to be judged deeply: `stages_completed` (list of names), `model_calls`, `had_excerpts`,
    `excerpt_retry_count`, `excerpt_validation_failed` (whether the last reply offered quotations and none of them
    stands in the text), and where there are any `warnings` (list of texts) and `error` (why there is no score)."""
    traits_without_valid_excerpts: tuple[str, ...] = field(default=(), converter=texts)
    """Traits for which quotations were wanted and the judge, asked to the end, gave none that stands in the text; never
    one of which the judge could not be reached or read."""
    rubric_hallucination_risk_assessment: Mapping[str, Any] = field(factory=dict)
    """By trait of which some quotation was assessed: `{"overall_risk": the highest, "per_excerpt_risks": [...]}`. The
    list has one entry per quotation, in the order of `extracted_rubric_excerpts`: `none`, `low`, `medium` or `high`,
    and None where that quotation was not assessed."""
    total_deep_judgment_model_calls: int = 0
    """Sum of `model_calls`: calls of the judge, with retries and corrections of a reply, without repeated requests."""
    total_traits_evaluated: int = 0
    """Traits that were judged deeply and have a score."""
    total_excerpt_retries: int = 0
    """Sum of `excerpt_retry_count`: how often the judge was asked for quotations again."""

    @property
    def traits_with_invented_excerpts(self) -> tuple[str, ...]:
        """Traits without excerpts for which the judge gave quotations to the end, none of which is in the text."""
        known = self.trait_metadata
        return tuple(n for n in self.traits_without_valid_excerpts if known.get(n, {}).get("excerpt_validation_failed"))


@frozen
class LedgerEntry:
    """One recorded effect on the verdict."""

    stage: str
    effect: Mapping[str, Any]
    """`{"field": bool?, "verdict": bool?, "outcome": name?}`: what the stage said, and what a False is called."""
    reason: str = ""


@frozen
class TrailEntry:
    """What became of one stage."""

    stage: str
    status: Literal["ran", "skipped", "failed"]
    reason: str = ""
    seconds: float = 0.0


@frozen(kw_only=True)
class VerificationResult:
    """Everything that happened to one item. `template` is None in `rubric_only`."""

    metadata: MetadataPart
    generation: GenerationPart = field(factory=GenerationPart)
    checks: ChecksPart = field(factory=ChecksPart)
    template: TemplatePart | None = None
    rubric: RubricPart | None = None
    deep_judgment: DeepJudgmentPart | None = None
    deep_judgment_rubric: DeepJudgmentRubricPart | None = None
    evaluation_input: str | None = None
    """The text that the judge saw."""
    used_full_trace: bool = False
    trace_extraction_error: str | None = None
    ledger: tuple[LedgerEntry, ...] = ()
    trail: tuple[TrailEntry, ...] = ()
    extensions: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """`{plugin: {key: value}}`: what stages of other packages add."""

    def __attrs_post_init__(self) -> None:
        part = self.template
        if part is not None and (part._generation is not self.generation or part._checks is not self.checks):
            linked = evolve(part, generation=self.generation, checks=self.checks)
            object.__setattr__(self, "template", linked)

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.metadata.outcome, self.metadata.outcome_detail)


PARTS: Mapping[str, type] = {
    "generation": GenerationPart,
    "checks": ChecksPart,
    "template": TemplatePart,
    "rubric": RubricPart,
    "deep_judgment": DeepJudgmentPart,
    "deep_judgment_rubric": DeepJudgmentRubricPart,
}
"""The parts that are filled from result fields of the same names."""
