"""What a run is asked to do: models, mode, features, limits. Immutable; one value travels to every stage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from attrs import evolve, field, fields_dict, frozen, validators

from ..errors import ConfigError, ErrorKind, Problem
from .identity import ModelIdentity
from .message import Message

__all__ = [
    "FEATURE_FIELDS",
    "AttemptPolicy",
    "CodePolicy",
    "EvaluationMode",
    "FewShotConfig",
    "FewShotQuestion",
    "ManualAnswer",
    "ModelConfig",
    "PromptConfig",
    "RetryPolicy",
    "Secret",
    "VerificationConfig",
]

EvaluationMode = Literal["template_only", "template_and_rubric", "rubric_only"]
CodePolicy = Literal["sandbox", "trusted", "refuse"]
FEATURE_FIELDS = {
    "abstention_enabled": "abstention",
    "sufficiency_enabled": "sufficiency",
    "deep_judgment_enabled": "deep_judgment",
    "embedding_check_enabled": "embedding_check",
    "agentic_parsing": "agentic_parsing",
}
DEFAULT_SYSTEM_PROMPT = "You are an expert assistant. Answer the question accurately and concisely."
MANUAL = "manual"


def _optional_at_least(bound: float) -> Any:
    return validators.optional(validators.ge(bound))


_optional_above_zero: Any = validators.optional(validators.gt(0))


@frozen(repr=False)
class Secret:
    """A value that never shows itself; `reveal()` gives it to the one call that needs it."""

    _value: str = field(eq=True)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__


def _secret(value: Any) -> Secret | None:
    return value if value is None or isinstance(value, Secret) else Secret(str(value))


@frozen
class AttemptPolicy:
    """How often one kind of failure is tried, and how long to wait in between.

    Before attempt n (counted from 2) the wait is drawn uniformly from 0 to `min(min_wait * multiplier ** (n - 2),
    max_wait)` seconds ("full jitter").
    """

    max_attempts: int = field(default=1, validator=validators.ge(1))
    min_wait: float = field(default=0.0, validator=validators.ge(0))
    max_wait: float = field(default=0.0, validator=validators.ge(0))
    multiplier: float = field(default=2.0, validator=validators.ge(1))


@frozen(kw_only=True)
class RetryPolicy:
    """Attempts by kind of failure. Kinds that are not named here are never tried again."""

    rate_limited: AttemptPolicy = AttemptPolicy(5, 5.0, 30.0, 2.0)
    timeout: AttemptPolicy = AttemptPolicy(3, 5.0, 30.0, 2.0)
    connection: AttemptPolicy = AttemptPolicy(3, 1.0, 10.0, 2.0)
    server: AttemptPolicy = AttemptPolicy(2, 2.0, 15.0, 2.0)

    def of(self, kind: ErrorKind) -> AttemptPolicy:
        policy = getattr(self, kind, None)
        return policy if isinstance(policy, AttemptPolicy) else AttemptPolicy()


@frozen
class ManualAnswer:
    """An answer that was recorded beforehand, optionally with the fields that a judge would extract from it."""

    answer: str
    fields: Mapping[str, Any] | None = None
    messages: tuple[Message, ...] = ()


def _manual_traces(value: Any) -> Mapping[str, ManualAnswer] | None:
    """Accepts `{key: text | messages | {"answer": ..., "fields": ...} | ManualAnswer}`."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError("manual_traces: expected a mapping from question id or text to an answer")
    return {str(key): _manual_answer(key, entry) for key, entry in value.items()}


def _manual_answer(key: Any, entry: Any) -> ManualAnswer:
    if isinstance(entry, str):
        entry = ManualAnswer(entry)
    elif isinstance(entry, Sequence) and entry and all(isinstance(m, Message) for m in entry):
        entry = ManualAnswer(entry[-1].text, None, tuple(entry))
    elif isinstance(entry, Mapping):
        if unknown := set(entry) - {"answer", "fields"}:
            raise ValueError(f"manual_traces: {key!r} has unknown keys {', '.join(sorted(map(str, unknown)))}")
        answer, judged = entry.get("answer"), entry.get("fields")
        if not isinstance(answer, str) or not (judged is None or isinstance(judged, Mapping)):
            raise ValueError(f'manual_traces: {key!r} must look like {{"answer": "text", "fields": {{...}}}}')
        entry = ManualAnswer(answer, judged)
    if not isinstance(entry, ManualAnswer):
        raise ValueError(f"manual_traces: {key!r} must be a text, messages or an answer with fields")
    if not entry.answer.strip() and not entry.messages:
        raise ValueError(f"manual_traces: the answer of {key!r} is empty")
    return entry


