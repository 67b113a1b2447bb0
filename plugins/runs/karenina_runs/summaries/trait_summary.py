"""What the traits of many items come to. Only scores go in: a trait that failed changes counts and no mean."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field
from karenina_vocabulary.rubric_part import FAILED, SCORES, TraitOutcome, read_traits
from karenina_vocabulary.trait_scale import scale_classes, scale_kind

from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from .exact import ExactSum

Line = dict[str, Any]
_encode = json.JSONEncoder(sort_keys=True, default=str).encode
MOST_TEXTS = 5
"""Different texts that are counted one by one. Chosen: a row of a table has room for them."""


def trait_lines(results: Iterable[VerificationResult]) -> list[Line]:
    """See `TraitTally.lines`."""
    tally = TraitTally()
    for result in results:
        tally.add(read_traits(result.rubric) if result.rubric is not None else ())
    return tally.lines()


@define(eq=False)
class _Values:
    """Scores of one trait, or values of one field of it."""

    sum: ExactSum = field(factory=ExactSum)
    """Of numbers, and of True and False."""
    booleans: int = 0
    nothing: int = 0
    texts: Counter[str] = field(factory=Counter)
    others: int = 0

    def add(self, value: Any) -> None:
        if isinstance(value, bool):
            self.booleans += 1
            self.sum.add(value)
        elif is_number(value):
            self.sum.add(value)
        elif isinstance(value, str):
            self.texts[value] += 1
        elif value is None:
            self.nothing += 1
        else:
            self.others += 1

    def merge(self, other: _Values) -> None:
        self.sum.merge(other.sum)
        self.booleans += other.booleans
        self.nothing += other.nothing
        self.texts.update(other.texts)
        self.others += other.others

    @property
    def count(self) -> int:
        """Of values that are something."""
        return self.sum.count + self.texts.total() + self.others

    def as_numbers(self) -> Line:
        """The rate of booleans or the mean of numbers; nothing where there are neither, or both."""
        if not self.sum.count or self.count > self.sum.count or self.booleans not in (0, self.sum.count):
            return {}
        return {"rate" if self.booleans else "mean": self.sum.mean}

    def as_texts(self) -> Line:
        if not self.texts or self.nothing or self.count > self.texts.total():
            return {}
        most = dict(self.texts.most_common(MOST_TEXTS))
        return {"texts": most, "other_texts": max(len(self.texts) - MOST_TEXTS, 0)}


@define(eq=False)
class _Alike:
    """Traits of one name, type and scale. What it keeps follows the number of different texts and labels."""

    first: TraitOutcome
    type: str | None = None
    states: Counter[str] = field(factory=Counter)
    kinds: set[str | None] = field(factory=set)
    values: _Values = field(factory=_Values)
    labels: Counter[tuple[Any, str | None]] = field(factory=Counter)
    metrics: dict[str, ExactSum] = field(factory=dict)
    fields: dict[str, _Values] = field(factory=dict)

    def add(self, trait: TraitOutcome) -> None:
        self.type = self.type or trait.type
        self.states[trait.state] += 1
        if trait.state != "ok":
            return
        value = trait.value
        self.kinds.add(trait.kind)
        if isinstance(value, Mapping):
            for name, metric in trait.metrics.items():
                found = self.metrics.setdefault(name, ExactSum())
                if is_number(metric):
                    found.add(metric)
            for name, part in value.items() if trait.kind != "metric" else ():
                self.fields.setdefault(name, _Values()).add(part)
            self.values.others += 1
            return
        self.values.add(value)
        if trait.kind in ("literal", None) and isinstance(value, int | str):
            self.labels[value, trait.label] += 1

    def merge(self, other: _Alike) -> None:
        self.type = self.type or other.type
        self.states.update(other.states)
        self.kinds |= other.kinds
        self.values.merge(other.values)
        self.labels.update(other.labels)
        for name, found in other.metrics.items():
            self.metrics.setdefault(name, ExactSum()).merge(found)
        for name, values in other.fields.items():
            self.fields.setdefault(name, _Values()).merge(values)

    def lines(self) -> list[Line]:
        first, states = self.first, self.states
        kinds = {_kind(first)} - {None} or set(self.kinds)
        kind = kinds.pop() if len(kinds) == 1 else None
        failed = sum(states[state] for state in FAILED)
        line: Line = {
            "trait": first.name,
            "type": self.type,
            "kind": kind,
            "n": states["ok"] + failed,
            "ok": states["ok"],
            "errors": failed,
            "skipped": states["skipped"],
            "higher_is_better": first.higher_is_better,
        }
        if kind == "template":  # fields of booleans or numbers, or of nothing in any item; else the trait itself
            lines = [
                {**line, "trait": f"{first.name}.{name}", "ok": found.count, **numbers}
                for name, found in self.fields.items()
                if (numbers := found.as_numbers()) or not found.count
            ]
            return lines or [line]
        return [{**line, **self._scores(kind)}]

    def _scores(self, kind: str | None) -> Line:
        values, scale = self.values, self.first.scale
        if kind == "boolean":
            return {"rate": values.sum.mean}
        if kind == "score":
            return {"mean": values.sum.mean, "min": scale.get("min"), "max": scale.get("max")}
        if kind == "metric":
            return {"metrics": {name: found.mean for name, found in self.metrics.items()}}
        if kind == "literal":  # all classes of the scale; the score is the class, and not the label
            classes, counts = scale_classes(scale), Counter[str]()
            for (value, label), count in self.labels.items():
                counts[classes[value] if classes else label or str(value)] += count
            return {"classes": {name: counts[name] for name in dict.fromkeys((*classes, *counts))}}
        return values.as_numbers() or values.as_texts()


@define(eq=False)
class TraitTally:
    """Traits, result by result."""

    met: dict[str, dict[tuple[str | None, str | None], _Alike]] = field(factory=dict)
    """By name, then by scale and type; the scale is None where the result does not say it."""
    first: dict[str, tuple[int, int]] = field(factory=dict)
    """By name: the first result that has the trait, and its place there."""
    results: int = 0

    def add(self, traits: Iterable[TraitOutcome], position: int | None = None) -> None:
        """Those of one result. `position` is its place among all; by default they come in their order."""
        position, self.results = self.results if position is None else position, self.results + 1
        for place, trait in enumerate(traits):
            self.first[trait.name] = min((position, place), self.first.get(trait.name, (position, place)))
            scale = None
            if trait.kind is not None or trait.scale:
                scale = _encode({"type": trait.type, "kind": _kind(trait), **trait.scale})
            key = (scale, trait.type if scale is None else None)
            named = self.met.setdefault(trait.name, {})
            if (alike := named.get(key)) is None:
                alike = named[key] = _Alike(trait)
            alike.add(trait)

    def failed_types(self) -> dict[str, int]:
        """`{type: scores that were due}` of the types of which every score has failed."""
        states: dict[str, Counter[str]] = {}
        for alike in (alike for named in self.met.values() for alike in named.values()):
            states.setdefault(alike.type or "", Counter()).update(alike.states)
        failed = {name: sum(found[state] for state in FAILED) for name, found in states.items() if not found["ok"]}
        return {name: number for name, number in sorted(failed.items()) if name and number}

    def lines(self) -> list[Line]:
        """One line per trait, and per field of a template kind (`trait.field`), in the order of the results.

        Each has trait, type, kind, n (results in which it was due), ok (those with a score), errors (those without),
        skipped (results in which it was not due, not part of n) and higher_is_better. What the scores come to is there
        by kind, None where there is none: `rate` of True (boolean); `mean` with the scale's `min` and `max` (score);
        `classes` with the count of each label (literal); `metrics` with the mean of each (metric); for scores that are
        texts `texts`, the counts of the most frequent ones, and `other_texts`, how many further ones there are. Traits
        of one name whose types or scales differ have lines of their own. Without a scale, the
        kind is that of all scores, or None.
        """
        in_order = (self.met[name] for name in sorted(self.met, key=self.first.__getitem__))
        return [line for named in in_order for alike in _by_scale(named) for line in alike.lines()]


def _kind(trait: TraitOutcome) -> str | None:
    """The kind that all traits of one scale have; None for a type of another package that does not say."""
    return trait.kind if not trait.scale or scale_kind(trait.scale) or trait.type in SCORES else None


def _by_scale(named: Mapping[tuple[str | None, str | None], _Alike]) -> list[_Alike]:
    """One with neither a type nor a scale belongs to the only trait that it can be."""
    groups: list[_Alike] = []
    unknown: list[_Alike] = []
    for (scale, _), found in named.items():
        alike = _Alike(found.first)
        alike.merge(found)
        (unknown if scale is None else groups).append(alike)
    for alike in sorted(unknown, key=lambda alike: alike.first.type is None):
        possible = [group for group in groups if alike.first.type in (None, group.first.type)]
        if len(possible) == 1:
            possible[0].merge(alike)
        else:
            groups.append(alike)
    return groups


RUBRIC_STAGES = ("RubricEvaluation", "AgenticRubricEvaluation")


def has_no_scores(result: VerificationResult) -> bool:
    """Whether a rubric was due and no trait was reached: no answer came, or a stage before failed.

    An item whose rubric was due has its stage in the trail; without a trail, an error counts as such an item.
    """
    if result.metadata.evaluation_mode == "template_only" or (result.rubric and read_traits(result.rubric)):
        return False
    due = any(entry.stage in RUBRIC_STAGES for entry in result.trail)
    return due or (not result.trail and result.metadata.outcome == "error")
