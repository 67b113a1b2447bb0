"""Strategies for the rubric part of results: scores of every type and kind, and traits without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_vocabulary.rubric_part import RubricPart
from karenina_vocabulary.trait_scale import MISSING_LABEL

from .values import JSON, NAME, SHARE, SWITCH

__all__ = ["rubric_parts"]

TYPES = ("llm", "regex", "callable", "metric", "agentic")
CLASSES = ["poor", "fair", "good"]
COUNT = st.integers(0, 9)
SKIPPED = "the answer does not speak of it"


@frozen
class _Trait:
    """One trait of one item. `score` is what it would be if the state were `ok`."""

    type: str
    scale: Mapping[str, Any]
    score: Any
    state: str
    origin: str

    @property
    def kind(self) -> Any:
        return self.scale.get("kind")

    def entries(self, name: str) -> dict[str, Any]:
        """What it adds to the table of its type."""
        if self.state == "skipped":
            return {}
        if self.state != "ok":
            return {name: -1 if self.kind == "literal" and self.type == "llm" else None}
        if self.kind == "template":
            return {f"{name}.{key}": value for key, value in self.score.items()}
        return {name: self.score}

    @property
    def label(self) -> str | None:
        if self.kind != "literal" or self.state == "skipped":
            return None
        return CLASSES[self.score] if self.state == "ok" else MISSING_LABEL


def _trait(types: str, scale: Mapping[str, Any], scores: SearchStrategy[Any]) -> SearchStrategy[_Trait]:
    states = st.sampled_from(["ok", "ok", "ok", "invalid", "missing", "error", "skipped"])
    origins = st.sampled_from(["global", "question_specific"])
    return st.builds(_Trait, st.sampled_from(types.split()), st.just(scale), scores, states, origins)


TRAIT = st.one_of(
    _trait("llm callable agentic", {"kind": "boolean"}, SWITCH),
    _trait("regex", {}, SWITCH),
    _trait("llm agentic", {"kind": "score", "min": -1, "max": 5}, st.integers(-1, 5)),
    _trait("callable", {"kind": "score", "min": 0, "max": 1}, st.floats(0, 1) | st.integers(0, 1)),
    _trait("llm callable agentic", {"kind": "literal", "classes": CLASSES}, st.integers(0, 2)),
    _trait("llm agentic", {"kind": "template"}, st.dictionaries(NAME, JSON, min_size=1, max_size=3)),
    _trait("metric", {}, st.fixed_dictionaries({"tp": COUNT, "fn": COUNT, "fp": COUNT, "f1": SHARE, "recall": SHARE})),
    _trait("citations", {}, JSON.filter(lambda value: value is not None)),
)
"""Of every type and kind; `citations` is a type of another package."""


def _part(traits: Mapping[str, _Trait]) -> RubricPart:
    """As the stages of rubrics leave it."""
    tables: dict[str, dict[str, Any]] = {type_name: {} for type_name in TYPES}
    for name, trait in traits.items():
        tables.setdefault(trait.type, {}).update(trait.entries(name))
    labels = {name: (trait.type, trait.label) for name, trait in traits.items() if trait.label is not None}
    published: dict[str, Any] = {f"{type_name}_trait_scores": tables.pop(type_name) for type_name in TYPES}
    return RubricPart(
        rubric_evaluation_performed=True,
        **published,
        extra_trait_scores=tables,
        llm_trait_labels={name: label for name, (type_name, label) in labels.items() if type_name == "llm"},
        trait_details={name: {"label": label} for name, (type_name, label) in labels.items() if type_name != "llm"},
        trait_scales={name: {"type": t.type, "higher_is_better": True, **t.scale} for name, t in traits.items()},
        trait_states={n: {"state": t.state, "reason": "" if t.state == "ok" else "why"} for n, t in traits.items()},
        trait_provenance={name: trait.origin for name, trait in traits.items()},
        dynamic_rubric_skipped_traits={name: SKIPPED for name, trait in traits.items() if trait.state == "skipped"},
    )


SCORES = st.dictionaries(NAME, TRAIT, max_size=5).map(_part)


def rubric_parts() -> SearchStrategy[RubricPart]:
    """What became of up to five traits of any type and kind: scored, failed or skipped, and in one consistent story."""
    return SCORES