@frozen(kw_only=True)
class ModelConfig:
    """One model and how to reach it."""

    id: str | None = None
    """The user's name for this configuration; the model's name by default."""
    model_name: str | None = None
    model_provider: str | None = None
    interface: str = "litellm"
    """The name of an adapter."""
    temperature: float | None = field(default=0.1, validator=_optional_at_least(0))
    """None sends no temperature at all, for models that refuse one."""
    max_tokens: int | None = field(default=16384, validator=_optional_at_least(1))
    system_prompt: str | None = None
    max_retries: int = field(default=2, validator=validators.ge(0))
    """How often a judge is shown its mistake and asked again."""
    endpoint_base_url: str | None = None
    endpoint_api_key: Secret | None = field(default=None, converter=_secret)
    api_key_env: str | None = None
    """The environment variable that holds the key; the key itself is never written anywhere."""
    request_timeout: float | None = field(default=None, validator=_optional_above_zero)
    """Seconds for one attempt of one call; the run's `request_timeout` by default."""
    retry_policy: RetryPolicy | None = None
    extra_kwargs: Mapping[str, Any] = field(factory=dict)
    """Passed on to the provider as they are."""
    mcp_urls_dict: Mapping[str, str] = field(factory=dict)
    manual_traces: Mapping[str, ManualAnswer] | None = field(default=None, converter=_manual_traces, repr=False)
    """For the interface `manual`: answers by question id or text. Never written to a file."""

    def __attrs_post_init__(self) -> None:
        problems = []
        if self.interface == MANUAL:
            if self.manual_traces is None:
                problems.append(
                    Problem("manual_traces", "the manual interface needs recorded answers (--manual-traces FILE)")
                )
            if self.mcp_urls_dict:
                problems.append(Problem("mcp_urls_dict", "recorded answers use no tools"))
            object.__setattr__(self, "model_name", self.model_name or MANUAL)
        elif self.manual_traces is not None:
            problems.append(Problem("manual_traces", f"only the interface 'manual' takes them, not {self.interface!r}"))
        if not (self.model_name or "").strip():
            problems.append(Problem("model_name", "a model needs a name"))
        if problems:
            raise ConfigError(problems)
        object.__setattr__(self, "id", self.id or self.model_name)

    @property
    def name(self) -> str:
        return self.model_name or ""

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(
            interface=self.interface,
            model_name=self.name,
            provider=self.model_provider,
            tools=tuple(sorted(self.mcp_urls_dict)),
            config_id=self.id if self.id != self.model_name else None,
        )

    def api_key(self) -> str | None:
        """The key to use: `endpoint_api_key`, else the value of the variable `api_key_env`.

        Raises ConfigError where `api_key_env` names a variable that is not set.
        """
        if self.endpoint_api_key is not None:
            return self.endpoint_api_key.reveal()
        if self.api_key_env is None:
            return None
        if not (key := os.environ.get(self.api_key_env)):
            raise ConfigError([Problem("api_key_env", f"set the environment variable {self.api_key_env} to your key")])
        return key


@frozen(kw_only=True)
class PromptConfig:
    """Instructions of the user's own, added to karenina's prompts by task."""

    generation: str | None = None
    parsing: str | None = None
    abstention_detection: str | None = None
    sufficiency_detection: str | None = None
    rubric_evaluation: str | None = None
    agentic_parsing: str | None = None
    deep_judgment: str | None = None

    def get_for_task(self, task: str) -> str | None:
        """The instructions for a task: by its own name, else by its family."""
        names = fields_dict(PromptConfig)
        own = getattr(self, task) if task in names else None
        if own is not None:
            return str(own)
        families = {"rubric_": "rubric_evaluation", "agentic_parsing_": "agentic_parsing", "dj_": "deep_judgment"}
        for prefix, name in families.items():
            if task.startswith(prefix):
                return getattr(self, name) or None
        return None


def _picks(value: Iterable[int | str]) -> tuple[int | str, ...]:
    return tuple(value)


