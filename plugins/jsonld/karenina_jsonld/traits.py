"""Rubric traits as ratings, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from karenina_core.model.rubric import (
    TRAIT_LISTS,
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
    Rubric,
    TemplateKind,
    Trait,
)

from . import values
from .nodes import identical, merged, merged_properties, properties, property_value
from .vocabulary import PREFIX, Scope, rating_type

__all__ = ["encode_rating", "merged_ratings", "read_fields", "read_rating", "scope_of"]


@frozen
class _Part:
    """A property of a rating that holds the trait's field of the same name."""

    name: str
    read: Callable[[str, Any], Any]
    optional: bool = False
    """Written only where it is set."""


_SUMMARY = _Part("summary", values.text, optional=True)
_BOUNDS = (_Part("min_score", values.whole, optional=True), _Part("max_score", values.whole, optional=True))
_CLASSES = _Part("classes", values.classes, optional=True)
# Present without a value, it says that the trait has no direction; absent, that the default holds.
_DIRECTION = _Part("higher_is_better", lambda name, value: None if value is None else values.boolean(name, value))

_PARTS: Mapping[type[Trait], tuple[_Part, ...]] = {
    LLMRubricTrait: (
        _Part("kind", values.kind),
        _Part("deep_judgment_enabled", values.boolean),
        _Part("deep_judgment_excerpt_enabled", values.boolean),
        _Part("deep_judgment_search_enabled", values.boolean),
        _Part("deep_judgment_max_excerpts", values.whole, optional=True),
        _Part("deep_judgment_fuzzy_match_threshold", values.number, optional=True),
        _Part("deep_judgment_excerpt_retry_attempts", values.whole, optional=True),
        _DIRECTION,
        _SUMMARY,
        *_BOUNDS,
        _CLASSES,
        _Part("include_ground_truth", values.boolean, optional=True),
    ),
    RegexRubricTrait: (
        _Part("pattern", values.text),
        _Part("case_sensitive", values.boolean),
        _Part("invert_result", values.boolean),
        _DIRECTION,
        _SUMMARY,
    ),
    CallableRubricTrait: (
        _Part("callable_code", values.code, optional=True),
        _Part("kind", values.kind),
        _Part("invert_result", values.boolean),
        _DIRECTION,
        *_BOUNDS,
        _SUMMARY,
        _CLASSES,
    ),
    MetricRubricTrait: (
        _Part("metrics", values.texts),
        _Part("repeated_extraction", values.boolean),
        _Part("evaluation_mode", values.text),
        _DIRECTION,
        _Part("tp_instructions", values.texts, optional=True),
        _Part("tn_instructions", values.texts, optional=True),
        _SUMMARY,
    ),
    AgenticRubricTrait: (
        _Part("kind", values.kind),
        _DIRECTION,
        _Part("context_mode", values.text),
        _Part("materialize_trace", values.boolean),
        _Part("persist_trace", values.boolean),
        _Part("max_turns", values.whole),
        _Part("timeout_seconds", values.whole),
        _CLASSES,
        _Part("model_override", values.model, optional=True),
        _SUMMARY,
        *_BOUNDS,
    ),
}


def read_rating(rating: Mapping[str, Any], cls: type[Trait]) -> Trait:
    """The trait that a rating describes. Raises ValueError when it is not a valid one."""
    bounds = []
    for key in ("worstRating", "bestRating"):
        value = rating.get(key)
        bounds.append(None if value is None else values.number(key, value))
    return read_fields(cls, {**properties(rating), **_labels(rating)}, bounds[0], bounds[1])


def read_fields(cls: type[Trait], entry: Mapping[str, Any], worst: float | None, best: float | None) -> Trait:
    """A trait from its fields by name. `worst` and `best` are the ends of its rating, where the file gives them."""
    arguments: dict[str, Any] = _labels(entry)
    for key in ("name", "description"):
        if arguments.get(key) is not None:
            arguments[key] = values.text(key, arguments[key])
    for part in _PARTS[cls]:
        if part.name in entry and (entry[part.name] is not None or part is _DIRECTION):
            arguments[part.name] = part.read(part.name, entry[part.name])
    if any(part.name == "kind" for part in _PARTS[cls]):
        _complete_scale(cls, arguments, worst, best)
    elif cls is RegexRubricTrait:
        arguments.setdefault("pattern", "")
    else:
        arguments.setdefault("metrics", ())
    return cls(**arguments)


