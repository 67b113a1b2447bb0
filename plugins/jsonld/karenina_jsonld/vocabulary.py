"""The names of the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import (
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
    Trait,
)

from karenina_core.values.rubric import RubricTrait

Scope = Literal["Global", "QuestionSpecific"]
PREFIX = "karenina:"
CUSTOM = "custom_"
DECLARATIVE = "karenina-template"
FORMAT_VERSION = ("benchmark_format_version", "3.0.0-jsonld")
SECRET_KEYS = ("endpoint_api_key", "anthropic_api_key")
DYNAMIC = "DynamicRubricTrait"
DYNAMIC_TYPE = "dynamic_trait_type"
"""The property that names the type of a dynamic trait."""

TRAIT_TYPES: Mapping[str, type[Trait]] = {
    "RubricTrait": LLMRubricTrait,
    "LLMRubricTrait": LLMRubricTrait,
    "RegexTrait": RegexRubricTrait,
    "CallableTrait": CallableRubricTrait,
    "MetricRubricTrait": MetricRubricTrait,
    "AgenticRubricTrait": AgenticRubricTrait,
}
"""What follows the scope in a rating's `additionalType`."""
PUBLISHED: Mapping[str, type[Trait]] = {cls.type_name: cls for cls in TRAIT_TYPES.values()}

LEGACY_LISTS: Mapping[str, type[Trait]] = {
    "global_regex_rubric_traits": RegexRubricTrait,
    "global_callable_rubric_traits": CallableRubricTrait,
    "global_metric_rubric_traits": MetricRubricTrait,
}
"""Root properties in which older files keep global traits."""
# Files from before scenarios do not define it, and `@vocab` gives it the same meaning.
OPTIONAL_TERMS = {"hasPart"}


def _set(name: str) -> dict[str, str]:
    return {"@id": name, "@container": "@set"}


CONTEXT: Mapping[str, Any] = {
    "@version": 1.1,
    "@vocab": "https://schema.org/",
    "karenina": "urn:karenina:vocab:",
    "dataFeedElement": _set("dataFeedElement"),
    "item": {"@id": "item", "@type": "@id"},
    "acceptedAnswer": {"@id": "acceptedAnswer", "@type": "@id"},
    "rating": _set("contentRating"),
    "additionalProperty": _set("additionalProperty"),
    "hasPart": _set("hasPart"),
    "keywords": _set("keywords"),
}


def completed_context(context: Any) -> Any:
    """The context to write: the file's own, with the terms that it lacks. A context given by address stays as it is."""
    if context is None:
        return dict(CONTEXT)
    if not isinstance(context, dict) or not (set(CONTEXT) - OPTIONAL_TERMS - set(context)):
        return context
    return context | {term: value for term, value in CONTEXT.items() if term not in context}


def published(trait: RubricTrait) -> Trait | None:
    """The trait, where it is exactly of a published class; a subclass has fields that the format does not know."""
    own = PUBLISHED.get(trait.type_name)
    return trait if isinstance(trait, Trait) and type(trait) is own else None


def suffix_of(trait: Trait) -> str:
    """What follows the scope in the `additionalType` of a static trait's rating."""
    if isinstance(trait, LLMRubricTrait):
        simple = not isinstance(trait.kind, TemplateKind) and trait.kind != "literal"
        return "RubricTrait" if simple else "LLMRubricTrait"
    return next(suffix for suffix, cls in TRAIT_TYPES.items() if isinstance(trait, cls))


def scope_of(additional_type: Any) -> tuple[str | None, str]:
    """Scope and suffix of an `additionalType`, with or without prefix; no scope for a type of another vocabulary."""
    name = additional_type.removeprefix(PREFIX) if isinstance(additional_type, str) else ""
    for scope in ("Global", "QuestionSpecific"):
        if name.startswith(scope):
            return scope, name.removeprefix(scope)
    return None, name
