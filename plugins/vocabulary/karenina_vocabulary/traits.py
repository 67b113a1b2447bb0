"""Traits: observable qualities of an answer. Five types of them are published; packages may bring more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from attrs import field, frozen

from karenina_core.values.rubric import RubricTrait

from . import checks
from .template_kind import TemplateKind, as_kind, check_fields

ScoreKind = Literal["boolean", "score", "literal"]
MOST_CLASSES = 20
METRICS = {
    "tp_only": ("precision", "recall", "f1"),
    "full_matrix": ("precision", "recall", "f1", "specificity", "accuracy"),
}


@frozen(kw_only=True)
class ScoredTrait(RubricTrait):
    """A trait that is scored as true or false, a number, or one of several classes.

    `min_score` and `max_score` mean something for the kind `score` only, `classes` for the kind `literal` only.
    Benchmark files give them for other kinds too; there they are kept and have no effect.
    """

    kind: ScoreKind | TemplateKind = field(converter=as_kind)
    min_score: int | None = field(default=None, validator=checks.whole)
    max_score: int | None = field(default=None, validator=checks.whole)
    classes: Mapping[str, str | None] | None = field(default=None, converter=checks.mapped, validator=checks.names)
    """Class name -> description; the order of declaration is the order of the scores."""

    default_bounds: ClassVar[tuple[int | None, int | None]] = (1, 5)
    numbers: ClassVar[tuple[type, ...]] = (int,)
    """What a score may be."""

    @kind.validator
    def _check_kind(self, _: object, value: Any) -> None:
        if not isinstance(value, TemplateKind) and value not in ("boolean", "score", "literal"):
            raise ValueError(
                f"trait {self.name!r}: kind must be boolean, score, literal or a pydantic class, not {value!r}"
            )

    def __attrs_post_init__(self) -> None:
        if isinstance(self.kind, TemplateKind):
            try:
                check_fields(self.kind)
            except ValueError as error:
                raise ValueError(f"trait {self.name!r}: {error}") from None
        elif self.kind == "literal":
            self._check_classes()
            object.__setattr__(self, "min_score", 0)
            object.__setattr__(self, "max_score", len(self.classes or ()) - 1)
        elif self.kind == "score":
            self._check_bounds()

    def _check_bounds(self) -> None:
        low, high = self.default_bounds
        object.__setattr__(self, "min_score", low if self.min_score is None else self.min_score)
        object.__setattr__(self, "max_score", high if self.max_score is None else self.max_score)
        if self.min_score is None or self.max_score is None:
            raise ValueError(f"trait {self.name!r}: a score needs min_score and max_score")
        if self.min_score >= self.max_score:
            raise ValueError(
                f"trait {self.name!r}: min_score {self.min_score} is not below max_score {self.max_score}; give both"
            )

    def _check_classes(self) -> None:
        names = list(self.classes or ())
        if not 2 <= len(names) <= MOST_CLASSES:
            raise ValueError(
                f"trait {self.name!r}: a literal trait needs 2 to {MOST_CLASSES} classes, not {len(names)}"
            )
        for text in (*names, *(text for text in (self.classes or {}).values() if text is not None)):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(
                    f"trait {self.name!r}: class names and descriptions must be texts and not blank, not {text!r}"
                )
        if len({name.casefold() for name in names}) < len(names):
            raise ValueError(f"trait {self.name!r}: class names must differ in more than upper and lower case")

    def get_class_names(self) -> list[str]:
        return list(self.classes or ())

    def get_class_index(self, name: str) -> int:
        """Position of the class in the order of declaration, -1 for an unknown one.

        The exact spelling counts first, then the same letters in another case, composed in another way or with other
        white space around them, where that is one class only.
        """
        names = self.get_class_names()
        if name in names:
            return names.index(name)
        alike = [index for index, own in enumerate(names) if checks.plain(own) == checks.plain(name)]
        return alike[0] if len(alike) == 1 else -1

    def ambiguity(self) -> str:
        if isinstance(self.kind, TemplateKind):
            dotted = [name for name in self.kind.schema["properties"] if "." in name]
            why = "'.' separates a trait and its fields in results; rename the field"
            return f"trait {self.name!r}: field {dotted[0]!r}: {why}" if dotted else ""
        names = self.get_class_names() if self.kind == "literal" else []
        for number, name in enumerate(names):
            if alike := [other for other in names[:number] if checks.plain(other) == checks.plain(name)]:
                what = f"classes {alike[0]!r} and {name!r} look alike"
                return f"trait {self.name!r}: {what}; let them differ in more than case and white space"
        return ""

    def validate_score(self, value: Any) -> bool:
        """Whether a score fits this trait; -1 is a literal trait's "not a defined class".

        Numbers are whole, except those of callable traits.
        """
        if isinstance(self.kind, TemplateKind):
            return True
        if self.kind == "boolean":
            return isinstance(value, bool)
        if isinstance(value, bool) or type(value) not in self.numbers:
            return False
        low, high = self.min_score or 0, self.max_score or 0
        return low <= value <= high or (self.kind == "literal" and value == -1)

    def scale(self) -> dict[str, Any]:
        known = {**super().scale(), "kind": "template" if isinstance(self.kind, TemplateKind) else self.kind}
        if self.kind == "score":
            return {**known, "min": self.min_score, "max": self.max_score}
        return {**known, "classes": self.get_class_names()} if self.kind == "literal" else known


@frozen(kw_only=True)
class LLMRubricTrait(ScoredTrait):
    """A quality that the judge model assesses by reading."""

    type_name: ClassVar[str] = "llm"
    list_name: ClassVar[str] = "llm_traits"
    deep_judgment_enabled: bool = field(default=False, validator=checks.switch)
    deep_judgment_excerpt_enabled: bool = field(default=True, validator=checks.switch)
    deep_judgment_max_excerpts: int | None = field(default=None, validator=checks.whole_from(1))
    deep_judgment_fuzzy_match_threshold: float | None = field(default=None, validator=checks.fraction)
    deep_judgment_excerpt_retry_attempts: int | None = field(default=None, validator=checks.whole_from(0))
    deep_judgment_search_enabled: bool = field(default=False, validator=checks.switch)
    include_ground_truth: bool = field(default=False, validator=checks.switch)
    """Whether the judge sees the reference answer beside it. It has no effect on a trait that is judged deeply."""
    higher_is_better: bool | None = field(validator=checks.direction)

    @higher_is_better.default
    def _direction(self) -> bool | None:
        return None if isinstance(self.kind, TemplateKind) else True

    @higher_is_better.validator
    def _check_direction(self, _: object, value: bool | None) -> None:
        if isinstance(self.kind, TemplateKind) and (value is not None or self.deep_judgment_enabled):
            raise ValueError(
                f"trait {self.name!r}: a template kind has no direction and no deep judgment; leave higher_is_better "
                "and deep_judgment_enabled out"
            )


@frozen(kw_only=True)
class RegexRubricTrait(RubricTrait):
    """A pattern that is searched for in the answer."""

    type_name: ClassVar[str] = "regex"
    list_name: ClassVar[str] = "regex_traits"
    pattern: str = field()
    case_sensitive: bool = field(default=True, validator=checks.switch)
    invert_result: bool = field(default=False, validator=checks.switch)
    higher_is_better: bool | None = field(default=True, validator=checks.direction)

    @pattern.validator
    def _check_pattern(self, _: object, value: str) -> None:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"trait {self.name!r}: the pattern does not compile: {error}") from None


@frozen(kw_only=True)
class CallableRubricTrait(ScoredTrait):
    """A quality that a Python function decides.

    Code from a file stays inert bytes until a runtime is asked to run it. `from_callable` makes one of a function.
    """

    type_name: ClassVar[str] = "callable"
    list_name: ClassVar[str] = "callable_traits"
    default_bounds: ClassVar[tuple[int | None, int | None]] = (None, None)
    numbers: ClassVar[tuple[type, ...]] = (int, float)
    callable_code: bytes | None = field(default=None, repr=False)
    """The pickled function, which is what files keep."""
    invert_result: bool = field(default=False, validator=checks.switch)
    higher_is_better: bool | None = field(default=True, validator=checks.direction)
    function: Callable[[str], Any] | None = field(default=None, eq=False, repr=False, metadata={"saved": False})
    """The function itself, where the trait was made of it in this process. It is never saved."""

    def __attrs_post_init__(self) -> None:
        if isinstance(self.kind, TemplateKind):
            raise ValueError(f"trait {self.name!r}: a callable trait has no template kind")
        if self.function is not None and (self.callable_code is None or not callable(self.function)):
            raise ValueError(f"trait {self.name!r}: make it with CallableRubricTrait.from_callable(name, func, ...)")
        if self.invert_result and self.kind != "boolean":
            raise ValueError(f"trait {self.name!r}: invert_result is for boolean traits")
        if self.callable_code is None and self.kind == "score" and None in (self.min_score, self.max_score):
            return  # an inert trait of an older file, kept as it is
        super().__attrs_post_init__()

    @property
    def usable(self) -> bool:
        return self.callable_code is not None

    @classmethod
    def from_callable(
        cls,
        name: str,
        func: Callable[[str], Any],
        *,
        kind: ScoreKind,
        description: str | None = None,
        summary: str | None = None,
        min_score: int | None = None,
        max_score: int | None = None,
        invert_result: bool = False,
        higher_is_better: bool | None = True,
        classes: Mapping[str, str | None] | None = None,
    ) -> CallableRubricTrait:
        """A trait that a function of this program decides, from the text that is scored.

        The function returns True or False (`boolean`), a number from `min_score` to `max_score` (`score`, which needs
        both), or the name of one of the `classes` (`literal`). Raises ValueError for a function that does not take
        exactly one parameter, that is async or cannot be pickled, and PluginError where cloudpickle is missing.
        """
        from .callable_code import check_function, pickled  # only whoever brings a function pays for it

        if kind != "score" and (min_score, max_score) != (None, None):
            raise ValueError(f"trait {name!r}: min_score and max_score are for the kind score")
        if kind != "literal" and classes is not None:
            raise ValueError(f"trait {name!r}: classes are for the kind literal")
        check_function(func, name)
        return cls(
            name=name,
            kind=kind,
            description=description,
            summary=summary,
            min_score=min_score,
            max_score=max_score,
            invert_result=invert_result,
            higher_is_better=higher_is_better,
            classes=classes,
            callable_code=pickled(func, name),
            function=func,
        )


@frozen(kw_only=True)
class MetricRubricTrait(RubricTrait):
    """Precision, recall and their relatives over lists of instructions."""

    type_name: ClassVar[str] = "metric"
    list_name: ClassVar[str] = "metric_traits"
    evaluation_mode: Literal["tp_only", "full_matrix"] = "tp_only"
    metrics: tuple[str, ...] = field(converter=checks.listed, validator=checks.texts)
    """What is given of the counts; a name that is repeated is kept once."""
    tp_instructions: tuple[str, ...] = field(default=(), converter=checks.listed, validator=checks.texts)
    tn_instructions: tuple[str, ...] = field(default=(), converter=checks.listed, validator=checks.texts)
    """What a good answer does without, for `full_matrix`; in `tp_only` they are kept and have no effect."""
    repeated_extraction: bool = field(default=True, validator=checks.switch)
    """Whether equal instructions are asked about once and equal wrong attempts are counted once, without regard to
    case. Different instructions that one passage answers count each, whatever this says."""
    higher_is_better: bool | None = field(default=None, validator=checks.direction)

    def __attrs_post_init__(self) -> None:
        allowed = METRICS.get(self.evaluation_mode) if isinstance(self.evaluation_mode, str) else None
        if allowed is None:
            what = f"evaluation_mode must be tp_only or full_matrix, not {self.evaluation_mode!r}"
            raise ValueError(f"trait {self.name!r}: {what}")
        if not self.metrics or set(self.metrics) - set(allowed):
            raise ValueError(f"trait {self.name!r}: metrics must be some of {', '.join(allowed)}")
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(self.metrics)))
        if not self.tp_instructions:
            raise ValueError(f"trait {self.name!r}: tp_instructions may not be empty")
        if self.evaluation_mode == "full_matrix" and not self.tn_instructions:
            raise ValueError(f"trait {self.name!r}: full_matrix needs tn_instructions")
        if any(not text.strip() for text in (*self.tp_instructions, *self.tn_instructions)):
            raise ValueError(f"trait {self.name!r}: instructions may not be blank; remove the empty ones")

    def ambiguity(self) -> str:
        wanted = {checks.plain(text) for text in self.tp_instructions}
        unwanted = self.tn_instructions if self.evaluation_mode == "full_matrix" else ()
        both = [text for text in unwanted if checks.plain(text) in wanted]
        if not both:
            return ""
        return f"trait {self.name!r}: {both[0]!r} is both a TP and a TN instruction; remove one of the two"


@frozen(kw_only=True)
class AgenticRubricTrait(ScoredTrait):
    """A quality that an agent investigates, in the answer's trace, in its workspace, or in both."""

    type_name: ClassVar[str] = "agentic"
    list_name: ClassVar[str] = "agentic_traits"
    higher_is_better: bool | None = field(validator=checks.direction)
    context_mode: Literal["workspace_only", "trace_and_workspace", "trace_only"] = "trace_and_workspace"
    materialize_trace: bool = field(default=False, validator=checks.switch)
    persist_trace: bool = field(default=False, validator=checks.switch)
    """Whether the trace's file is kept with the result, where some trait of the item has it written."""
    max_turns: int = field(default=15, validator=checks.positive)
    timeout_seconds: int = field(default=120, validator=checks.positive)
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
        if isinstance(self.kind, TemplateKind) and self.higher_is_better is not None:
            raise ValueError(f"trait {self.name!r}: a template kind has no direction; leave higher_is_better out")


Trait = LLMRubricTrait | RegexRubricTrait | CallableRubricTrait | MetricRubricTrait | AgenticRubricTrait
"""The published types. Code that also serves those of other packages takes a `RubricTrait`."""