def _labels(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": entry.get("name"), "description": entry.get("description")}


def _complete_scale(cls: type[Trait], arguments: dict[str, Any], worst: float | None, best: float | None) -> None:
    """Older files say kind and bounds only through the ends of the rating."""
    if "kind" not in arguments:
        if worst is not None and best is not None:
            arguments["kind"] = "boolean" if (worst, best) == (0, 1) else "score"
        elif cls is LLMRubricTrait:
            raise ValueError("the kind is missing: add a property kind, or bestRating and worstRating")
        else:
            arguments["kind"] = "boolean"
    kind = arguments["kind"]
    if kind == "score":
        for key, end, value in (("min_score", "worstRating", worst), ("max_score", "bestRating", best)):
            if key not in arguments and value is not None:
                arguments[key] = values.whole(end, value)
    elif isinstance(kind, dict) and cls is not CallableRubricTrait:
        arguments["higher_is_better"] = None
        arguments.pop("deep_judgment_enabled", None)


def encode_rating(trait: Trait, scope: Scope) -> dict[str, Any]:
    """The rating of a trait, in canonical form. Raises ValueError for values that JSON cannot hold."""
    worst, best = _scale(trait)
    node = {"@type": "Rating", "name": trait.name}
    if trait.description is not None:
        node["description"] = trait.description
    written = [
        property_value(part.name, values.written(getattr(trait, part.name)))
        for part in _PARTS[_class_of(trait)]
        if not (part.optional and _unset(getattr(trait, part.name)))
    ]
    kind = {"additionalType": rating_type(trait, scope), "additionalProperty": written}
    return node | {"bestRating": float(best), "worstRating": float(worst)} | kind


def _class_of(trait: Trait) -> type[Trait]:
    return next(cls for cls in _PARTS if isinstance(trait, cls))


def _unset(value: Any) -> bool:
    return value is None or value is False or value == ()


def _scale(trait: Trait) -> tuple[int, int]:
    if isinstance(trait, RegexRubricTrait | MetricRubricTrait) or trait.kind == "boolean":
        return 0, 1
    if isinstance(trait.kind, TemplateKind):
        return 0, 0
    return 1 if trait.min_score is None else trait.min_score, 5 if trait.max_score is None else trait.max_score


def merged_ratings(
    nodes: Sequence[dict[str, Any]], read: Sequence[Trait | None], rubric: Rubric | None, scope: Scope
) -> list[dict[str, Any]]:
    """The ratings of `rubric`, made from the file's `nodes`, of which `read` are the traits.

    Unchanged ratings and those that are no static trait (`None` in `read`) stay as they are, changed ones keep what
    karenina does not know, new ones are appended.
    """
    wanted = {trait.name: trait for trait in rubric or ()}
    pairs: list[tuple[Trait | None, dict[str, Any]]] = []
    for node, old in zip(nodes, read, strict=True):
        if old is None:
            pairs.append((None, node))
        elif new := wanted.pop(old.name, None):
            pairs.append((new, _merged_rating(node, old, new, scope)))
    pairs += [(trait, encode_rating(trait, scope)) for trait in wanted.values()]
    return _in_order(pairs, rubric)


def _merged_rating(node: dict[str, Any], old: Trait, new: Trait, scope: Scope) -> dict[str, Any]:
    if identical(old, new):
        return node
    before, after = encode_rating(old, scope), encode_rating(new, scope)
    result = merged(node, before, after)
    # All of them, so that nothing is left to be inferred from values that have changed.
    result["additionalProperty"] = merged_properties(
        result.get("additionalProperty") or [], before["additionalProperty"], after["additionalProperty"], complete=True
    )
    return result


def _in_order(pairs: list[tuple[Trait | None, dict[str, Any]]], rubric: Rubric | None) -> list[dict[str, Any]]:
    """Within one type of trait the order is the rubric's; each type keeps its places in the list."""
    result = [node for _, node in pairs]
    for list_name in TRAIT_LISTS:
        places = [index for index, (trait, _) in enumerate(pairs) if trait is not None and trait.list_name == list_name]
        nodes = {trait.name: node for trait, node in pairs if trait is not None}
        for place, trait in zip(places, getattr(rubric, list_name, ()), strict=True):
            result[place] = nodes[trait.name]
    return result


def scope_of(additional_type: Any) -> tuple[str | None, str]:
    """Scope and suffix of an `additionalType`, with or without prefix; no scope for a type of another vocabulary."""
    name = additional_type.removeprefix(PREFIX) if isinstance(additional_type, str) else ""
    for scope in ("Global", "QuestionSpecific"):
        if name.startswith(scope):
            return scope, name.removeprefix(scope)
    return None, name
