"""From what evaluators say about traits to the fields of a result; failed traits are there with their state.

First it is made sound: a score of its trait, as plain data that a result can hold.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from attrs import asdict, evolve
from karenina_calls.ports.text import sanitize
from karenina_judging.scoring import error_label
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitEvidence, TraitScore, TraitState
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.rubric_config import evidence_rules
from karenina_vocabulary.rubric_part import LABEL
from karenina_vocabulary.trait_scale import MISSING_LABEL, misfit, scale_kind
from karenina_vocabulary.traits import LLMRubricTrait, MetricRubricTrait, RegexRubricTrait, ScoredTrait

from karenina_core import VerificationContext
from karenina_core.errors import ErrorKind, one_line, shortened
from karenina_core.pipeline.engine import stops_item
from karenina_core.values.fields import is_number
from karenina_core.values.rubric import RubricTrait

LONGEST_TEXT = 1000  # characters of a label, a reason or a caveat; chosen, not measured
MOST_DETAIL = 10_000
"""Characters of a text in details."""
MOST_LEVELS = 100  # of nested data; chosen, far from where Python's recursion ends
MOST_DIGITS = sys.float_info.max_10_exp + 1
NOT_KEPT = "not_kept"
"""The detail that names those that are not there."""
STATES = get_args(TraitState)
WHY: Mapping[str, str] = {
    "invalid": "the reply is not a score of this trait",
    "missing": "nothing was replied about it",
    "error": "it could not be evaluated",
    "skipped": "it was not due for evaluation",
}
"""The reasons of evaluators that give none."""
KINDS = get_args(ErrorKind)
MOST_SHOWN = 80  # characters: a line


def plain_text(text: str, most: int = LONGEST_TEXT) -> str:
    """The text without lone surrogates, which no file can hold, and cut to at most that many characters."""
    safe, _ = sanitize(str.__str__(text))
    return shortened(safe, most)


def plain(value: Any, longest: int | None = None) -> Any:
    """The value as it will be read from a file; with `longest`, its texts are cut to that many characters.

    Raises ValueError for numbers that no float can hold, NaN among them, and TypeError and RecursionError for what is
    not plain data. Third-party classes may raise anything.
    """
    read = json.loads(json.dumps(value, allow_nan=False, default=_as_table), parse_int=_whole)
    return _clean(read, longest, MOST_LEVELS)


def plain_details(details: Any) -> dict[str, Any]:
    """The details that can be kept; the names of the others are the detail `not_kept`."""
    try:
        if not isinstance(details, Mapping):
            raise TypeError
        rows = [(name, value) for name, value in details.items()]
    except BaseException as error:
        if stops_item(error):
            raise
        return {NOT_KEPT: ["everything"]}
    kept: dict[str, Any] = {}
    lost: list[str] = []
    for name, value in rows:
        known = plain_text(name) if isinstance(name, str) else type(name).__name__
        try:
            kept[plain_text(str(name))] = plain(value, MOST_DETAIL)
        except BaseException as error:
            if stops_item(error):
                raise
            lost.append(known)
    return {**kept, NOT_KEPT: lost} if lost else kept


def _as_table(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) <= MOST_DIGITS and abs(number := int(digits)) <= sys.float_info.max:
        return number
    raise ValueError("a number beyond those of floats")


def _clean(value: Any, longest: int | None, levels: int) -> Any:
    if levels == 0:
        raise RecursionError(f"it is nested more than {MOST_LEVELS} levels deep")
    if isinstance(value, str):
        return plain_text(value, len(value) if longest is None else longest)
    if isinstance(value, dict):
        return {sanitize(key)[0]: _clean(item, longest, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, longest, levels - 1) for item in value]
    return value


def sound(trait: RubricTrait, score: Any) -> TraitScore:
    """The score as plain data, or one that says what is wrong with it. Never raises, unless the item is to end.

    A value that is no score of the trait, or not on the scale that the trait says it has, makes it `invalid`; what is
    no `TraitScore`, or no data that JSON can hold, an `error`. Of a failed score nothing is kept that could be taken
    for a value.
    """
    try:
        return _sound(trait, score)
    except BaseException as error:  # anything of a third-party object may raise
        if stops_item(error):
            raise
        return _failed(trait, f"something that cannot be read: {one_line(error)}")


def _sound(trait: RubricTrait, score: Any) -> TraitScore:
    if not isinstance(score, TraitScore):
        return _failed(trait, f"{type(score).__name__} instead of a TraitScore")
    if score.state not in STATES:
        return _failed(trait, f"the state {score.state!r}; available: {', '.join(STATES)}")
    label = None if score.label is None else plain_text(str(score.label))
    more: dict[str, Any] = {
        "label": label,
        "details": plain_details(score.details),
        "evidence": _evidence(score.evidence),
        "caveats": tuple(plain_text(str(name)) for name in score.caveats),
        "standard": None if score.standard is None else sound(trait, evolve(score.standard, standard=None)),
    }
    if score.state != "ok":
        reason = plain_text(str(score.reason or "").strip()) or WHY[score.state]
        return TraitScore(state=score.state, reason=reason, kind=score.kind if score.kind in KINDS else "stage", **more)
    if score.value is None:
        return evolve(_failed(trait, "no score, and no reason"), **more)
    try:
        value = plain(score.value)
    except (TypeError, RecursionError) as error:
        return evolve(_failed(trait, f"a score that JSON cannot hold: {error}"), **more)
    except ValueError as error:  # NaN, or a number beyond those of floats
        return evolve(_failed(trait, f"a score that JSON cannot hold: {error}"), state="invalid", **more)
    scale, problem = scale_of(trait)
    if problem:
        return TraitScore(state="error", reason=problem, **more)
    if wanted := _misfit(trait, scale, value):
        shown = shortened(repr(value), MOST_SHOWN)
        reason = plain_text(f"the evaluator of {trait.type_name!r} gave {shown}, which is not {wanted}")
        replied = shown if scale_kind(scale) == "literal" else None
        return TraitScore(state="invalid", reason=reason, **{**more, "label": label or replied})
    return TraitScore(value=value, **more)


def scale_of(trait: RubricTrait) -> tuple[Mapping[str, Any], str]:
    """What its score means as plain data, and what is wrong with what the trait says about it. Never raises."""
    try:
        given: object = trait.scale()
        if isinstance(given, Mapping):
            return dict(plain(given)), ""
        problem = f"the scale is {type(given).__name__} instead of a table"
    except BaseException as error:  # third-party code
        if stops_item(error):
            raise
        problem = f"the scale cannot be read: {one_line(error)}"
    return {"type": trait.type_name}, problem


def _failed(trait: RubricTrait, what: str) -> TraitScore:
    return TraitScore(state="error", reason=plain_text(f"the evaluator of {trait.type_name!r} gave {what}"))


def _misfit(trait: RubricTrait, scale: Mapping[str, Any], value: Any) -> str:
    """What the value should have been, where it is not. Of types of other packages only their scales are known."""
    if isinstance(trait, RegexRubricTrait):
        return misfit("boolean", scale, value)
    if isinstance(trait, MetricRubricTrait):
        wanted = misfit("metric", scale, value)
        sound_parts = wanted or all(part is None or is_number(part) for part in value.values())
        return wanted or ("" if sound_parts else "a table of counts and metrics")
    if wanted := misfit(scale_kind(scale), scale, value):
        return wanted
    if isinstance(trait, ScoredTrait) and not trait.validate_score(value):  # a fraction, where numbers are whole
        return f"a number from {trait.min_score} to {trait.max_score}"
    return ""


def _evidence(evidence: Any) -> TraitEvidence | None:
    if not isinstance(evidence, TraitEvidence):
        return None
    try:
        data = plain(asdict(evidence, recurse=False))
        tables = (*data["excerpts"], data["metadata"], data["risk"] or {})
        if not all(isinstance(table, dict) for table in tables) or not isinstance(data["reasoning"], str):
            raise TypeError("its parts are not of their types")
        lacks = data["lacks_excerpts"] is True
        return TraitEvidence(**{**data, "excerpts": tuple(data["excerpts"]), "lacks_excerpts": lacks})
    except BaseException as error:  # as above
        if stops_item(error):
            raise
        why = plain_text(f"the evidence could not be kept: {one_line(error)}")
        return TraitEvidence(metadata={"error": why}, lacks_excerpts=evidence.lacks_excerpts is True)


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
    # Those that were to be judged deeply, whatever became of them. Of one that was skipped, nothing was.
    judged = [t for t in traits if isinstance(t, LLMRubricTrait) and scores[t.name].state != "skipped"]
    deep = {t.name for t in judged if evidence_rules(context.config, t, context.question_id) is not None} | set(found)
    if not deep:
        return {"deep_judgment_rubric_performed": False}
    metadata = {
        name: {
            **(NOTHING if score.evidence is None else score.evidence.metadata),
            **({} if score.state == "ok" else {"error": score.reason}),
        }
        for name, score in scores.items()
        if name in deep
    }
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


def _table(traits: Sequence[RubricTrait], scores: Mapping[str, TraitScore | None]) -> dict[str, Any]:
    found = ((trait, scores[trait.name]) for trait in traits)
    kept = ((trait, score) for trait, score in found if score is not None and score.state != "skipped")
    return {name: value for trait, score in kept for name, value in entries(trait, score).items()}


def _count(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
