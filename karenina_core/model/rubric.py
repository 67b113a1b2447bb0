"""Rubrics: observable qualities of an answer, as traits of five types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from attrs import evolve, field, fields, frozen

from .fields import texts

__all__ = [
    "AgenticRubricTrait",
    "CallableRubricTrait",
    "LLMRubricTrait",
    "MetricRubricTrait",
    "RegexRubricTrait",
    "Rubric",
    "TemplateKind",
    "Trait",
]

ScoreKind = Literal["boolean", "score", "literal"]
TRAIT_LISTS = ("llm_traits", "regex_traits", "callable_traits", "metric_traits", "agentic_traits")
METRICS = {
    "tp_only": ("precision", "recall", "f1"),
    "full_matrix": ("precision", "recall", "f1", "specificity", "accuracy"),
}


@frozen
class TemplateKind:
    """A trait whose score is a record of several fields, described by a JSON Schema kept word for word."""

    schema: Mapping[str, Any]
    model: type | None = field(default=None, eq=False, repr=False)
    """The pydantic class, where the trait was written in Python."""

    def to_dict(self) -> dict[str, Any]:
        return {"type": "template", "schema": dict(self.schema)}


def as_kind(value: Any) -> Any:
    """A pydantic class or the plain data of a template kind as a `TemplateKind`; anything else as it is."""
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return TemplateKind(value.model_json_schema(), value)
    if isinstance(value, Mapping) and value.get("type") == "template":
        if not isinstance(value.get("schema"), Mapping):
            raise ValueError("kind: a template kind needs a JSON Schema under 'schema'")
        return TemplateKind(value["schema"])
    return value


def _classes(value: Mapping[str, str | None] | None) -> dict[str, str | None] | None:
    return None if value is None else dict(value)


@frozen(kw_only=True)
class _Named:
    """What every trait has."""

    list_name: ClassVar[str]
    name: str = field()
    description: str | None = None
    summary: str | None = None
    """A short label of the concept, used to ask whether it is present in an answer at all."""

    @name.validator
    def _check_name(self, _: object, value: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("a trait needs a name")
        if "." in value:
            raise ValueError(
                f"trait {value!r}: a name may not contain '.', which separates the fields of template kinds"
            )

    @property
    def usable(self) -> bool:
        """Whether an evaluator could score it; a callable trait whose code is missing is not usable."""
        return True


@frozen(kw_only=True)
class _Scored(_Named):
    """A trait that is scored as true or false, a number, or one of several classes."""

    kind: ScoreKind | TemplateKind = field(converter=as_kind)
    min_score: int | None = None
    max_score: int | None = None
    classes: Mapping[str, str | None] | None = field(default=None, converter=_classes)
    """Class name -> description; the order of declaration is the order of the scores."""

    default_bounds: ClassVar[tuple[int | None, int | None]] = (1, 5)

    @kind.validator
    def _check_kind(self, _: object, value: Any) -> None:
        if not isinstance(value, TemplateKind) and value not in ("boolean", "score", "literal"):
            raise ValueError(
                f"trait {self.name!r}: kind must be boolean, score, literal or a pydantic class, not {value!r}"
            )

    def __attrs_post_init__(self) -> None:
        if self.kind == "literal":
            self._check_classes()
            object.__setattr__(self, "min_score", 0)
            object.__setattr__(self, "max_score", len(self.classes or ()) - 1)
        elif self.kind == "score":
            low, high = self.default_bounds
            object.__setattr__(self, "min_score", low if self.min_score is None else self.min_score)
            object.__setattr__(self, "max_score", high if self.max_score is None else self.max_score)
            if self.min_score is None or self.max_score is None:
                raise ValueError(f"trait {self.name!r}: a score needs min_score and max_score")
            if self.min_score >= self.max_score:
                raise ValueError(
                    f"trait {self.name!r}: min_score {self.min_score} is not below max_score {self.max_score}"
                )

    def _check_classes(self) -> None:
        names = list(self.classes or ())
        if not 2 <= len(names) <= 20:
            raise ValueError(f"trait {self.name!r}: a literal trait needs 2 to 20 classes, not {len(names)}")
        if any(
            not name.strip() or (text is not None and not text.strip()) for name, text in (self.classes or {}).items()
        ):
            raise ValueError(f"trait {self.name!r}: class names and descriptions may not be blank")
        if len({name.casefold() for name in names}) < len(names):
            raise ValueError(f"trait {self.name!r}: class names must differ in more than upper and lower case")

    def get_class_names(self) -> list[str]:
        return list(self.classes or ())

    def get_class_index(self, name: str) -> int:
        """Position of the class in the order of declaration, -1 for an unknown one."""
        names = self.get_class_names()
        return names.index(name) if name in names else -1

    def validate_score(self, value: Any) -> bool:
        """Whether a score fits this trait; -1 is a literal trait's "not a defined class"."""
        if isinstance(self.kind, TemplateKind):
            return True
        if self.kind == "boolean":
            return isinstance(value, bool)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        low, high = self.min_score or 0, self.max_score or 0
        return low <= value <= high or (self.kind == "literal" and value == -1)


