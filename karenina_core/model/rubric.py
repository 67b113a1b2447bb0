"""Rubrics: traits by type, for a question or for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, get_args

from attrs import evolve, field, frozen

from .trait_base import RubricTrait

__all__ = ["TRAIT_LISTS", "DynamicRubric", "Provenance", "Rubric"]

TRAIT_LISTS = ("llm_traits", "regex_traits", "callable_traits", "metric_traits", "agentic_traits", "extra_traits")
Provenance = Literal["global", "question_specific", "dynamic"]


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
                _check_list(trait, list_name)
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


def _check_list(trait: Any, list_name: str) -> None:
    if not isinstance(trait, RubricTrait):
        raise ValueError(f"rubric: {list_name} holds {trait!r}, which is no rubric trait")
    if trait.list_name != list_name:
        raise ValueError(f"rubric: {trait.name!r} is in {list_name}; it belongs into {trait.list_name}")
    if not trait.type_name:
        raise ValueError(f"rubric: the class of {trait.name!r}, {type(trait).__name__}, sets no type_name")
