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
from attrs import field, frozen

from ..errors import ConfigError, ContractError, Problem
from ..plugin.discovery import Declared
from .fields import named_refusals, one_of, optional, texts
from .model_config import AttemptPolicy, ManualAnswer, ModelConfig, RetryPolicy, Secret
from .sections import Facts, Inherited, Section, installed_sections, metadata, named_facts, setting, switches_of, word

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
    "VerificationConfig",
    "facts",
    "sections",
    "switches",
]

EvaluationMode = Literal["template_only", "template_and_rubric", "rubric_only"]
CodePolicy = Literal["sandbox", "trusted", "refuse"]
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
    evaluation_mode: EvaluationMode | None = setting(None, optional(one_of(get_args(EvaluationMode))))
    """None: templates, and rubrics too where the benchmark has traits that can be scored."""
    features: frozenset[str] = field(factory=lambda: NOT_GIVEN, converter=_features)
    """Names of optional behaviour, as the installed stages declare them."""
    code_policy: CodePolicy = word("sandbox", CodePolicy, environment=False, neutral=True)
    """What may happen to code and models that a benchmark file brings: `sandbox` runs its Python templates and
    functions in locked processes, `trusted` runs them in this process and asks the models that its traits name
    (`model_override`)."""

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
        """Fold views and switches into the settings that they set, once: a copy must not fold them again."""
        features = set(self.features)
        problems = []
        cls: Any = type(self)
        own = switches_of(cls)
        for name in own:
            inherited: Any = getattr(self, f"_{name}")
            if isinstance(inherited, Inherited):
                object.__setattr__(self, f"_{name}", inherited.on if self.features is NOT_GIVEN else None)
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
        path, _, given = view.partition(": ")
        cls: Any = type(self)
        for name, value in meant.items():
            held = f"_{name}" if name in switches_of(cls) else name
            if held != name and getattr(self, held) not in (None, value):
                yield Problem(path, f"{given} contradicts {name}={getattr(self, held)}; give one of them")
            object.__setattr__(self, held, value)


def _duplicates(where: str, models: Sequence[ModelConfig]) -> list[Problem]:
    names = [str(model.identity) for model in models]
    return [
        Problem(f"{where}[{i}]", f"{name} is used twice; give one of them its own id")
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