@frozen(kw_only=True)
class LLMRubricTrait(_Scored):
    """A quality that the judge model assesses by reading."""

    list_name: ClassVar[str] = "llm_traits"
    deep_judgment_enabled: bool = False
    deep_judgment_excerpt_enabled: bool = True
    deep_judgment_max_excerpts: int | None = None
    deep_judgment_fuzzy_match_threshold: float | None = None
    deep_judgment_excerpt_retry_attempts: int | None = None
    deep_judgment_search_enabled: bool = False
    include_ground_truth: bool = False
    higher_is_better: bool | None = field()

    @higher_is_better.default
    def _direction(self) -> bool | None:
        return None if isinstance(self.kind, TemplateKind) else True

    @higher_is_better.validator
    def _check_direction(self, _: object, value: bool | None) -> None:
        if isinstance(self.kind, TemplateKind) and (value is not None or self.deep_judgment_enabled):
            raise ValueError(f"trait {self.name!r}: a template kind has no direction and no deep judgment")


@frozen(kw_only=True)
class RegexRubricTrait(_Named):
    """A pattern that is searched for in the answer."""

    list_name: ClassVar[str] = "regex_traits"
    pattern: str = field()
    case_sensitive: bool = True
    invert_result: bool = False
    higher_is_better: bool | None = True

    @pattern.validator
    def _check_pattern(self, _: object, value: str) -> None:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"trait {self.name!r}: the pattern does not compile: {error}") from None


@frozen(kw_only=True)
class CallableRubricTrait(_Scored):
    """A quality that a Python function decides.

    Code from a file stays inert bytes until a runtime is asked to run it.
    """

    list_name: ClassVar[str] = "callable_traits"
    default_bounds: ClassVar[tuple[int | None, int | None]] = (None, None)
    callable_code: bytes | None = field(default=None, repr=False)
    invert_result: bool = False
    higher_is_better: bool | None = True

    def __attrs_post_init__(self) -> None:
        if isinstance(self.kind, TemplateKind):
            raise ValueError(f"trait {self.name!r}: a callable trait has no template kind")
        if self.invert_result and self.kind != "boolean":
            raise ValueError(f"trait {self.name!r}: invert_result is for boolean traits")
        if self.callable_code is None and self.kind == "score" and None in (self.min_score, self.max_score):
            return  # an inert trait of an older file, kept as it is
        super().__attrs_post_init__()

    @property
    def usable(self) -> bool:
        return self.callable_code is not None


@frozen(kw_only=True)
class MetricRubricTrait(_Named):
    """Precision, recall and their relatives over lists of instructions."""

    list_name: ClassVar[str] = "metric_traits"
    evaluation_mode: Literal["tp_only", "full_matrix"] = "tp_only"
    metrics: tuple[str, ...] = field(converter=texts)
    tp_instructions: tuple[str, ...] = field(default=(), converter=texts)
    tn_instructions: tuple[str, ...] = field(default=(), converter=texts)
    repeated_extraction: bool = True
    """Whether repeats within one bucket are removed."""
    higher_is_better: bool | None = None

    def __attrs_post_init__(self) -> None:
        allowed = METRICS.get(self.evaluation_mode)
        if allowed is None:
            raise ValueError(f"trait {self.name!r}: evaluation_mode must be tp_only or full_matrix")
        if not self.metrics or set(self.metrics) - set(allowed):
            raise ValueError(f"trait {self.name!r}: metrics must be some of {', '.join(allowed)}")
        if not self.tp_instructions:
            raise ValueError(f"trait {self.name!r}: tp_instructions may not be empty")
        if self.evaluation_mode == "full_matrix" and not self.tn_instructions:
            raise ValueError(f"trait {self.name!r}: full_matrix needs tn_instructions")


