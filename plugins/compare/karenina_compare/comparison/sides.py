"""The two sides of a comparison: what each says of each question, and which models belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen

from karenina_core.errors import ConfigError, did_you_mean

from ..measures import ABSENT, Item, Measures, Reading, mean
from ..numbers import Planned
from .values import Pair

Models: TypeAlias = tuple[str, str]
"""An answering and a parsing model."""


NOT_ASKED = "not asked"
"""Why a question has no value on a side that has no item of it and planned none."""
NOT_DUE = "not due"
"""Why a question has no value on a side that has items of it, none of which speaks of the measure."""
CHANGED = "another item"
NOT_LOST = {NOT_ASKED, NOT_DUE, CHANGED}


@frozen
class Seen:
    """What one side says of one question by one measure."""

    values: tuple[float, ...] = ()
    missing: tuple[str, ...] = ()
    """Why other items of the question have no value."""

    @property
    def mean(self) -> float | None:
        return mean(self.values)

    @property
    def lost(self) -> float | None:
        """The share of the answers that have no value; None where none was due."""
        if NOT_LOST.issuperset(self.missing) and not self.values:
            return None
        return len(self.missing) / (len(self.values) + len(self.missing))

    def filled(self, instead: float) -> float:
        """The mean if every missing item had this value."""
        count = max(1, len(self.values) + len(self.missing))
        return (sum(self.values) + instead * (count - len(self.values))) / count

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> Seen:
        listed = list(readings)
        values = sorted(reading.value for reading in listed if reading.value is not None)
        return cls(tuple(values), tuple(sorted(reading.reason for reading in listed if reading.value is None)))


@frozen
class Side:
    """One pair of models of one run."""

    items: Mapping[str, tuple[Item, ...]] = field(repr=False)
    """By question, ordered by replicate."""
    seen: Mapping[str, Mapping[str, Seen]] = field(repr=False)
    """By measure and question."""


def sides_of(items: Iterable[Item], measures: Measures, planned: Planned | None = None) -> dict[Models, Side]:
    """The items by pair of models. Planned items that are not there are missing where a verdict is due."""
    grouped: dict[Models, list[Item]] = {}
    for item in items:
        grouped.setdefault(item.models, []).append(item)
    sides = {}
    for models, listed in sorted(grouped.items(), key=lambda pair: pair[0]):
        own: dict[str, list[Item]] = {}
        readings: dict[str, dict[str, list[Reading]]] = {}
        for item in sorted(listed, key=lambda item: (item.replicate, item.result_id)):
            question = item.question_id
            own.setdefault(question, []).append(item)
            for name, reading in measures.read(item).items():
                readings.setdefault(name, {}).setdefault(question, []).append(reading)
        there = Counter(item.question_id for item in listed)
        for question in (Counter(planned or {}) - there).elements():
            for name in [name for name in readings if measures.known[name].owner is None]:
                readings[name].setdefault(question, []).append(Reading(None, ABSENT))
        seen = {
            name: {question: Seen.of(found) for question, found in of_questions.items()}
            for name, of_questions in readings.items()
        }
        sides[models] = Side({question: tuple(found) for question, found in own.items()}, seen)
    return sides


def paired(
    a: Mapping[Models, Side], b: Mapping[Models, Side], models: Mapping[str, str], judges: Mapping[str, str]
) -> list[Pair]:
    """The pairs to compare: the same models of both runs, or those that `models` and `judges` name (A: B)."""
    found = []
    for answering, parsing in a:
        other = models.get(answering) if models else answering
        judge = judges.get(parsing) if judges else parsing
        if other is not None and judge is not None and (other, judge) in b:
            found.append(Pair(answering, parsing, other, judge))
    return sorted(found)


def matched(pairs: Iterable[str], a: Sequence[str], b: Sequence[str]) -> dict[str, str]:
    """`{model of A: model of B}` of texts such as `gpt=gpt-next`, each side a name or a part of one name only.

    A text without `=` names the same model on both sides. Raises ConfigError that says which names there are.
    """
    found: dict[str, str] = {}
    for text in pairs:
        splits = [(text[:at], text[at + 1 :]) for at, letter in enumerate(text) if letter == "="]
        splits = [*splits, (text, text)]
        fitting = [(_named(one, a), _named(other, b)) for one, other in splits]
        complete = [(one, other) for one, other in fitting if one is not None and other is not None]
        if len(set(complete)) != 1:
            hint = did_you_mean(text.partition("=")[0], a)
            raise ConfigError(
                f"{text!r} does not name one model of each run{hint}; write A=B with a part of each name that fits it "
                f"alone. A has {', '.join(a) or 'none'}; B has {', '.join(b) or 'none'}"
            )
        one, other = complete[0]
        if found.setdefault(one, other) != other:
            raise ConfigError(f"{one} is to be compared with {found[one]} and with {other}; name one of them")
    twice = [name for name, often in Counter(found.values()).items() if often > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is to be compared with several models; name one of them")
    return found


def _named(text: str, names: Sequence[str]) -> str | None:
    if text in names:
        return text
    found = [name for name in names if text and text in name]
    return found[0] if len(found) == 1 else None
