"""`VerificationResult`: everything that happened to one item, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, fields_dict, frozen

from ..errors import did_you_mean
from .fields import texts
from .identity import ModelIdentity
from .outcome import Outcome, OutcomeName
from .result_parts import ResultPart, field_names, reserve, result_parts

if TYPE_CHECKING:
    from .typed_parts import Parts
else:
    Parts = object

EMPTY = "empty"
"""The text flag of an answer without any text; one that was never given has no flag."""

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
    """For an answer that was given to the run, only what was recorded with it, or configured for recorded answers."""
    parsing_system_prompt: str | None = None
    outcome: OutcomeName = "skipped"
    outcome_detail: str | None = None
    completed_without_errors: bool = True
    error: str | None = None
    warnings: tuple[str, ...] = field(default=(), converter=texts)
    caveats: tuple[str, ...] = field(default=(), converter=texts)
    """Names of what a reader of the result should keep in mind: see [Caveats](#caveats)."""
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
    item_digest: str | None = None
    """The digest of the question at that time, `Question.digest`: results with different digests are of different
    items."""
    template_isolation: str | None = None
    """How the template's code was isolated: `no-code`, `in-process`, or the sandbox's level, as `sandbox-full`."""

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
    """The messages that were sent to the answering model; for a recorded conversation, those before its first
    message."""
    answering_mcp_servers: tuple[str, ...] = field(default=(), converter=texts)
    recursion_limit_reached: bool = False
    """Whether an agent did not finish within its turns or tool calls, or kept repeating the same call. `agent_metrics`
    names the limit that ended the work, including those of time and money."""
    usage_metadata: Mapping[str, Any] = field(factory=dict)
    """`{task: {calls, attempts, replies, input_tokens, output_tokens, total_tokens, cost_usd, model, usage_unavailable,
    unknown_cost_attempts, ...}, "total": {...}}`: `attempts` are requests, `replies` those with a reply, and
    `unknown_cost_attempts` those without one that may still be billed."""
    usage_unavailable: bool = False
    """Whether the provider did not say how many tokens the answer took."""
    agent_metrics: Mapping[str, Any] | None = None
    text_flags: tuple[str, ...] = field(default=(), converter=texts)
    """Anomalies of the answer's text: `lone_surrogate`, `nul`, `bidi_control`, `truncated` (by max_tokens), `empty`
    (the model gave none); `secret_removed`, with `secret_removed:NAME` for every variable or setting whose value was
    removed from it."""
    replayed_from: Mapping[str, Any] | None = None
    """Where the answer was captured, if it was given to the run instead of generated: `{"run_name", "answering_model",
    "replicate", "timestamp"}`, each None if unknown."""

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer, be it an empty one."""
        return bool(self.raw_llm_response) or EMPTY in self.text_flags


@frozen
class LedgerEntry:
    """One recorded effect on the verdict."""

    stage: str
    effect: Mapping[str, Any]
    """`{"field": bool?, "verdict": bool?, "outcome": name?}`: the verdict of the stage, and the outcome that a False
    stands for."""
    reason: str = ""


@frozen
class TrailEntry:
    """What happened to one stage."""

    stage: str
    status: Literal["ran", "skipped", "failed"]
    reason: str = ""
    seconds: float = 0.0


@frozen(kw_only=True)
class VerificationResult(Parts):
    """Everything that happened to one item. `template` is None in `rubric_only`.

    The parts that installed distributions declare are attributes and arguments of the constructor by their names.
    """

    metadata: MetadataPart
    generation: GenerationPart = field(factory=GenerationPart)
    parts: Mapping[str, Any] = field(factory=dict)
    """The other parts by name, `template` and `rubric` among them; None for a part that this result lacks. Parts of a
    distribution that is not installed are plain data."""
    evaluation_input: str | None = None
    """The text that the judge saw."""
    used_full_trace: bool = False
    trace_extraction_error: str | None = None
    ledger: tuple[LedgerEntry, ...] = ()
    trail: tuple[TrailEntry, ...] = ()
    extensions: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """`{plugin: {key: value}}`: what stages of other packages add without a part of their own."""

    if not TYPE_CHECKING:  # type checkers see the parts in `typed_parts.pyi`

        def __init__(self, *, parts: Mapping[str, Any] | None = None, **values: Any) -> None:
            known = result_parts()
            made: dict[str, Any] = dict.fromkeys(known)
            made |= parts or {}
            for name in known.keys() & values.keys():
                made[name] = values.pop(name)
            if unknown := values.keys() - OWN:
                name = min(unknown)
                hint = did_you_mean(name, (*OWN, *known))
                raise TypeError(f"a result has no part {name!r}{hint}; is its distribution installed?")
            self.__attrs_init__(parts=made, **values)
            for name, cls in known.items():
                if made[name] is None and cls.always:
                    made[name] = cls()
            beside = {**made, "generation": self.generation}
            for name, part in made.items():
                if isinstance(part, ResultPart):
                    made[name] = part.linked(beside)

        def __getattr__(self, name: str) -> Any:
            if name != "parts":  # of an instance that is being made
                if name in self.parts:
                    return self.parts[name]
                if name in (known := result_parts()):
                    return known[name]() if known[name].always else None
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def added(self) -> Mapping[str, Mapping[str, Any]]:
        """`{plugin or part: {field: value}}`: what tables and reports have no place of its own for."""
        found: dict[str, Mapping[str, Any]] = dict(self.extensions)
        for name, part in self.parts.items():
            values = part
            if isinstance(part, ResultPart):
                values = {} if part.has_columns else {key: getattr(part, key) for key in field_names(type(part))}
            if values:
                found[name] = {**values, **found.get(name, {})}
        return found

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.metadata.outcome, self.metadata.outcome_detail)


OWN = tuple(name for name in fields_dict(VerificationResult) if name != "parts")
"""The fields that every result has, whatever is installed."""
reserve(name for name in dir(VerificationResult) if not name.startswith("_"))


def all_parts() -> Mapping[str, type]:
    """Name -> class of every part that is made of result fields: the generation, and those that are declared."""
    return {"generation": GenerationPart, **result_parts()}
