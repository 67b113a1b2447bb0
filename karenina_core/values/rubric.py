"""Rubrics: traits by type, for a question or for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

from attrs import evolve, field, frozen

TRAIT_LISTS = ("llm_traits", "regex_traits", "callable_traits", "metric_traits", "agentic_traits", "extra_traits")
Provenance = Literal["global", "question_specific", "dynamic"]


def _text(trait: Any, attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"trait {trait.name!r}: {attribute.name} must be a text or None, not {value!r}")


@frozen(kw_only=True)
class RubricTrait:
    """What every trait has. A trait type of another package derives a frozen attrs class from it.

    Such a class sets `type_name`, the name of its evaluator; its traits are kept in `Rubric.extra_traits`.
    """

    type_name: ClassVar[str] = ""
    """The name of the evaluator that scores it."""
    list_name: ClassVar[str] = "extra_traits"
    """The list of a rubric that it is kept in."""
    name: str = field()
    description: str | None = field(default=None, validator=_text)
    summary: str | None = field(default=None, validator=_text)
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
        """Why no judge could score it consistently, and what to do about it; empty where there is no reason.

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


def _traits(value: Iterable[RubricTrait]) -> tuple[RubricTrait, ...]:
    return tuple(value)


@frozen(kw_only=True)
class Rubric:
    """Traits by type. Names are unique across all types."""

    llm_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    regex_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    callable_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    metric_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    agentic_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    extra_traits: tuple[RubricTrait, ...] = field(default=(), converter=_traits)
    """Traits of types that other packages bring."""
    provenance: Mapping[str, Provenance] = field(factory=dict, eq=False, repr=False)
    """Where a trait came from, by name, in the rubric that is evaluated for one question."""

    def __attrs_post_init__(self) -> None:
        for list_name in TRAIT_LISTS:
            for trait in getattr(self, list_name):
                if not isinstance(trait, RubricTrait):
                    raise ValueError(f"rubric: {list_name} holds {trait!r}, which is not a rubric trait")
                if trait.list_name != list_name:
                    raise ValueError(f"rubric: {trait.name!r} is in {list_name}; it belongs in {trait.list_name}")
                if not trait.type_name:
                    raise ValueError(f"rubric: the class of {trait.name!r}, {type(trait).__name__}, sets no type_name")
        if unknown := sorted(set(self.provenance.values()) - set(get_args(Provenance))):
            known = ", ".join(get_args(Provenance))
            raise ValueError(f"rubric: provenance is one of {known}, not {unknown[0]!r}")
        if twice := sorted(name for name, count in Counter(self.names()).items() if count > 1):
            raise ValueError(f"rubric: these trait names occur more than once: {', '.join(twice)}")

    def __iter__(self) -> Iterator[RubricTrait]:
        for list_name in TRAIT_LISTS:
            yield from getattr(self, list_name)

    def __len__(self) -> int:
        return sum(len(getattr(self, list_name)) for list_name in TRAIT_LISTS)

    @property
    def usable(self) -> Self:
        """The same rubric without the traits that nothing could score."""
        return self.only(trait.name for trait in self if trait.usable)

    @classmethod
    def from_traits(cls, traits: Iterable[RubricTrait]) -> Self:
        """Sort a flat list of traits by type."""
        lists: dict[str, Any] = {name: [] for name in TRAIT_LISTS}
        for trait in traits:
            lists[trait.list_name].append(trait)
        return cls(**lists)

    @classmethod
    def merged(cls, rubrics: Iterable[Rubric]) -> Rubric:
        """The traits of all of them, with their provenance; a name that two of them have is a ValueError that names
        every clash as `type:name`.
        """
        parts = tuple(rubrics)
        had = Counter(name for part in parts for name in part.names())
        if clashes := {f"{trait.type_name}:{trait.name}" for part in parts for trait in part if had[trait.name] > 1}:
            raise ValueError(f"rubrics clash on {', '.join(sorted(clashes))}; rename the trait in one of them")
        lists: dict[str, Any] = {name: [t for part in parts for t in getattr(part, name)] for name in TRAIT_LISTS}
        return Rubric(**lists, provenance={k: v for part in parts for k, v in part.provenance.items()})

    def merge(self, other: Rubric) -> Rubric:
        """Both rubrics' traits. Raises ValueError like `merged`."""
        return Rubric.merged([self, other])

    def only(self, names: Iterable[str]) -> Self:
        """The same rubric with the traits of these names; names that it does not have are ignored."""
        wanted: Collection[str] = set(names)
        lists: dict[str, Any] = {n: tuple(t for t in getattr(self, n) if t.name in wanted) for n in TRAIT_LISTS}
        return evolve(self, **lists, provenance={k: v for k, v in self.provenance.items() if k in wanted})

    def labelled(self, source: Provenance) -> Self:
        """The same rubric, all its traits marked as coming from there."""
        return evolve(self, provenance=dict.fromkeys(self.names(), source))

    @property
    def dynamic(self) -> frozenset[str]:
        """Names of the traits that are evaluated only where their concept is present in the answer."""
        return frozenset(name for name, source in self.provenance.items() if source == "dynamic")

    def names(self) -> Sequence[str]:
        return [trait.name for trait in self]


@frozen(kw_only=True)
class DynamicRubric(Rubric):
    """Traits that are evaluated only where the answer speaks of what they are about.

    Whether it does, the judge says from a trait's `summary`, or its `description` where there is none.
    """

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if silent := [t.name for t in self if not any((text or "").strip() for text in (t.summary, t.description))]:
            raise ValueError(
                f"dynamic rubric: these traits need a summary, or a description: {', '.join(sorted(silent))}"
            )
