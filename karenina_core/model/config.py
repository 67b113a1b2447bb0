"""What a run is asked to do: models, mode, features, limits. Immutable; one value travels to every stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from attrs import Factory, evolve, field, frozen, validators

from ..errors import ConfigError, Problem
from .environment import from_environment, read_fraction, read_switch
from .fields import (
    instance_of,
    limits_by_model,
    named_refusals,
    number,
    one_of,
    optional,
    search_tool,
    text,
    texts,
    true_or_false,
    whole_number,
)
from .model_config import AttemptPolicy, ManualAnswer, ModelConfig, RetryPolicy, Secret
from .prompt_config import FewShotConfig, FewShotQuestion, PromptConfig
from .rubric_config import DeepJudgmentRubricConfig, DeepJudgmentRubricMode, RubricStrategy, TraitDeepJudgment

__all__ = [
    "FEATURE_FIELDS",
    "AgenticContext",
    "AgenticParsingTrigger",
    "AgenticRubricStrategy",
    "AttemptPolicy",
    "CodePolicy",
    "DeepJudgmentMode",
    "DeepJudgmentRubricConfig",
    "DeepJudgmentRubricMode",
    "EvaluationMode",
    "FewShotConfig",
    "FewShotQuestion",
    "ManualAnswer",
    "ModelConfig",
    "OnInvented",
    "PromptConfig",
    "RetryPolicy",
    "RubricStrategy",
    "Secret",
    "TaskOrdering",
    "TraitDeepJudgment",
    "VerificationConfig",
    "WorkspaceOutputMode",
]

EvaluationMode = Literal["template_only", "template_and_rubric", "rubric_only"]
CodePolicy = Literal["sandbox", "trusted", "refuse"]
AgenticContext = Literal["workspace_only", "trace_and_workspace", "trace_only"]
AgenticParsingTrigger = Literal["always", "dynamic"]
AgenticRubricStrategy = Literal["individual", "shared"]
TaskOrdering = Literal["auto", "prefix_cache", "distribute_answerers", "generation_order", "random"]
DeepJudgmentMode = Literal["disabled", "reasoning_only", "full"]
OnInvented = Literal["fail", "error"]
WorkspaceOutputMode = Literal["none", "full", "produced"]
FEATURE_FIELDS = {
    "abstention_enabled": "abstention",
    "sufficiency_enabled": "sufficiency",
    "deep_judgment_enabled": "deep_judgment",
    "embedding_check_enabled": "embedding_check",
    "agentic_parsing": "agentic_parsing",
}
EMBEDDING_MODEL = "all-MiniLM-L6-v2"
EMBEDDING_THRESHOLD = 0.85
DEFAULT_SYSTEM_PROMPT = "You are an expert assistant. Answer the question accurately and concisely."


def _models(value: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    models = tuple(value) if isinstance(value, Iterable) else (None,)
    for model in models:
        if not isinstance(model, ModelConfig):
            raise ValueError("must be a list of ModelConfig")
    return models


class _NotGiven(frozenset[str]):
    """No features, because nobody said which."""


NOT_GIVEN = _NotGiven()


@frozen
class _Inherited:
    """A switch that the environment sets, not the caller."""

    on: bool


def _features(value: Iterable[str] | None) -> frozenset[str]:
    if value is NOT_GIVEN:
        return NOT_GIVEN
    return frozenset(texts(() if value is None else value))


def _names(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else texts(value)


def _rubric_config(value: Any) -> DeepJudgmentRubricConfig | None:
    return DeepJudgmentRubricConfig.of(value)


def _switch(factory: Callable[[], Any] | None = None) -> Any:
    return field(default=Factory(factory) if factory else None, eq=False, repr=False, validator=_on_or_off)


def _on_or_off(self: object, attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, _Inherited):
        true_or_false(self, attribute, value)


def _bool(default: bool) -> Any:
    return field(default=default, validator=true_or_false)


def _word(default: str, choices: Any) -> Any:
    return field(default=default, validator=one_of(get_args(choices)))


def _fraction(default: Any) -> Any:
    return field(default=default, validator=[number, validators.ge(0), validators.le(1)])


def _whole(default: int, least: int) -> Any:
    return field(default=default, validator=[whole_number, validators.ge(least)])


def _seconds(default: float) -> Any:
    return field(default=default, validator=[number, validators.gt(0)])


def _most(default: Any = None) -> Any:
    return field(default=default, validator=optional(whole_number, validators.ge(1)))


@frozen(kw_only=True, field_transformer=named_refusals)
class VerificationConfig:
    """How a benchmark is verified.

    The switches `abstention_enabled`, `sufficiency_enabled`, `deep_judgment_enabled`, `embedding_check_enabled` and
    `agentic_parsing` may be given to the constructor and read as attributes; they are views of `features`. So is
    `deep_judgment_mode` (`disabled`, `reasoning_only`, `full`), a view of the feature and of
    `deep_judgment_reasoning_only`. `EMBEDDING_CHECK` in the environment sets `embedding_check_enabled` where neither it
    nor `features` is given.
    """

    answering_models: tuple[ModelConfig, ...] = field(default=(), converter=_models)
    parsing_models: tuple[ModelConfig, ...] = field(default=(), converter=_models)
    replicate_count: int = _whole(1, least=1)
    """Independent answers per question and model."""
    evaluation_mode: EvaluationMode | None = field(default=None, validator=optional(one_of(get_args(EvaluationMode))))
    """None: templates, and rubrics too where the benchmark has traits that can be scored."""
    features: frozenset[str] = field(factory=lambda: NOT_GIVEN, converter=_features)
    """Names of optional behaviour, as the installed stages declare them."""
    use_full_trace_for_template: bool = _bool(False)
    """Whether the judge reads the whole trace instead of the final message."""
    include_extraction_hints: bool = _bool(True)
    deep_judgment_reasoning_only: bool = _bool(False)
    """Deep judgment without excerpts: the judge reasons, then fills the template. `deep_judgment_mode` reads and
    writes it together with the feature.
    """
    deep_judgment_max_excerpts_per_attribute: int = _whole(3, least=1)
    deep_judgment_fuzzy_match_threshold: float = _fraction(0.80)
    """How similar (0 to 1) a quotation must be to a passage of what the judge read, beside having its words in their
    order: a third of what it leaves out of the passage counts, and slips of a letter."""
    deep_judgment_excerpt_retry_attempts: int = _whole(2, least=0)
    """How often the judge is asked again for quotations that do not occur in what it read."""
    deep_judgment_on_invented: OnInvented = _word("fail", OnInvented)
    """What becomes of an answer for which the judge, for a field or a trait, has only quotations that are not in it:
    it fails as one without evidence does (`fail`), or the item is an error of the judge (`error`)."""
    deep_judgment_search_enabled: bool = _bool(False)
    """Whether every excerpt is searched for, and assessed as true or made up by what was found."""
    deep_judgment_search_tool: Any = field(default="tavily", validator=search_tool)
    """The name of an installed search tool, or any function or tool object: a query to results."""
    rubric_evaluation_strategy: RubricStrategy = _word("batch", RubricStrategy)
    """Whether the judge scores traits together in one call, or each in a call of its own."""
    rubric_trait_names: tuple[str, ...] | None = field(default=None, converter=_names)
    """Evaluate these traits only; None: all."""
    rubric_concurrency: int = _whole(6, least=1)
    """Calls about traits of one item that are in flight at the same time."""
    use_full_trace_for_rubric: bool = _bool(True)
    """Whether traits are scored on the whole trace instead of the final message."""
    agentic_rubric_strategy: AgenticRubricStrategy = _word("individual", AgenticRubricStrategy)
    """Whether every agentic trait is investigated by an agent of its own, or all of them by one, whose findings each
    trait's score is then read from.
    """
    agentic_rubric_parallel: bool = _bool(False)
    """Whether agentic traits of one item are evaluated at the same time, within `rubric_concurrency`."""
    agentic_rubric_by_context: bool = _bool(False)
    """With `shared`: one investigation for each `context_mode`, so that no agent sees what one of its traits must not.
    """
    agentic_parsing_trigger: AgenticParsingTrigger = _word("always", AgenticParsingTrigger)
    """With `agentic_parsing`: whether an agent always investigates, or (`dynamic`) only where the judge says that the
    final message alone does not give the values.
    """
    agentic_judge_context: AgenticContext = _word("workspace_only", AgenticContext)
    """With `agentic_parsing`: what the agent that fills the template in is shown."""
    agentic_parsing_max_turns: int = _whole(15, least=1)
    """Replies of that agent."""
    agentic_parsing_timeout: float = _seconds(120.0)
    """Seconds for all its work."""
    agentic_parsing_materialize_trace: bool = _bool(False)
    """Whether it is given the trace as a file to search instead of a part of the prompt."""
    agentic_parsing_persist_trace: bool = _bool(False)
    """Whether that file is kept: with the result in the run directory, and in the workspace as long as that is there,
    under `.karenina/traces`.
    """
    deep_judgment_rubric_mode: DeepJudgmentRubricMode = _word("use_checkpoint", DeepJudgmentRubricMode)
    """Which boolean and score traits are judged from quotations and reasoning: those whose own `deep_judgment_enabled`
    says so (`use_checkpoint`), none, all (`enable_all`), or those of `deep_judgment_rubric_config` (`custom`).
    """
    deep_judgment_rubric_standard_scores: bool = _bool(False)
    """Whether the judge also scores these traits in the standard way, in the calls that a run without deep judgment
    makes; the scores are kept for comparison, in `standard_rubric_scores`.
    """
    deep_judgment_rubric_global_excerpts: bool = _bool(True)
    """With `enable_all`: whether quotations are looked for, or the judge reasons from the text itself."""
    deep_judgment_rubric_config: DeepJudgmentRubricConfig | None = field(default=None, converter=_rubric_config)
    """For mode `custom`, settings by trait: `{"global": {trait: {...}}, "question_specific": {id: {trait: {}}}}`."""
    deep_judgment_rubric_max_excerpts_default: int = _whole(7, least=1)
    deep_judgment_rubric_fuzzy_match_threshold_default: float = _fraction(0.80)
    deep_judgment_rubric_excerpt_retry_attempts_default: int = _whole(2, least=0)
    deep_judgment_rubric_search_tool: Any = field(default="tavily", validator=search_tool)
    """The search tool of traits whose own settings switch the search on."""
    embedding_check_embedder: str = field(default="minilm", validator=text)
    """Who turns texts into vectors: the name of an installed embedder."""
    embedding_check_model: str = field(
        default=Factory(from_environment("EMBEDDING_CHECK_MODEL", str, EMBEDDING_MODEL)), validator=text
    )
    """The embedder's model; `EMBEDDING_CHECK_MODEL` in the environment where it is not given."""
    embedding_check_threshold: float = _fraction(
        Factory(from_environment("EMBEDDING_CHECK_THRESHOLD", read_fraction, EMBEDDING_THRESHOLD))
    )
    """How similar (0 to 1) a wrong text must be to the expected one before the judge is asked whether they mean the
    same; `EMBEDDING_CHECK_THRESHOLD` in the environment where it is not given.
    """
    request_timeout: float = _seconds(120.0)
    """Seconds for one attempt of one model call, from the first byte sent to the last received."""
    retry_policy: RetryPolicy = field(factory=RetryPolicy, validator=instance_of(RetryPolicy))
    retry_max_elapsed_seconds: float | None = field(default=None, validator=optional(number, validators.gt(0)))
    """Seconds for one call with all its attempts and waits; None: as long as all attempts that a time-out may have take
    (`request_timeout`), at least 120. A model that takes nothing for longer, or asks to be left alone for longer, is
    asked nothing more in this run."""
    stage_idle_timeout: float | None = field(default=600.0, validator=optional(number, validators.ge(0)))
    """Seconds that a stage has without a sign of progress while no call is under way; 0 or None: no limit."""
    concurrency: int = _whole(8, least=1)
    """Items in flight."""
    max_concurrent_requests: int | None = _most()
    """Calls of all models that may be under way at the same time, those of an embedder that asks a provider included;
    None: as many as the items make. Models that wait for each other take turns."""
    answerer_concurrency_limits: int | Mapping[str, int] | None = field(
        default=None, validator=optional(limits_by_model)
    )
    """Calls that may be under way at the same time of each answering model, or of some, by their ids. What it is asked
    as a judge counts too. None: as many as its provider takes."""
    budget_usd: float | None = field(default=None, validator=optional(number, validators.gt(0)))
    """US dollars that the run may spend; what the calls under way take beyond their estimates can come on top. Every
    model needs an adapter that tells what calls cost, or prices of its own."""
    budget_tokens: int | None = _most()
    """Tokens, in and out, that the run may spend, in the same way."""
    code_policy: CodePolicy = _word("sandbox", CodePolicy)
    """What may happen to code and models that a benchmark file brings: `trusted` runs its Python templates and
    functions in this process, and asks the models that its traits name (`model_override`)."""
    task_ordering: TaskOrdering = _word("auto", TaskOrdering)
    """The order in which answers are begun. `generation_order`: question by question, each to all answering models.
    `distribute_answerers`: all answering models at the same time, so that a slow one holds up no other.
    `prefix_cache`: one model after the other, equal prompts together, for providers that keep what they have read.
    `random`: shuffled, in the same way for every run of one name. `auto`: `distribute_answerers` where several models
    answer, else `prefix_cache`."""
    executor: str = field(default="local", validator=text)
    workspace_copy: bool = _bool(True)
    """Whether agents work in a copy of the question's folder; without, in the folder itself, which they may change."""
    workspace_cleanup: bool = _bool(True)
    """Whether copies are taken away when the last judge is done. The folders themselves are never taken away."""
    workspace_output_mode: WorkspaceOutputMode = _word("none", WorkspaceOutputMode)
    """What is kept of workspaces in the run directory: nothing, everything (`full`), or the files that are new or were
    changed (`produced`).
    """
    workspace_output_exclude_patterns: tuple[str, ...] = field(default=(), converter=texts)
    """Not kept either, beside virtual environments, caches and traces of judges (`.karenina`): folders as `name/`,
    files as globs such as `*.log`.
    """
    workspace_max_bytes: int = _whole(1024**3, least=1)
    """Bytes that a workspace may hold, to be copied or kept."""
    workspace_max_files: int = _whole(50_000, least=1)
    """Files and folders that a workspace may hold, to be copied or kept."""
    few_shot_config: FewShotConfig | None = field(default=None, validator=optional(instance_of(FewShotConfig)))
    prompt_config: PromptConfig = field(factory=PromptConfig, validator=instance_of(PromptConfig))
    _abstention_enabled: bool | None = _switch()
    _sufficiency_enabled: bool | None = _switch()
    _deep_judgment_enabled: bool | None = _switch()
    _embedding_check_enabled: bool | None = _switch(
        from_environment("EMBEDDING_CHECK", lambda text: _Inherited(read_switch(text)), None)
    )
    _agentic_parsing: bool | None = _switch()
    _deep_judgment_mode: DeepJudgmentMode | None = field(default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        problems = self._switched()
        if self.deep_judgment_rubric_mode == "custom" and self.deep_judgment_rubric_config is None:
            what = "custom needs deep_judgment_rubric_config, which says which traits are judged deeply"
            problems.append(Problem("deep_judgment_rubric_mode", what))
        problems += _duplicates("answering_models", self.answering_models)
        problems += _duplicates("parsing_models", self.parsing_models)
        if problems:
            raise ConfigError(problems)

    def _switched(self) -> list[Problem]:
        """Fold the switches into `features`, once: a copy of this value must not fold them again."""
        features = set(self.features)
        inherited: Any = self._embedding_check_enabled
        if isinstance(inherited, _Inherited):
            on = inherited.on if self.features is NOT_GIVEN else None
            object.__setattr__(self, "_embedding_check_enabled", on)
        mode = self._deep_judgment_mode
        problems = []
        if mode is not None and mode not in get_args(DeepJudgmentMode):
            allowed = ", ".join(get_args(DeepJudgmentMode))
            problems.append(Problem("deep_judgment_mode", f"must be one of {allowed}, not {mode!r}"))
        elif mode is not None:
            on = mode != "disabled"
            if self._deep_judgment_enabled not in (None, on):
                what = f"{mode!r} contradicts deep_judgment_enabled={self._deep_judgment_enabled}; give one of them"
                problems.append(Problem("deep_judgment_mode", what))
            object.__setattr__(self, "_deep_judgment_enabled", on)
            object.__setattr__(self, "deep_judgment_reasoning_only", mode == "reasoning_only")
            object.__setattr__(self, "_deep_judgment_mode", None)
        for name, feature in FEATURE_FIELDS.items():
            value = getattr(self, f"_{name}")
            if value is not None:
                (features.add if value else features.discard)(feature)
                object.__setattr__(self, f"_{name}", None)
        object.__setattr__(self, "features", frozenset(features))
        if self.deep_judgment_mode == "reasoning_only" and self.deep_judgment_search_enabled:
            what = "reasoning_only finds no excerpts to search for; use the mode full, or switch the search off"
            problems.append(Problem("deep_judgment_search_enabled", what))
        return problems

    @property
    def deep_judgment_mode(self) -> DeepJudgmentMode:
        if not self.deep_judgment_enabled:
            return "disabled"
        return "reasoning_only" if self.deep_judgment_reasoning_only else "full"

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

    @property
    def call_seconds(self) -> float:
        """Seconds for one call with all its attempts: `retry_max_elapsed_seconds`, or what None stands for."""
        models = map(self.for_model, (*self.answering_models, *self.parsing_models))
        own = [(m.request_timeout or 0.0) * (m.retry_policy or self.retry_policy).timeout.max_attempts for m in models]
        return self.retry_max_elapsed_seconds or max(
            120.0, self.request_timeout * self.retry_policy.timeout.max_attempts, *own
        )

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
