"""What a run is asked to do: models, mode, features, limits. Immutable; one value travels to every stage.

`VerificationConfig` is made of what the core says here, `RunSettings`, and of the sections of settings that installed
distributions declare.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import attrs
from attrs import evolve, field, frozen, validators

from ..errors import ConfigError, ContractError, Problem
from ..plugin.discovery import Declared
from .fields import instance_of, limits_by_model, named_refusals, number, one_of, optional, texts
from .model_config import AttemptPolicy, ManualAnswer, ModelConfig, RetryPolicy, Secret
from .sections import (
    Facts,
    Inherited,
    Section,
    installed_sections,
    metadata,
    most,
    named_facts,
    positive,
    setting,
    switches_of,
    toml_or_text,
    whole,
    word,
    words,
)

if TYPE_CHECKING:
    from .installed import VerificationConfig

__all__ = [
    "DEFAULT_SYSTEM_PROMPT",
    "AttemptPolicy",
    "CodePolicy",
    "EvaluationMode",
    "ManualAnswer",
    "ModelConfig",
    "RetryPolicy",
    "RunSettings",
    "Secret",
    "TaskOrdering",
    "VerificationConfig",
    "facts",
    "sections",
    "switches",
]

EvaluationMode = Literal["template_only", "template_and_rubric", "rubric_only"]
CodePolicy = Literal["sandbox", "trusted", "refuse"]
TaskOrdering = Literal["auto", "prefix_cache", "distribute_answerers", "generation_order", "random"]
BY_THEMSELVES = metadata(neutral=True)
DEFAULT_SYSTEM_PROMPT = "You are an expert assistant. Answer the question accurately and concisely."


def _models(value: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    models = tuple(value) if isinstance(value, Iterable) else (None,)
    for model in models:
        if not isinstance(model, ModelConfig):
            raise ValueError("must be a list of ModelConfig")
    return models


class _NotGiven(frozenset[str]):
    """No features, because nothing says which."""


NOT_GIVEN = _NotGiven()


def _features(value: Iterable[str] | None) -> frozenset[str]:
    if value is NOT_GIVEN:
        return NOT_GIVEN
    return frozenset(texts(() if value is None else value))


@frozen(kw_only=True, slots=False)
class RunSettings(Section):
    """How a benchmark is verified.

    Beside these fields it has those of every installed section of settings. A switch, such as `NAME_enabled`, may be
    given to the constructor and read as an attribute; it is a view of `features`.
    """

    answering_models: tuple[ModelConfig, ...] = field(default=(), converter=_models, metadata=BY_THEMSELVES)
    parsing_models: tuple[ModelConfig, ...] = field(default=(), converter=_models, metadata=BY_THEMSELVES)
    replicate_count: int = whole(1, least=1, neutral=True)
    """Independent answers per question and model."""
    evaluation_mode: EvaluationMode | None = setting(None, optional(one_of(get_args(EvaluationMode))))
    """None: templates, and rubrics too where the benchmark has traits that can be scored."""
    features: frozenset[str] = field(factory=lambda: NOT_GIVEN, converter=_features)
    """Names of optional behaviour, as the installed stages declare them."""
    request_timeout: float = positive(120.0, neutral=True)
    """Seconds for one attempt of one model call, from the first byte sent to the last received."""
    retry_policy: RetryPolicy = field(factory=RetryPolicy, validator=instance_of(RetryPolicy), metadata=BY_THEMSELVES)
    retry_max_elapsed_seconds: float | None = positive(None, neutral=True)
    """Seconds for one call with all its attempts and waits; None: as long as all attempts that a time-out may have take
    (`request_timeout`), at least 120. A model that takes nothing for longer, or asks to be left alone for longer, is
    asked nothing more in this run."""
    stage_idle_timeout: float | None = setting(
        600.0, optional(number, validators.ge(0)), read=toml_or_text, neutral=True
    )
    """Seconds that a stage has without a sign of progress while no call is under way; 0 or None: no limit."""
    concurrency: int = whole(8, least=1, neutral=True)
    """Items in flight."""
    max_concurrent_requests: int | None = most(neutral=True)
    """Calls of all models that may be under way at the same time, those of an embedder that asks a provider included;
    None: as many as the items make. Models that wait for each other take turns."""
    answerer_concurrency_limits: int | Mapping[str, int] | None = setting(
        None, optional(limits_by_model), read=toml_or_text, neutral=True
    )
    """Calls that may be under way at the same time of each answering model, or of some, by their ids. What it is asked
    as a judge counts too. None: as many as its provider takes."""
    budget_usd: float | None = positive(None, neutral=True)
    """US dollars that the run may spend; what the calls under way take beyond their estimates can come on top. Every
    model needs an adapter that tells what calls cost, or prices of its own."""
    budget_tokens: int | None = most(neutral=True)
    """Tokens, in and out, that the run may spend, in the same way."""
    code_policy: CodePolicy = word("sandbox", CodePolicy, environment=False, neutral=True)
    """What may happen to code and models that a benchmark file brings: `trusted` runs its Python templates and
    functions in this process, and asks the models that its traits name (`model_override`)."""
    task_ordering: TaskOrdering = word("auto", TaskOrdering, neutral=True)
    """The order in which answers are begun. `generation_order`: question by question, each to all answering models.
    `distribute_answerers`: all answering models at the same time, so that a slow one holds up no other.
    `prefix_cache`: one model after the other, equal prompts together, for providers that keep what they have read.
    `random`: shuffled, in the same way for every run of one name. `auto`: `distribute_answerers` where several models
    answer, else `prefix_cache`."""
    executor: str = words("local", neutral=True)

    def __attrs_post_init__(self) -> None:
        problems = self._resolve()
        kinds: tuple[Any, ...] = type(self).__mro__
        for cls in kinds:
            if "check_settings" in vars(cls):
                problems += cls.check_settings(self)
        if problems:
            raise ConfigError(problems)

    def check_settings(self) -> Iterable[Problem]:
        yield from _duplicates("answering_models", self.answering_models)
        yield from _duplicates("parsing_models", self.parsing_models)

    def _resolve(self) -> list[Problem]:
        """Fold views and switches into what they stand for, once: a copy of this value must not fold them again."""
        features = set(self.features)
        problems = []
        cls: Any = type(self)
        own = switches_of(cls)
        for name in own:
            inherited: Any = getattr(self, f"_{name}")
            if isinstance(inherited, Inherited):
                on = inherited.on if self.features is NOT_GIVEN else None
                object.__setattr__(self, f"_{name}", on)
        for name, about in named_facts(cls).items():
            if about.stands_for is not None and (value := getattr(self, f"_{name}")) is not None:
                try:
                    meant = about.stands_for(value)
                except ValueError as error:
                    problems.append(Problem(name, str(error)))
                    continue
                problems += self._set(f"{name}: {value!r}", meant)
                object.__setattr__(self, f"_{name}", None)
        for name, feature in own.items():
            if (on := getattr(self, f"_{name}")) is not None:
                (features.add if on else features.discard)(feature)
                object.__setattr__(self, f"_{name}", None)
        object.__setattr__(self, "features", frozenset(features))
        return problems

    def _set(self, view: str, meant: Mapping[str, Any]) -> Iterable[Problem]:
        path, _, said = view.partition(": ")
        cls: Any = type(self)
        for name, value in meant.items():
            held = f"_{name}" if name in switches_of(cls) else name
            if held != name and getattr(self, held) not in (None, value):
                yield Problem(path, f"{said} contradicts {name}={getattr(self, held)}; give one of them")
            object.__setattr__(self, held, value)

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


@cache
def sections() -> tuple[Declared, ...]:
    """The installed sections, those too that cannot be used."""
    return installed_sections(RunSettings)


_lock = threading.RLock()
_busy = threading.local()


class _Completed(type):
    """A class that gets its fields when they are first asked for: sections are in modules that may import the class."""

    complete = False
    fields: Any = ()

    @property
    def __attrs_attrs__(cls) -> Any:
        if not cls.complete and not getattr(_busy, "made", False):
            _complete(cls)
        return cls.fields

    @__attrs_attrs__.setter
    def __attrs_attrs__(cls, value: Any) -> None:
        cls.fields = value


def _complete(cls: _Completed) -> None:
    if getattr(_busy, "loading", False):
        raise ContractError(
            "a module with settings of a run is imported to make VerificationConfig, and uses it already"
        )
    _busy.loading = True
    try:
        found = [section.cls for section in sections() if section.cls is not None]
    finally:
        _busy.loading = False
    with _lock:
        if not cls.complete:
            _busy.made = True
            try:
                combine(cls, (RunSettings, *found))
            finally:
                _busy.made = False
            cls.complete = True


def combine(cls: Any, bases: tuple[type[Any], ...]) -> None:
    """Derive the class from the settings of the core and from sections, with all their fields."""

    def ordered(_: type, attributes: list[Any]) -> list[Any]:
        order = [attribute.name for base in bases for attribute in attrs.fields(base)]
        return named_refusals(cls, sorted(attributes, key=lambda attribute: order.index(attribute.name)))

    cls.__bases__ = bases
    frozen(kw_only=True, slots=False, field_transformer=ordered)(cls)
    signature = inspect.signature(cls.__init__)
    cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])


if not TYPE_CHECKING:

    class VerificationConfig(RunSettings, metaclass=_Completed):
        __doc__ = RunSettings.__doc__

        def __new__(cls, *_: Any, **__: Any) -> Any:
            attrs.fields(cls)
            return object.__new__(cls)


def facts() -> Mapping[str, Facts]:
    """What is declared about each setting, by its name."""
    return named_facts(VerificationConfig)


def switches() -> Mapping[str, str]:
    """The settings that switch a feature: `{name: feature}`."""
    return switches_of(VerificationConfig)
