"""From scores to the fields of a result. A trait that failed is there with its state, and never left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_judging.scoring import MISSING_LABEL, error_label
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.rubric_part import LABEL
from karenina_vocabulary.template_kind import TemplateKind
from karenina_vocabulary.traits import LLMRubricTrait, ScoredTrait

from karenina_core.values.rubric import RubricTrait

from .soundness import scale_of

__all__ = ["artifacts", "entries", "score_fields"]

PUBLISHED = ("llm", "regex", "callable", "metric")
CONFUSION = "confusion"
NO_CLASS = -1
"""How results write that a literal trait has no class."""


def score_fields(traits: Sequence[RubricTrait], scores: Mapping[str, TraitScore]) -> dict[str, Any]:
    """Scores, labels, lists, details, scales and states: result fields by name.

    The label of a trait that is not of the type `llm` is one of its details. Traits that were skipped have a scale and
    a state, and are in none of the tables of scores.
    """
    tables: dict[str, dict[str, Any]] = {type_name: {} for type_name in PUBLISHED}
    labels: dict[str, str] = {}
    confusion: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for trait in traits:
        score = scores[trait.name]
        more = dict(score.details)
        if trait.type_name != "llm" and score.label is not None:
            more.setdefault(LABEL, score.label)
        if trait.type_name == "metric" and CONFUSION in more:
            confusion[trait.name] = more.pop(CONFUSION)
        if more:
            details[trait.name] = more
        if score.state == "skipped":
            continue
        tables.setdefault(trait.type_name, {}).update(entries(trait, score))
        if isinstance(trait, LLMRubricTrait) and trait.kind == "literal":
            labels[trait.name] = _label(trait, score)
    return {
        **{f"{type_name}_trait_scores": tables.pop(type_name) for type_name in PUBLISHED},
        "extra_trait_scores": tables,
        "llm_trait_labels": labels,
        "metric_trait_confusion_lists": confusion,
        "trait_details": details,
        "trait_scales": {trait.name: scale_of(trait)[0] for trait in traits},
        "trait_states": {trait.name: scores[trait.name].state_row() for trait in traits},
    }


def entries(trait: RubricTrait, score: TraitScore) -> dict[str, Any]:
    """What a trait adds to the table of its type: one entry, or one per field of a template kind that was filled."""
    published = isinstance(trait, ScoredTrait) and trait.type_name in PUBLISHED
    if score.state != "ok":
        return {trait.name: NO_CLASS if published and getattr(trait, "kind", "") == "literal" else None}
    if published and isinstance(getattr(trait, "kind", None), TemplateKind):
        return {f"{trait.name}.{name}": value for name, value in score.value.items()}
    return {trait.name: score.value}


def _label(trait: ScoredTrait, score: TraitScore) -> str:
    if score.state == "ok":
        names = trait.get_class_names()
        return names[int(score.value)]
    if score.state == "missing":
        return MISSING_LABEL
    if score.state == "invalid" and score.label is not None:
        return score.label
    return error_label(score.reason)


def artifacts(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What later stages are handed: every score but the metrics in one table, and what goes with them."""
    flat = [fields[f"{type_name}_trait_scores"] for type_name in PUBLISHED if type_name != "metric"]
    flat += fields["extra_trait_scores"].values()
    yield ArtifactKeys.RUBRIC_RESULT, {name: value for table in flat for name, value in table.items()}
    yield ArtifactKeys.LLM_TRAIT_LABELS, fields["llm_trait_labels"]
    yield ArtifactKeys.METRIC_CONFUSION_LISTS, fields["metric_trait_confusion_lists"]
    yield ArtifactKeys.METRIC_RESULTS, fields["metric_trait_scores"]
