"""Which items there are. It is known before the first of them is made, because each leads to the other answers to its
question."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

from attrs import define, field

from karenina_core.errors import BenchmarkError
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.result import MetadataPart, VerificationResult

from .outcomes import KINDS, OutcomeKind

ORDER = tuple(KINDS.values())
NUMBER = {name: number for number, name in enumerate(KINDS)}

SIBLINGS = 24
"""Other answers that an item leads to; chosen: three lines of a page."""
CHANGED = "the results changed while their report was made; make it again"


class Sibling(NamedTuple):
    """Another answer to the same question."""

    anchor: str
    outcome: OutcomeKind
    label: str


@define(eq=False, slots=False)
class Listing:
    """Who answered which question, and how it ended, by the place of the item among all. It is kept as numbers, a few
    bytes each."""

    anchors: list[str] = field(factory=list)
    """`item-<result id>`, each once on the page; what an address cannot hold is encoded."""
    questions: dict[str, array[int]] = field(factory=dict)
    """The places of the items of each question, by its id."""
    pairs: dict[tuple[str, str], tuple[ModelIdentity, ModelIdentity]] = field(factory=dict)
    """Answering models and judges by their names in the metadata, in the order in which they first occur."""
    _outcome_of: array[int] = field(factory=lambda: array("B"), init=False)
    _pair_of: array[int] = field(factory=lambda: array("l"), init=False)
    _replicate_of: list[int] = field(factory=list, init=False)

    @classmethod
    def of(cls, abouts: Iterable[MetadataPart]) -> Listing:
        made = cls()
        numbers: dict[tuple[ModelIdentity, ModelIdentity], int] = {}
        known: set[str] = set()
        for place, about in enumerate(abouts):
            models = (about.answering, about.parsing)
            if (number := numbers.get(models)) is None:
                names = (about.answering_model, about.parsing_model)
                made.pairs.setdefault(names, models)
                number = numbers[models] = list(made.pairs).index(names)
            made._pair_of.append(number)
            made._outcome_of.append(NUMBER[about.outcome])
            made._replicate_of.append(about.replicate)
            if (places := made.questions.get(about.question_id)) is None:
                places = made.questions[about.question_id] = array("l")
            places.append(place)
            name, often = (plain := _anchor(about.result_id)), 1
            while name in known:
                often += 1
                name = f"{plain}.{often}"
            known.add(name)
            made.anchors.append(name)
        return made

    def __len__(self) -> int:
        return len(self.anchors)

    def of_these(self, results: Iterable[VerificationResult]) -> Iterator[VerificationResult]:
        """The results that are listed, which are read once more; those that a run has added since are left out. Raises
        BenchmarkError where one is gone or is another one now."""
        place = 0
        for result in results:
            if place < len(self) and self._is_at(place, result.metadata):
                place += 1
                yield result
        if place < len(self):
            raise BenchmarkError(CHANGED)

    def _is_at(self, place: int, about: MetadataPart) -> bool:
        name, plain = self.anchors[place], _anchor(about.result_id)
        return (
            (name == plain or name.rpartition(".")[0] == plain)
            and self.outcome(place).name == about.outcome
            and self._replicate_of[place] == about.replicate
            and list(self.pairs)[self._pair_of[place]] == (about.answering_model, about.parsing_model)
        )

    def outcome(self, place: int) -> OutcomeKind:
        return ORDER[self._outcome_of[place]]

    def pair(self, place: int) -> int:
        """The number of the answering model and the judge, in the order of `pairs`."""
        return self._pair_of[place]

    @cached_property
    def labels(self) -> list[str]:
        """Of each pair: short enough for a plot, and different for every one."""
        answering = _short([answering for answering, _ in self.pairs.values()])
        judges = _short([parsing for _, parsing in self.pairs.values()])
        several = self.several_judges
        return [f"{answering[a]} | {judges[p]}" if several else answering[a] for a, p in self.pairs.values()]

    @cached_property
    def several_judges(self) -> bool:
        return len({parsing for _, parsing in self.pairs}) > 1

    @property
    def outcomes(self) -> list[OutcomeKind]:
        """Those that occur, in the order of `KINDS`."""
        return [ORDER[number] for number in sorted(set(self._outcome_of))]

    def siblings(self, question: str, place: int) -> tuple[list[Sibling], int]:
        """Other answers to the question of an item, the first of them, and how many more there are."""
        places = self.questions[question]
        first = [other for other in places[: SIBLINGS + 1] if other != place][:SIBLINGS]
        listed = [Sibling(self.anchors[other], self.outcome(other), self._labelled(other)) for other in first]
        return listed, len(places) - 1 - len(listed)

    def _labelled(self, place: int) -> str:
        label, replicate = self.labels[self._pair_of[place]], self._replicate_of[place]
        return label if replicate == 1 else f"{label}, replicate {replicate}"

    def hardest(self, most: int) -> tuple[dict[str, list[int]], int]:
        """The questions that some item did not pass, those that most items fail first, with the places of the items of
        which something is said; at most so many, and how many more there are."""
        silent, passed = {NUMBER["scored"], NUMBER["skipped"]}, NUMBER["passed"]
        found = []
        for question, places in self.questions.items():
            own = [number for number in (self._outcome_of[place] for place in places) if number not in silent]
            if (share := own.count(passed) / len(own) if own else 1) < 1:
                first = next(place for place in places if self._outcome_of[place] not in silent)
                found.append((share, first, question))
        found.sort()
        listed = {
            question: [place for place in self.questions[question] if self._outcome_of[place] not in silent]
            for _, _, question in found[:most]
        }
        return listed, max(len(found) - most, 0)

    def cells(self, places: Sequence[int]) -> list[list[tuple[str, OutcomeKind, int]]]:
        """For each pair: anchor, outcome and replicate of every one of these items that is its own."""
        cells: list[list[tuple[str, OutcomeKind, int]]] = [[] for _ in self.pairs]
        for place in places:
            cells[self._pair_of[place]].append((self.anchors[place], self.outcome(place), self._replicate_of[place]))
        return cells


def _anchor(result_id: str) -> str:
    return f"item-{quote(result_id, safe='', errors='replace')}"


def _short(identities: Iterable[ModelIdentity]) -> dict[ModelIdentity, str]:
    different = dict.fromkeys(identities)
    names = Counter(identity.model_name for identity in different)
    return {i: i.model_name if names[i.model_name] == 1 else str(i) for i in different}
