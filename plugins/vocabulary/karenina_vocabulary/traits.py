"""Traits: observable qualities of an answer. Five types of them are published; packages may bring more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal

from attrs import field, frozen

from karenina_core.values.rubric import RubricTrait

from .handle import compiled
from .record_traits import TemplateKind, as_kind, check_fields

ScoreKind = Literal["boolean", "score", "literal"]
MOST_CLASSES = 20  # chosen, not measured: a judge has to keep them apart
METRICS = {
    "tp_only": ("precision", "recall", "f1"),
    "full_matrix": ("precision", "recall", "f1", "specificity", "accuracy"),
}


def _listed(value: Iterable[str]) -> Any:
    """A tuple of what is listed. A single text is no list of its letters."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) else value


def _mapped(value: Any) -> Any:
    """A dictionary of a mapping."""
    return dict(value) if isinstance(value, Mapping) else value


def _plain(text: str) -> str:
    """The same for texts that look alike to a reader: they differ in case, white space around them or Unicode
    composition."""
    return unicodedata.normalize("NFC", text.strip()).casefold()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Types are strict, True is no number, and every error names the trait. Converters leave alone what they cannot convert:
# only validators know the trait.
def _validator(wanted: str, fits: Callable[[Any], bool], *, optional: bool = True) -> Callable[[Any, Any, Any], None]:
    """Refuses what does not fit; None fits where the field is `optional`."""

    def check(trait: Any, attribute: Any, value: Any) -> None:
        if not (fits(value) or (optional and value is None)):
            shown = list(value) if isinstance(value, tuple) else value
            raise ValueError(f"trait {trait.name!r}: {attribute.name} must be {wanted}, not {shown!r}")

    return check


def _whole_from(least: int) -> Callable[[Any, Any, Any], None]:
    """A validator: a whole number that is not less, or None."""
    return _validator(f"a whole number from {least} on", lambda value: _is_whole(value) and value >= least)


