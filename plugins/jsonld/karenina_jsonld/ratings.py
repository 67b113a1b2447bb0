"""Rubrics as lists of ratings, and back; the ratings of a file merged with the changes of its rubrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import frozen
from karenina_vocabulary.traits import LLMRubricTrait, RegexRubricTrait, Trait

from karenina_core.values.benchmark import MissingTrait
from karenina_core.values.rubric import DynamicRubric, Rubric, RubricTrait

from . import values
from .nodes import Findings, identical, merged, merged_properties, objects, properties, property_value
from .others import Evaluator, OtherTypes
from .traits import read_rating, scale, written_fields
from .values import unknown_settings
from .vocabulary import DYNAMIC, DYNAMIC_TYPE, PREFIX, PUBLISHED, TRAIT_TYPES, Scope, published, scope_of, suffix_of

Node = dict[str, Any]
R = TypeVar("R", Rubric, DynamicRubric)


@frozen
class Rated:
    """A trait that has a rating, and whether it belongs to the dynamic rubric."""

    trait: RubricTrait
    dynamic: bool = False

    @property
    def key(self) -> tuple[bool, str]:
        """What it is known by: a name may occur once in each of the two rubrics."""
        return self.dynamic, self.trait.name


def rated(static: Iterable[RubricTrait] | None, dynamic: Iterable[RubricTrait] | None) -> list[Rated]:
    """The traits of both rubrics that a benchmark or a question has."""
    return [*(Rated(trait) for trait in static or ()), *(Rated(trait, dynamic=True) for trait in dynamic or ())]


def rubric_of(cls: type[R], found: Iterable[Rated | None]) -> R | None:
    """The static or the dynamic traits as a rubric, None where there are none. Raises ValueError for a name that occurs
    twice."""
    dynamic = issubclass(cls, DynamicRubric)
    traits = [one.trait for one in found if one is not None and one.dynamic == dynamic]
    return cls.from_traits(traits) if traits else None


@frozen
class Unused:
    """Why a rating is kept and not used."""

    why: str
    missing: bool = False
    """Whether it is a trait that another package could read."""


def read_ratings(
    node: Mapping[str, Any],
    scope: Scope,
    where: str,
    findings: Findings,
    others: OtherTypes,
    question_id: str | None = None,
) -> list[Rated | None]:
    """For every rating of the node its trait, or None with a warning or a problem."""
    ratings = findings.attempt(where, objects, node, "rating") or []
    found: list[Rated | None] = []
    for index, rating in enumerate(ratings):
        name = f" (trait {rating.get('name')!r})" if rating.get("name") else ""
        label = f"{where}.rating[{index}]{name}"
        way = findings.attempt(label, _way, rating, scope, others)
        if way is None or isinstance(way, Unused):
            found.append(None)
            if way is not None:
                reason = f"{label}: {way.why}"
                about = MissingTrait(name=str(rating.get("name")), question_id=question_id, reason=reason)
                findings.warnings.append(reason)
                findings.missing.extend([about] * way.missing)
            continue
        one = findings.attempt(label, _read, rating, scope, way)
        found.append(one)
        if one is not None:
            others.used.update([way.name] if isinstance(way, Evaluator) else [])
            findings.warnings.extend(f"{label}: {warning}" for warning in _warnings(one, rating, way))
    return found


def _way(rating: Mapping[str, Any], scope: Scope, others: OtherTypes) -> type[Trait] | Evaluator | Unused:
    """What reads a rating: a published class, or an evaluator."""
    additional_type = rating.get("additionalType")
    found, suffix = scope_of(additional_type)
    if found is None:
        return Unused(_unknown(f"additionalType {additional_type!r}", scope))
    if suffix == DYNAMIC:
        way = _dynamic_way(rating, others)
    elif suffix in TRAIT_TYPES:
        way = TRAIT_TYPES[suffix]
    else:
        try:
            way = others.of_file_type(suffix) or Unused(
                _unknown(f"additionalType 'karenina:{scope}{suffix}'", scope, others), missing=True
            )
        except ValueError as error:
            way = Unused(f"it is kept but not used: {error}", missing=True)
    misplaced = scope == "QuestionSpecific" and found != scope
    if misplaced and not isinstance(way, Unused):
        return Unused(f"{additional_type} in a question is kept but not used; write QuestionSpecific{suffix} to use it")
    return way


def _unknown(what: str, scope: Scope, others: OtherTypes | None = None) -> str:
    known = ", ".join(f"{scope}{name}" for name in (*TRAIT_TYPES, DYNAMIC, *(others.file_types() if others else ())))
    absent = f"; install the package that provides it.{others.absent()}" if others else ""
    return f"{what} is unknown; it is kept but not used. Known are {known}{absent}"


def _dynamic_way(rating: Mapping[str, Any], others: OtherTypes) -> type[Trait] | Evaluator | Unused:
    """Files that say nothing about the type mean a trait that a judge assesses. An unknown type is skipped with a
    warning, as the format says: such traits are scored only where an answer takes them up."""
    value = properties(rating).get(DYNAMIC_TYPE)
    name = LLMRubricTrait.type_name if value is None else values.text(DYNAMIC_TYPE, value)
    found = PUBLISHED.get(name) or others.named(name)
    if found is None:
        known = ", ".join((*PUBLISHED, *others.names))
        return Unused(
            f"{DYNAMIC_TYPE} {name!r} is unknown; the trait is kept but not used. Known are {known}; "
            f"install the package that provides it.{others.absent()}"
        )
    return found


def _read(rating: Mapping[str, Any], scope: Scope, way: type[Trait] | Evaluator) -> Rated:
    """The trait of a rating. Raises ValueError when it is not a valid one."""
    found, suffix = scope_of(rating.get("additionalType"))
    if found != scope:
        raise ValueError(
            f"{rating['additionalType']} cannot apply to all questions; write Global{suffix} or move it to its question"
        )
    dynamic = suffix == DYNAMIC
    if isinstance(way, Evaluator):
        one = Rated(way.read(_data(rating, dynamic)), dynamic)
    else:
        one = Rated(read_rating(rating, way), dynamic)
    if dynamic and not (one.trait.summary or one.trait.description or "").strip():
        raise ValueError(
            "a dynamic trait is used if an answer mentions its subject; name the subject: "
            'add a property summary, or "description": "..."'
        )
    return one


def _data(rating: Mapping[str, Any], dynamic: bool) -> dict[str, Any]:
    """A rating as an evaluator reads it."""
    found = properties(rating)
    if dynamic:
        found.pop(DYNAMIC_TYPE, None)
    return {**found, "name": rating.get("name"), "description": rating.get("description")}


def _warnings(one: Rated, rating: Mapping[str, Any], way: type[Trait] | Evaluator) -> list[str]:
    """What the author of a usable trait should know."""
    if isinstance(way, Evaluator):
        unknown = way.unknown(_data(rating, one.dynamic))
        return [f"properties that are kept but not used: {', '.join(unknown)}"] if unknown else []
    override = properties(rating).get("model_override")
    unknown = unknown_settings(override) if isinstance(override, dict) else []
    warnings = [f"model_override has settings that are not used: {', '.join(unknown)}"] if unknown else []
    if isinstance(one.trait, RegexRubricTrait) and not one.trait.pattern:
        warnings.append("it has no pattern, so it matches every answer; add a property pattern")
    return warnings


def encode_rating(one: Rated, scope: Scope, others: OtherTypes) -> dict[str, Any]:
    """The rating of a trait, in canonical form. Raises ValueError for what a file cannot hold."""
    trait = one.trait
    own = published(trait)
    ends: tuple[float, float]
    if own is not None:
        try:
            suffix, ends, written = suffix_of(own), scale(own), written_fields(own)
        except ValueError as error:
            raise ValueError(f"trait {trait.name!r}: {error}") from None
    else:
        evaluator = others.writer(trait, dynamic=one.dynamic)
        fields = evaluator.write(trait)
        low, high = fields.get("min_score"), fields.get("max_score")
        suffix = evaluator.file_type
        ends = (low if isinstance(low, int | float) else 0, high if isinstance(high, int | float) else 1)
        written = [property_value(name, value) for name, value in fields.items()]
    if one.dynamic:
        suffix = DYNAMIC
        written.append(property_value(DYNAMIC_TYPE, trait.type_name))
    node: dict[str, Any] = {"@type": "Rating", "name": trait.name}
    if trait.description is not None:
        node["description"] = trait.description
    node |= {"bestRating": float(ends[1]), "worstRating": float(ends[0])}
    return {**node, "additionalType": f"{PREFIX}{scope}{suffix}", "additionalProperty": written}


Encode = Callable[[Rated], Node]


def merged_ratings(
    nodes: Sequence[Node],
    read: Sequence[Rated | None],
    wanted: Sequence[Rated],
    encode: Encode,
) -> list[Node]:
    """The ratings of the traits that are wanted, made from the file's `nodes`, of which `read` are the traits.

    Unchanged ratings and those that are not used (`None` in `read`) stay as they are, changed ones keep what karenina
    does not know, new ones are appended.
    """
    left = {one.key: one for one in wanted}
    known = {one.key for one in read if one is not None}
    pairs: list[tuple[Rated | None, Node]] = []
    for node, old in zip(nodes, read, strict=True):
        if old is None:
            pairs.append((None, node))
            continue
        moved = (not old.dynamic, old.trait.name)  # the trait may be in the other rubric now
        new = left.pop(old.key if old.key in left or moved in known else moved, None)
        if new is not None:
            pairs.append((new, _merged_rating(node, old, new, encode)))
    pairs += [(one, encode(one)) for one in left.values()]
    result = [node for _, node in pairs]
    by_key = {trait.key: node for trait, node in pairs if trait is not None}
    places: dict[tuple[bool, str], list[int]] = {}
    for index, (trait, _) in enumerate(pairs):
        if trait is not None:
            places.setdefault(_list_of(trait), []).append(index)
    for trait in wanted:
        result[places[_list_of(trait)].pop(0)] = by_key[trait.key]
    return result


def _merged_rating(node: Node, old: Rated, new: Rated, encode: Encode) -> Node:
    if identical(old, new):
        return node
    before, after = encode(old), encode(new)
    result = merged(node, before, after)
    # All of them, so that nothing is left to be inferred from values that have changed.
    result["additionalProperty"] = merged_properties(
        result.get("additionalProperty") or [], before["additionalProperty"], after["additionalProperty"], complete=True
    )
    return result


def _list_of(one: Rated) -> tuple[bool, str]:
    return one.dynamic, one.trait.list_name
