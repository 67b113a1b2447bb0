"""Is what an evaluator says about a trait a score of that trait, and can a result hold it, as plain data?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, get_args

from attrs import asdict, evolve
from karenina_calls.ports.text import sanitize
from karenina_vocabulary.evaluators import TraitEvidence, TraitScore, TraitState
from karenina_vocabulary.trait_scale import misfit, scale_kind
from karenina_vocabulary.traits import MetricRubricTrait, RegexRubricTrait, ScoredTrait

from karenina_core.errors import ErrorKind, one_line, shortened
from karenina_core.pipeline.engine import stops_item
from karenina_core.values.rubric import RubricTrait

LONGEST_TEXT = 1000
MOST_DETAIL = 10_000
"""Characters of a text in details."""
MOST_LEVELS = 100
MOST_DIGITS = sys.float_info.max_10_exp + 1
NOT_KEPT = "not_kept"
"""The detail that names those that are not there."""
STATES = get_args(TraitState)
WHY: Mapping[str, str] = {
    "invalid": "what was replied is no score of this trait",
    "missing": "nothing was replied about it",
    "error": "it could not be evaluated",
    "skipped": "it was not to be evaluated",
}
"""The reasons of evaluators that give none."""
KINDS = get_args(ErrorKind)
MOST_SHOWN = 80


def plain_text(text: str, most: int = LONGEST_TEXT) -> str:
    """The text without lone surrogates, which no file can hold, and cut to at most that many characters."""
    safe, _ = sanitize(str.__str__(text))
    return shortened(safe, most)


def plain(value: Any, longest: int | None = None) -> Any:
    """The value as it will be read from a file; with `longest`, its texts are cut to that many characters.

    Raises ValueError for numbers that no float can hold, NaN among them, and TypeError and RecursionError for what is
    no data. Third-party classes may raise anything.
    """
    read = json.loads(json.dumps(value, allow_nan=False, default=_table), parse_int=_whole)
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


def _table(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no data")


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
        return _failed(trait, f"the state {score.state!r}; there are {', '.join(STATES)}")
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
        return wanted or ("" if all(map(_is_number, value.values())) else "a table of counts and metrics")
    if wanted := misfit(scale_kind(scale), scale, value):
        return wanted
    if isinstance(trait, ScoredTrait) and not trait.validate_score(value):  # a fraction, where numbers are whole
        return f"a number from {trait.min_score} to {trait.max_score}"
    return ""


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


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
