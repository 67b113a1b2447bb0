"""From scores and the evidence of deep judgment to the fields of a result; failed traits are there with their state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_judging.scoring import MISSING_LABEL, error_label
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.rubric_config import evidence_rules
from karenina_vocabulary.rubric_part import LABEL
from karenina_vocabulary.template_kind import TemplateKind
from karenina_vocabulary.traits import LLMRubricTrait, ScoredTrait

from karenina_core import VerificationContext
from karenina_core.values.rubric import RubricTrait

from .soundness import scale_of

PUBLISHED = ("llm", "regex", "callable", "metric")
CONFUSION = "confusion"
NO_CLASS = -1
"""How results write that a literal trait has no class."""
NOTHING = {
    "stages_completed": [],
    "model_calls": 0,
    "had_excerpts": False,
    "excerpt_retry_count": 0,
    "excerpt_validation_failed": False,
}
"""The metadata of a trait of which nothing was asked before it failed."""
MOST_NAMED = 500
"""Characters of the names in one warning."""


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
    """What later stages get: every score but the metrics in one table, and what goes with them."""
    flat = [fields[f"{type_name}_trait_scores"] for type_name in PUBLISHED if type_name != "metric"]
    flat += fields["extra_trait_scores"].values()
    yield ArtifactKeys.RUBRIC_RESULT, {name: value for table in flat for name, value in table.items()}
    yield ArtifactKeys.LLM_TRAIT_LABELS, fields["llm_trait_labels"]
    yield ArtifactKeys.METRIC_CONFUSION_LISTS, fields["metric_trait_confusion_lists"]
    yield ArtifactKeys.METRIC_RESULTS, fields["metric_trait_scores"]


def evidence_fields(
    context: VerificationContext, traits: Sequence[RubricTrait], scores: Mapping[str, TraitScore]
) -> dict[str, Any]:
    """The fields of the part `deep_judgment_rubric`; nothing but `performed` where no trait was to be judged deeply."""
    found = {name: score.evidence for name, score in scores.items() if score.evidence is not None}
    deep = {trait.name for trait in traits if trait.name in found or _was_to_be(context, trait, scores)}
    if not deep:
        return {"deep_judgment_rubric_performed": False}
    metadata = {name: _metadata(scores[name]) for name in scores if name in deep}
    return {
        "deep_judgment_rubric_performed": True,
        "extracted_rubric_excerpts": {
            name: [dict(excerpt) for excerpt in evidence.excerpts] for name, evidence in found.items()
        },
        "rubric_trait_reasoning": {name: evidence.reasoning for name, evidence in found.items() if evidence.reasoning},
        "deep_judgment_rubric_scores": _table([trait for trait in traits if trait.name in deep], scores),
        "standard_rubric_scores": _table(
            [trait for trait in traits if trait.type_name == "llm"],
            {name: score.standard if name in deep else score for name, score in scores.items()},
        ),
        "trait_metadata": metadata,
        "traits_without_valid_excerpts": [name for name, evidence in found.items() if evidence.lacks_excerpts],
        "rubric_hallucination_risk_assessment": {
            name: dict(evidence.risk) for name, evidence in found.items() if evidence.risk is not None
        },
        "total_deep_judgment_model_calls": sum(_count(row, "model_calls") for row in metadata.values()),
        "total_traits_evaluated": sum(scores[name].state == "ok" for name in deep),
        "total_excerpt_retries": sum(_count(row, "excerpt_retry_count") for row in metadata.values()),
    }


def evidence_warnings(scores: Mapping[str, TraitScore]) -> list[str]:
    """What deep judgment warns of, each once with the traits that it is about, in the order of the traits.

    An evaluator leaves warnings in the `metadata` of the evidence, because traits that are judged at the same time end
    in any order.
    """
    about: dict[str, list[str]] = {}
    for name, score in scores.items():
        given = score.evidence.metadata.get("warnings") if score.evidence is not None else None
        for warning in given if isinstance(given, list | tuple) else ():
            about.setdefault(str(warning), []).append(name)
    for name, score in scores.items():
        if score.standard is not None and score.standard.state != "ok":
            about.setdefault(f"there is no standard score to compare with ({score.standard.reason})", []).append(name)
    return [
        f"deep judgment of {', '.join(map(repr, dict.fromkeys(names))):.{MOST_NAMED}}: {warning}"
        for warning, names in about.items()
    ]


def _was_to_be(context: VerificationContext, trait: RubricTrait, scores: Mapping[str, TraitScore]) -> bool:
    """Whether a trait was to be judged deeply, whatever became of it. Of one that was skipped, nothing was."""
    return (
        scores[trait.name].state != "skipped"
        and isinstance(trait, LLMRubricTrait)
        and evidence_rules(context.config, trait, context.question_id) is not None
    )


def _metadata(score: TraitScore) -> dict[str, Any]:
    known = NOTHING if score.evidence is None else score.evidence.metadata
    return {**known, **({} if score.state == "ok" else {"error": score.reason})}


def _table(traits: Sequence[RubricTrait], scores: Mapping[str, TraitScore | None]) -> dict[str, Any]:
    found = ((trait, scores[trait.name]) for trait in traits)
    kept = ((trait, score) for trait, score in found if score is not None and score.state != "skipped")
    return {name: value for trait, score in kept for name, value in entries(trait, score).items()}


def _count(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
