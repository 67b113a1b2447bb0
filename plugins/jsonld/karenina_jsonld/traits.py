"""The published types of traits as parts of ratings, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import (
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
    Trait,
)

from karenina_core.values.rubric import Rubric

from . import values
from .nodes import Findings, identical, parse, properties, property_value
from .vocabulary import LEGACY_LISTS


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


def written_fields(trait: Trait) -> list[dict[str, Any]]:
    """The properties of a trait's rating, in canonical form. Raises ValueError for values that JSON cannot hold."""
    return [
        property_value(part.name, values.written(getattr(trait, part.name)))
        for part in _PARTS[type(trait)]
        if not (part.optional and _unset(getattr(trait, part.name)))
    ]


def _unset(value: Any) -> bool:
    return value is None or value is False or value == ()


def scale(trait: Trait) -> tuple[int, int]:
    """The ends of a trait's rating: the worst and the best."""
    if isinstance(trait, RegexRubricTrait | MetricRubricTrait) or trait.kind == "boolean":
        return 0, 1
    if isinstance(trait.kind, TemplateKind):
        return 0, 0
    return 1 if trait.min_score is None else trait.min_score, 5 if trait.max_score is None else trait.max_score


def legacy_traits(metadata: Mapping[str, Any], taken: set[str], findings: Findings) -> dict[str, list[Trait | None]]:
    """By property, its traits; None for one whose name a rating has already, in which case the rating is used."""
    found: dict[str, list[Trait | None]] = {}
    for name, cls in LEGACY_LISTS.items():
        traits: list[Trait | None] = []
        for index, entry in enumerate(findings.attempt(name, _entries, metadata.get(name)) or []):
            label = f"{name}[{index}] (trait {entry.get('name')!r})"
            renamed = dict(entry)
            if "invert" in renamed:
                renamed.setdefault("invert_result", renamed.pop("invert"))
            trait = findings.attempt(label, read_fields, cls, renamed, None, None)
            if trait is not None and trait.name in taken:
                findings.warnings.append(f"{label}: a rating has the same name and is used instead")
                trait = None
            traits.append(trait)
        found[name] = traits
    return found


def _entries(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        value = parse(value)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError("must be a list of traits, or one as JSON inside a text")
    return value


def untouched_lists(found: Mapping[str, list[Trait | None]], rubric: Rubric | None) -> list[str]:
    """The properties whose traits are all still in the rubric, unchanged and at the end of their list."""
    kept = []
    for name, traits in found.items():
        cls = LEGACY_LISTS[name]
        current = list(getattr(rubric, cls.list_name, ()))
        if identical(current[len(current) - len(traits) :], traits):
            kept.append(name)
    return kept
