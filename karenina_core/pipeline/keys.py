"""The names of what stages hand to each other."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from ..errors import ContractError

__all__ = ["VERDICT_VIEWS", "ArtifactKeys", "Key", "Keys"]

T = TypeVar("T")
USUAL = (type(None), bool, int, float, str, list, dict, tuple, set, frozenset)


class Key(str, Generic[T]):
    """The name and type of one artifact. It *is* its name: `Key("x", int) == "x"`.

    `type` is what a value must be an instance of; generic arguments say more to people and type checkers than is
    checked.
    """

    type: Any
    _accepts: tuple[type, ...]
    usual: frozenset[type]
    """Those of the usual types that it accepts: known beforehand, for asking about a `Mapping` takes long."""

    def __new__(cls, name: str, type: Any = object) -> Key[T]:
        self = super().__new__(cls, name)
        self.type = type
        self._accepts = tuple(_classes(type))
        try:
            isinstance(None, self._accepts)
        except TypeError as error:
            raise ContractError(f"{name!r}: {type!r} cannot be checked; give a class that isinstance takes") from error
        self.usual = _usual(self._accepts)
        return self

    def check(self, value: Any) -> None:
        """Raises ContractError where the value is of another type."""
        if type(value) not in self.usual and not isinstance(value, self._accepts):
            wanted = " or ".join(cls.__name__ for cls in self._accepts)
            raise ContractError(f"{str(self)!r} must be {wanted}, not {type(value).__name__}")

    def __reduce__(self) -> Any:
        return (Key, (str(self), self.type))


def _usual(accepts: tuple[type, ...]) -> frozenset[type]:
    try:
        return frozenset(usual for usual in USUAL if issubclass(usual, accepts))
    except TypeError:  # a protocol that names attributes can only be asked about values
        return frozenset()


def _classes(type_: Any) -> Iterable[type]:
    if type_ is None:
        return [type(None)]
    if type_ is Any:
        return [object]
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        return [cls for member in get_args(type_) for cls in _classes(member)]
    if origin is Literal:
        return {type(value) for value in get_args(type_)}
    if type_ is float:
        return [float, int]
    return [origin or type_]


class Keys(tuple[str, ...]):
    """An immutable list of keys that prints as a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))

    __str__ = __repr__


class ArtifactKeys:
    """The artifacts of the published pipeline."""

    RAW_ANSWER: Key[Any] = Key("RawAnswer", object)
    """The template's handle, as the benchmark has it."""
    ANSWER: Key[Any] = Key("Answer", object)
    """The template's handle, for this question."""
    TEMPLATE_VALIDATION_ERROR: Key[str | None] = Key("template_validation_error", str | None)
    RAW_LLM_RESPONSE: Key[str] = Key("raw_llm_response", str)
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
    FIELD_VERIFICATION_RESULT: Key[bool] = Key("field_verification_result", bool)
    REGEX_VERIFICATION_RESULTS: Key[dict[str, Any]] = Key("regex_verification_results", dict[str, Any])
    REGEX_EXTRACTION_RESULTS: Key[dict[str, Any]] = Key("regex_extraction_results", dict[str, Any])
    VERIFY_RESULT: Key[bool] = Key("verify_result", bool)
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
    FINAL_RESULT: Key[Any] = Key("final_result", object)


VERDICT_VIEWS = frozenset({ArtifactKeys.VERIFY_RESULT, ArtifactKeys.FIELD_VERIFICATION_RESULT})
"""Read like artifacts, never written: they are views of the ledger."""