_switch = _validator("True or False", lambda value: isinstance(value, bool), optional=False)
_direction = _validator("True, False or None", lambda value: isinstance(value, bool))
_names = _validator("names with a description or None each", lambda value: isinstance(value, Mapping))
_whole = _validator("a whole number", _is_whole)
_positive = _validator("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1, optional=False)
_fraction = _validator(
    "a number from 0 to 1",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
)
_texts = _validator(
    "a list of texts",
    lambda value: isinstance(value, tuple) and all(isinstance(entry, str) for entry in value),
    optional=False,
)


def _require(trait: RubricTrait, holds: object, problem: str) -> None:
    if not holds:
        raise ValueError(f"trait {trait.name!r}: {problem}")


@frozen(kw_only=True)
class ScoredTrait(RubricTrait):
    """A trait that is scored as true or false, a number, or one of several classes.

    `min_score` and `max_score` mean something for the kind `score` only, `classes` for the kind `literal` only.
    Benchmark files give them for other kinds too; there they are kept and have no effect.
    """

    kind: ScoreKind | TemplateKind = field(converter=as_kind)
    min_score: int | None = field(default=None, validator=_whole)
    max_score: int | None = field(default=None, validator=_whole)
    classes: Mapping[str, str | None] | None = field(default=None, converter=_mapped, validator=_names)
    """Class name -> description; the order of declaration is the order of the scores."""

    default_bounds: ClassVar[tuple[int | None, int | None]] = (1, 5)
    numbers: ClassVar[tuple[type, ...]] = (int,)
    """What a score may be."""

    @kind.validator
    def _check_kind(self, _: object, value: Any) -> None:
        known = isinstance(value, TemplateKind) or value in ("boolean", "score", "literal")
        _require(self, known, f"kind must be boolean, score, literal or a pydantic class, not {value!r}")

    def __attrs_post_init__(self) -> None:
        if isinstance(self.kind, TemplateKind):
            try:
                check_fields(self.kind)
            except ValueError as error:
                raise ValueError(f"trait {self.name!r}: {error}") from None
            return
        low, high = self.min_score, self.max_score
        if self.kind == "literal":
            names = list(self.classes or ())
            few = 2 <= len(names) <= MOST_CLASSES
            _require(self, few, f"a literal trait needs 2 to {MOST_CLASSES} classes, not {len(names)}")
            for text in (*names, *(text for text in (self.classes or {}).values() if text is not None)):
                is_text = isinstance(text, str) and text.strip()
                _require(self, is_text, f"class names and descriptions must be texts and not blank, not {text!r}")
            different = len({name.casefold() for name in names}) == len(names)
            _require(self, different, "class names must differ in more than upper and lower case")
            low, high = 0, len(names) - 1
        elif self.kind == "score":
            usual = self.default_bounds
            low, high = usual[0] if low is None else low, usual[1] if high is None else high
            if low is None or high is None:
                raise ValueError(f"trait {self.name!r}: a score needs min_score and max_score")
            _require(self, low < high, f"min_score {low} is not below max_score {high}; give both")
        object.__setattr__(self, "min_score", low)
        object.__setattr__(self, "max_score", high)

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
        alike = [index for index, own in enumerate(names) if _plain(own) == _plain(name)]
        return alike[0] if len(alike) == 1 else -1

    def ambiguity(self) -> str:
        if isinstance(self.kind, TemplateKind):
            dotted = [name for name in self.kind.schema["properties"] if "." in name]
            why = "'.' separates a trait and its fields in results; rename the field"
            return f"trait {self.name!r}: field {dotted[0]!r}: {why}" if dotted else ""
        names = self.get_class_names() if self.kind == "literal" else []
        for number, name in enumerate(names):
            if alike := [other for other in names[:number] if _plain(other) == _plain(name)]:
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
    deep_judgment_enabled: bool = field(default=False, validator=_switch)
    deep_judgment_excerpt_enabled: bool = field(default=True, validator=_switch)
    deep_judgment_max_excerpts: int | None = field(default=None, validator=_whole_from(1))
    deep_judgment_fuzzy_match_threshold: float | None = field(default=None, validator=_fraction)
    deep_judgment_excerpt_retry_attempts: int | None = field(default=None, validator=_whole_from(0))
    deep_judgment_search_enabled: bool = field(default=False, validator=_switch)
    include_ground_truth: bool = field(default=False, validator=_switch)
    """Whether the judge sees the reference answer beside it. It has no effect on a trait that is judged deeply."""
    higher_is_better: bool | None = field(validator=_direction)

    @higher_is_better.default
    def _default_direction(self) -> bool | None:
        return None if isinstance(self.kind, TemplateKind) else True

    @higher_is_better.validator
    def _check_direction(self, _: object, value: bool | None) -> None:
        usual = not isinstance(self.kind, TemplateKind) or (value is None and not self.deep_judgment_enabled)
        what = "a template kind has no direction and no deep judgment"
        _require(self, usual, f"{what}; leave higher_is_better and deep_judgment_enabled out")


@frozen(kw_only=True)
class RegexRubricTrait(RubricTrait):
    """A pattern that is searched for in the answer."""

    type_name: ClassVar[str] = "regex"
    list_name: ClassVar[str] = "regex_traits"
    pattern: str = field()
    case_sensitive: bool = field(default=True, validator=_switch)
    invert_result: bool = field(default=False, validator=_switch)
    higher_is_better: bool | None = field(default=True, validator=_direction)

    @pattern.validator
    def _check_pattern(self, _: object, value: str) -> None:
        try:
            compiled(value)
        except (re.error, ValueError) as error:
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
    invert_result: bool = field(default=False, validator=_switch)
    higher_is_better: bool | None = field(default=True, validator=_direction)
    function: Callable[[str], Any] | None = field(default=None, eq=False, repr=False, metadata={"saved": False})
    """The function itself, where the trait was made of it in this process. It is never saved."""

    def __attrs_post_init__(self) -> None:
        _require(self, not isinstance(self.kind, TemplateKind), "a callable trait has no template kind")
        whole = self.function is None or (self.callable_code is not None and callable(self.function))
        _require(self, whole, "make it with CallableRubricTrait.from_callable(name, func, ...)")
        _require(self, not self.invert_result or self.kind == "boolean", "invert_result is for boolean traits")
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
    metrics: tuple[str, ...] = field(converter=_listed, validator=_texts)
    """What is given of the counts; a name that is repeated is kept once."""
    tp_instructions: tuple[str, ...] = field(default=(), converter=_listed, validator=_texts)
    tn_instructions: tuple[str, ...] = field(default=(), converter=_listed, validator=_texts)
    """What a good answer does without, for `full_matrix`; in `tp_only` they are kept and have no effect."""
    repeated_extraction: bool = field(default=True, validator=_switch)
    """Whether equal instructions are asked about once and equal wrong attempts are counted once, without regard to
    case. Different instructions that one passage answers count each, whatever this says."""
    higher_is_better: bool | None = field(default=None, validator=_direction)

    def __attrs_post_init__(self) -> None:
        mode = self.evaluation_mode
        allowed = METRICS.get(mode, ()) if isinstance(mode, str) else ()
        _require(self, allowed, f"evaluation_mode must be tp_only or full_matrix, not {mode!r}")
        known = self.metrics and set(self.metrics) <= set(allowed)
        _require(self, known, f"metrics must be some of {', '.join(allowed)}")
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(self.metrics)))
        _require(self, self.tp_instructions, "tp_instructions may not be empty")
        _require(self, mode != "full_matrix" or self.tn_instructions, "full_matrix needs tn_instructions")
        filled = all(text.strip() for text in (*self.tp_instructions, *self.tn_instructions))
        _require(self, filled, "instructions may not be blank; remove the empty ones")

    def ambiguity(self) -> str:
        wanted = {_plain(text) for text in self.tp_instructions}
        unwanted = self.tn_instructions if self.evaluation_mode == "full_matrix" else ()
        both = [text for text in unwanted if _plain(text) in wanted]
        if not both:
            return ""
        return f"trait {self.name!r}: {both[0]!r} is both a TP and a TN instruction; remove one of the two"


