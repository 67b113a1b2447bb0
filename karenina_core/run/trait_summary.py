"""What the traits of many items come to. Only scores go in: a trait that failed changes counts and no mean."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ..model.result import VerificationResult
from ..model.trait_rows import FAILED, SCORES, TraitOutcome, read_traits
from ..model.trait_scale import is_number, scale_classes, scale_kind

__all__ = ["trait_lines"]

Line = dict[str, Any]
MOST_TEXTS = 5
"""Different texts that are counted one by one."""


def trait_lines(results: Iterable[VerificationResult]) -> list[Line]:
    """One line per trait, and per field of a template kind (`trait.field`), in the order in which they are met.

    Each has trait, type, kind, n (results in which it was due), ok (those with a score), errors (those without),
    skipped (results in which it was not due, not part of n) and higher_is_better. What the scores come to is there by
    kind, None where there is none: `rate` of True (boolean); `mean` with the scale's `min` and `max` (score); `classes`
    with the count of each label (literal); `metrics` with the mean of each (metric); for scores that are texts `texts`,
    the counts of the most frequent ones, and `other_texts`, how many further ones there are. Traits of one name whose
    types or scales differ have lines of their own. A kind that no scale tells is that of all scores, or None.
    """
    met: dict[str, list[TraitOutcome]] = {}
    for result in results:
        for trait in read_traits(result.rubric) if result.rubric else ():
            met.setdefault(trait.name, []).append(trait)
    return [line for traits in met.values() for alike in _told_apart(traits) for line in _lines(alike)]


def _scale_of(trait: TraitOutcome) -> str | None:
    """What tells traits of one name apart; None where the result does not say."""
    if trait.kind is None and not trait.scale:
        return None
    return json.dumps({"type": trait.type, "kind": _kind(trait), **trait.scale}, sort_keys=True, default=str)


def _kind(trait: TraitOutcome) -> str | None:
    """The kind that all traits of one scale have; None for a type of another package that does not say."""
    return trait.kind if not trait.scale or scale_kind(trait.scale) or trait.type in SCORES else None


def _told_apart(traits: Sequence[TraitOutcome]) -> list[list[TraitOutcome]]:
    """By type and scale. One that says neither what it is nor its scale belongs to the only trait that it can be."""
    groups: dict[str | None, list[TraitOutcome]] = {}
    unknown: list[TraitOutcome] = []
    for trait in traits:
        scale = _scale_of(trait)
        (unknown if scale is None else groups.setdefault(scale, [])).append(trait)
    for trait in sorted(unknown, key=lambda trait: trait.type is None):
        possible = [group for group in groups.values() if trait.type in (None, group[0].type)]
        (possible[0] if len(possible) == 1 else groups.setdefault(trait.type, [])).append(trait)
    return list(groups.values())


def _lines(traits: Sequence[TraitOutcome]) -> list[Line]:
    first = traits[0]
    scored = [trait for trait in traits if trait.state == "ok"]
    kinds = {_kind(first)} - {None} or {trait.kind for trait in scored}
    kind = kinds.pop() if len(kinds) == 1 else None
    states = Counter(trait.state for trait in traits)
    failed = sum(states[state] for state in FAILED)
    line: Line = {
        "trait": first.name,
        "type": next((trait.type for trait in traits if trait.type), None),
        "kind": kind,
        "n": states["ok"] + failed,
        "ok": states["ok"],
        "errors": failed,
        "skipped": states["skipped"],
        "higher_is_better": first.higher_is_better,
    }
    if kind == "template":
        return _fields(line, scored)
    if known := KINDS.get(kind or ""):
        return [{**line, **known(traits, scored)}]
    values = [trait.value for trait in scored]
    return [{**line, **(_of_values(values) or _of_texts(values))}]


def _boolean(_: Sequence[TraitOutcome], scored: Sequence[TraitOutcome]) -> Line:
    return {"rate": _mean([trait.value for trait in scored])}


def _score(traits: Sequence[TraitOutcome], scored: Sequence[TraitOutcome]) -> Line:
    scale = traits[0].scale
    return {"mean": _mean([trait.value for trait in scored]), "min": scale.get("min"), "max": scale.get("max")}


def _literal(traits: Sequence[TraitOutcome], scored: Sequence[TraitOutcome]) -> Line:
    """Every class of the scale, also those that nobody was put into. The score says the class, not the label."""
    classes = scale_classes(traits[0].scale)
    counts = Counter(classes[trait.value] if classes else trait.label or str(trait.value) for trait in scored)
    return {"classes": {name: counts[name] for name in dict.fromkeys((*classes, *counts))}}


def _metric(_: Sequence[TraitOutcome], scored: Sequence[TraitOutcome]) -> Line:
    names = dict.fromkeys(name for trait in scored for name in trait.metrics)
    values = {name: [t.metrics[name] for t in scored if is_number(t.metrics.get(name))] for name in names}
    return {"metrics": {name: _mean(found) for name, found in values.items()}}


KINDS: Mapping[str, Callable[[Sequence[TraitOutcome], Sequence[TraitOutcome]], Line]] = {
    "boolean": _boolean,
    "score": _score,
    "literal": _literal,
    "metric": _metric,
}


def _fields(line: Line, scored: Sequence[TraitOutcome]) -> list[Line]:
    """A line for each field that holds booleans or numbers, or nothing in any item; `ok` counts where it holds one.

    Where there is no such field, the trait itself has a line.
    """
    values: dict[str, list[Any]] = {}
    for trait in scored:
        for name, value in trait.value.items() if isinstance(trait.value, Mapping) else ():
            values.setdefault(name, []).append(value)
    lines = [
        {**line, "trait": f"{line['trait']}.{name}", "ok": len([v for v in found if v is not None]), **told}
        for name, found in values.items()
        if (told := _of_values(found)) or not any(value is not None for value in found)
    ]
    return lines or [line]


def _of_values(values: Sequence[Any]) -> Line:
    """The rate of booleans or the mean of numbers; nothing where there are neither, or both."""
    values = [value for value in values if value is not None]
    if values and all(isinstance(value, bool) for value in values):
        return {"rate": _mean(values)}
    return {"mean": _mean(values)} if values and all(map(is_number, values)) else {}


def _of_texts(values: Sequence[Any]) -> Line:
    if not values or not all(isinstance(value, str) for value in values):
        return {}
    counts = Counter(values)
    return {"texts": dict(counts.most_common(MOST_TEXTS)), "other_texts": max(len(counts) - MOST_TEXTS, 0)}


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    try:
        return fmean(values)
    except OverflowError:  # the sum is too large for a float, the mean is not
        return math.fsum(value / len(values) for value in values)