@frozen(kw_only=True)
class AgenticRubricTrait(_Scored):
    """A quality that an agent investigates, in the answer's trace, in its workspace, or in both."""

    list_name: ClassVar[str] = "agentic_traits"
    higher_is_better: bool | None = field()
    context_mode: Literal["workspace_only", "trace_and_workspace", "trace_only"] = "trace_and_workspace"
    materialize_trace: bool = False
    persist_trace: bool = False
    max_turns: int = 15
    timeout_seconds: int = 120
    model_override: Any = None
    """A `ModelConfig` that investigates instead of the parsing model."""

    @higher_is_better.default
    def _direction(self) -> bool | None:
        return None if isinstance(self.kind, TemplateKind) else True

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.description:
            raise ValueError(f"trait {self.name!r}: an agentic trait needs a description")
        if self.context_mode not in ("workspace_only", "trace_and_workspace", "trace_only"):
            raise ValueError(f"trait {self.name!r}: unknown context_mode {self.context_mode!r}")
        if self.materialize_trace and self.context_mode == "workspace_only":
            raise ValueError(f"trait {self.name!r}: materialize_trace needs a context_mode that includes the trace")
        if self.max_turns < 1 or self.timeout_seconds <= 0:
            raise ValueError(f"trait {self.name!r}: max_turns and timeout_seconds must be positive")
        if isinstance(self.kind, TemplateKind) and self.higher_is_better is not None:
            raise ValueError(f"trait {self.name!r}: a template kind has no direction")


Trait = LLMRubricTrait | RegexRubricTrait | CallableRubricTrait | MetricRubricTrait | AgenticRubricTrait


def _llm(value: Iterable[LLMRubricTrait]) -> tuple[LLMRubricTrait, ...]:
    return tuple(value)


def _regex(value: Iterable[RegexRubricTrait]) -> tuple[RegexRubricTrait, ...]:
    return tuple(value)


def _callable(value: Iterable[CallableRubricTrait]) -> tuple[CallableRubricTrait, ...]:
    return tuple(value)


def _metric(value: Iterable[MetricRubricTrait]) -> tuple[MetricRubricTrait, ...]:
    return tuple(value)


def _agentic(value: Iterable[AgenticRubricTrait]) -> tuple[AgenticRubricTrait, ...]:
    return tuple(value)


@frozen(kw_only=True)
class Rubric:
    """Traits by type. Names are unique across all types."""

    llm_traits: tuple[LLMRubricTrait, ...] = field(default=(), converter=_llm)
    regex_traits: tuple[RegexRubricTrait, ...] = field(default=(), converter=_regex)
    callable_traits: tuple[CallableRubricTrait, ...] = field(default=(), converter=_callable)
    metric_traits: tuple[MetricRubricTrait, ...] = field(default=(), converter=_metric)
    agentic_traits: tuple[AgenticRubricTrait, ...] = field(default=(), converter=_agentic)

    def __attrs_post_init__(self) -> None:
        names = [trait.name for trait in self]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"rubric: these trait names occur more than once: {', '.join(twice)}")

    def __iter__(self) -> Iterator[Trait]:
        for list_name in TRAIT_LISTS:
            yield from getattr(self, list_name)

    def __len__(self) -> int:
        return sum(len(getattr(self, list_name)) for list_name in TRAIT_LISTS)

    @property
    def usable(self) -> Rubric:
        """The same rubric without the traits that nothing could score."""
        return evolve(self, **{name: tuple(t for t in getattr(self, name) if t.usable) for name in TRAIT_LISTS})

    @classmethod
    def from_traits(cls, traits: Iterable[Trait]) -> Rubric:
        """Sort a flat list of traits by type."""
        lists: dict[str, list[Trait]] = {name: [] for name in TRAIT_LISTS}
        for trait in traits:
            lists[trait.list_name].append(trait)
        return cls(**lists)  # type: ignore[arg-type]  # the lists are typed by their names

    def merge(self, other: Rubric) -> Rubric:
        """Both rubrics' traits; a name that both have is a ValueError that names every clash as `type:name`."""
        mine = {trait.name for trait in self}
        if clashes := [
            f"{trait.list_name.removesuffix('_traits')}:{trait.name}" for trait in other if trait.name in mine
        ]:
            raise ValueError(f"rubrics clash on {', '.join(sorted(clashes))}; rename the trait in one of them")
        return Rubric(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Rubric)})

    def names(self) -> Sequence[str]:
        return [trait.name for trait in self]
