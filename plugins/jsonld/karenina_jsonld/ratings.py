"""The traits of a list of ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karenina_core.model.rubric import RegexRubricTrait, Rubric, Trait

from .nodes import Findings, objects, properties
from .traits import read_rating, scope_of
from .values import unknown_settings
from .vocabulary import DYNAMIC, TRAIT_TYPES, Scope

__all__ = ["read_ratings", "rubric_of"]


def rubric_of(traits: Iterable[Trait | None]) -> Rubric | None:
    """The traits as a rubric, None where there are none. Raises ValueError for a name that occurs twice."""
    found = [trait for trait in traits if trait is not None]
    return Rubric.from_traits(found) if found else None


def read_ratings(node: Mapping[str, Any], scope: Scope, where: str, findings: Findings) -> list[Trait | None]:
    """For every rating of the node its trait, or None with a warning or a problem."""
    ratings = findings.attempt(where, objects, node, "rating") or []
    traits: list[Trait | None] = []
    for index, rating in enumerate(ratings):
        label = (
            f"{where}.rating[{index}] (trait {rating.get('name')!r})"
            if rating.get("name")
            else f"{where}.rating[{index}]"
        )
        cls = _class_of(rating.get("additionalType"), scope, label, findings)
        traits.append(None if cls is None else findings.attempt(label, read_rating, rating, cls))
        if traits[-1] is not None:
            findings.warnings.extend(f"{label}: {remark}" for remark in _remarks(traits[-1], rating))
    return traits


def _class_of(additional_type: Any, scope: Scope, label: str, findings: Findings) -> type[Trait] | None:
    found, suffix = scope_of(additional_type)
    if found is not None and suffix == DYNAMIC:
        findings.warnings.append(f"{label}: dynamic rubrics are not used yet; the trait is kept in the file")
    elif found is None or suffix not in TRAIT_TYPES:
        known = ", ".join(f"{scope}{name}" for name in TRAIT_TYPES)
        findings.warnings.append(
            f"{label}: additionalType {additional_type!r} is unknown; it is kept but not used. Known are {known}"
        )
    elif found == scope:
        return TRAIT_TYPES[suffix]
    elif scope == "QuestionSpecific":
        findings.warnings.append(
            f"{label}: {additional_type} in a question is kept but not used; write QuestionSpecific{suffix} to use it"
        )
    else:
        findings.problems.append(
            f"{label}: {additional_type} cannot apply to all questions; write Global{suffix} or move it to its question"
        )
    return None


def _remarks(trait: Trait, rating: Mapping[str, Any]) -> list[str]:
    """What the author of a usable trait should know."""
    override = properties(rating).get("model_override")
    unknown = unknown_settings(override) if isinstance(override, dict) else []
    remarks = [f"model_override has settings that are not used: {', '.join(unknown)}"] if unknown else []
    if isinstance(trait, RegexRubricTrait) and not trait.pattern:
        remarks.append("it has no pattern, so it holds for every answer; add a property pattern")
    return remarks
