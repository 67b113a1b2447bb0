"""What traits have in common: a name, and for scored ones a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from attrs import field, frozen

from . import checks
from .template_kind import TemplateKind, as_kind, check_fields

__all__ = ["RubricTrait", "ScoreKind", "ScoredTrait"]

ScoreKind = Literal["boolean", "score", "literal"]
MOST_CLASSES = 20


@frozen(kw_only=True)
class RubricTrait:
    """What every trait has. A trait type of another package derives a frozen attrs class from it.

    Such a class sets `type_name`, the name of its evaluator; its traits are kept in `Rubric.extra_traits`.
    """

    type_name: ClassVar[str] = ""
    """The name of the evaluator that scores it: `llm`, `regex`, `callable`, `metric`, `agentic`, or a package's own."""
    list_name: ClassVar[str] = "extra_traits"
    """The list of a rubric that it is kept in."""
    name: str = field()
    description: str | None = field(default=None, validator=checks.text)
    summary: str | None = field(default=None, validator=checks.text)
    """A short label of the concept, used to ask whether it is present in an answer at all."""

    @name.validator
    def _check_name(self, _: object, value: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"a trait needs a name, not {value!r}")
        if "." in value:
            raise ValueError(
                f"trait {value!r}: a name may not contain '.', which separates the fields of template kinds"
            )

    @property
    def usable(self) -> bool:
        """Whether an evaluator could score it; a callable trait whose code is missing is not usable."""
        return True

    def ambiguity(self) -> str:
        """Why nobody could score it consistently, and what to do about it; empty where there is no reason.

        A file may hold such a trait. A run that would score it is refused before any call.
        """
        return ""

    def scale(self) -> dict[str, Any]:
        """What its score means, as plain data that is kept beside the score.

        Always `type` and `higher_is_better` (True, False, or None). A class may add `kind`: `boolean` for True or
        False, `score` for a number from `min` to `max`, `literal` for the position of one of the `classes` (a list of
        names). A score that is not on the scale that is stated here is invalid. Without a `kind` any plain data is a
        score; where there are `min` and `max`, it is a number between them.
        """
        return {"type": self.type_name, "higher_is_better": getattr(self, "higher_is_better", None)}


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
                what = f"classes {alike[0]!r} and {name!r} cannot be told apart"
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