def _examples(value: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    return tuple(value)


@frozen(kw_only=True)
class FewShotQuestion:
    """Which examples one question gets."""

    mode: Literal["all", "k-shot", "custom", "inherit"] = "inherit"
    k: int | None = field(default=None, validator=_optional_at_least(1))
    selected_examples: tuple[int | str, ...] = field(default=(), converter=_picks)
    """Positions in the question's pool, or MD5s of an example's question text."""
    excluded_examples: tuple[int | str, ...] = field(default=(), converter=_picks)


@frozen(kw_only=True)
class FewShotConfig:
    """Worked examples that are put before the question."""

    source: Literal["disabled", "question_pool", "global", "both"] = "both"
    pool_mode: Literal["all", "k-shot", "custom"] = "all"
    pool_k: int = field(default=3, validator=validators.ge(1))
    question_configs: Mapping[str, FewShotQuestion] = field(factory=dict)
    global_examples: tuple[Mapping[str, str], ...] = field(default=(), converter=_examples)
    """Each `{"question": ..., "answer": ...}`; added after those of the question's pool."""


def _models(value: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    return tuple(value)


def _features(value: Iterable[str] | None) -> frozenset[str]:
    if isinstance(value, str):
        raise ValueError(f"features: expected a list of names, got {value!r}")
    return frozenset(value or ())


def _switch() -> Any:
    return field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class VerificationConfig:
    """How a benchmark is verified.

    The switches `abstention_enabled`, `sufficiency_enabled`, `deep_judgment_enabled`, `embedding_check_enabled` and
    `agentic_parsing` may be given to the constructor and read as attributes; they are views of `features`.
    """

    answering_models: tuple[ModelConfig, ...] = field(default=(), converter=_models)
    parsing_models: tuple[ModelConfig, ...] = field(default=(), converter=_models)
    replicate_count: int = field(default=1, validator=validators.ge(1))
    """Independent answers per question and model."""
    evaluation_mode: EvaluationMode | None = None
    """None: templates, and rubrics too where the benchmark has traits that can be scored."""
    features: frozenset[str] = field(factory=frozenset, converter=_features)
    """Names of optional behaviour, as the installed stages declare them."""
    use_full_trace_for_template: bool = False
    """Whether the judge reads the whole trace instead of the final message."""
    include_extraction_hints: bool = True
    request_timeout: float = field(default=120.0, validator=validators.gt(0))
    """Seconds for one attempt of one model call, from the first byte sent to the last received."""
    retry_policy: RetryPolicy = field(factory=RetryPolicy)
    retry_max_elapsed_seconds: float = field(default=120.0, validator=validators.gt(0))
    """Seconds for one call with all its attempts and waits."""
    concurrency: int = field(default=8, validator=validators.ge(1))
    """Items in flight."""
    code_policy: CodePolicy = "sandbox"
    """What may happen to Python templates; `trusted` runs them in this process."""
    executor: str = "local"
    few_shot_config: FewShotConfig | None = None
    prompt_config: PromptConfig = field(factory=PromptConfig)
    _abstention_enabled: bool | None = _switch()
    _sufficiency_enabled: bool | None = _switch()
    _deep_judgment_enabled: bool | None = _switch()
    _embedding_check_enabled: bool | None = _switch()
    _agentic_parsing: bool | None = _switch()

    def __attrs_post_init__(self) -> None:
        features = set(self.features)
        for name, feature in FEATURE_FIELDS.items():
            value = getattr(self, f"_{name}")
            if value is not None:
                (features.add if value else features.discard)(feature)
                object.__setattr__(self, f"_{name}", None)
        object.__setattr__(self, "features", frozenset(features))
        problems = [
            Problem(name, f"must be one of {', '.join(allowed)}, not {value!r}")
            for name, value, allowed in (
                ("evaluation_mode", self.evaluation_mode, get_args(EvaluationMode)),
                ("code_policy", self.code_policy, get_args(CodePolicy)),
            )
            if value is not None and value not in allowed
        ]
        problems += _duplicates("answering_models", self.answering_models)
        problems += _duplicates("parsing_models", self.parsing_models)
        if problems:
            raise ConfigError(problems)

    @property
    def abstention_enabled(self) -> bool:
        return "abstention" in self.features

    @property
    def sufficiency_enabled(self) -> bool:
        return "sufficiency" in self.features

    @property
    def deep_judgment_enabled(self) -> bool:
        return "deep_judgment" in self.features

    @property
    def embedding_check_enabled(self) -> bool:
        return "embedding_check" in self.features

    @property
    def agentic_parsing(self) -> bool:
        return "agentic_parsing" in self.features

    def for_model(self, model: ModelConfig) -> ModelConfig:
        """The model with the run's time limit and retries where it has none of its own."""
        return evolve(
            model,
            request_timeout=model.request_timeout or self.request_timeout,
            retry_policy=model.retry_policy or self.retry_policy,
        )


def _duplicates(where: str, models: Sequence[ModelConfig]) -> list[Problem]:
    names = [str(model.identity) for model in models]
    return [
        Problem(f"{where}[{i}]", f"{name} is there already; give one of them an id of its own")
        for i, name in enumerate(names)
        if name in names[:i]
    ]