@frozen(kw_only=True)
class AgenticRubricTrait(ScoredTrait):
    """A quality that an agent investigates, in the answer's trace, in its workspace, or in both."""

    type_name: ClassVar[str] = "agentic"
    list_name: ClassVar[str] = "agentic_traits"
    higher_is_better: bool | None = field(validator=_direction)
    context_mode: Literal["workspace_only", "trace_and_workspace", "trace_only"] = "trace_and_workspace"
    materialize_trace: bool = field(default=False, validator=_switch)
    persist_trace: bool = field(default=False, validator=_switch)
    """Whether the trace's file is kept with the result, where some trait of the item has it written."""
    max_turns: int = field(default=15, validator=_positive)
    timeout_seconds: int = field(default=120, validator=_positive)
    model_override: Any = None
    """A `ModelConfig` that investigates instead of the parsing model."""

    @higher_is_better.default
    def _default_direction(self) -> bool | None:
        return None if isinstance(self.kind, TemplateKind) else True

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        _require(self, self.description, "an agentic trait needs a description")
        known = self.context_mode in ("workspace_only", "trace_and_workspace", "trace_only")
        _require(self, known, f"unknown context_mode {self.context_mode!r}")
        has_trace = not self.materialize_trace or self.context_mode != "workspace_only"
        _require(self, has_trace, "materialize_trace needs a context_mode that includes the trace")
        plain_kind = not isinstance(self.kind, TemplateKind) or self.higher_is_better is None
        _require(self, plain_kind, "a template kind has no direction; leave higher_is_better out")


Trait = LLMRubricTrait | RegexRubricTrait | CallableRubricTrait | MetricRubricTrait | AgenticRubricTrait
"""The published types. Code that also serves those of other packages takes a `RubricTrait`."""
