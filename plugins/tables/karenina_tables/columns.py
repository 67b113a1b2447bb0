"""What the columns of a sheet mean: guessed by their names, decided by whoever maps them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from karenina_core.errors import BenchmarkError, did_you_mean

CUSTOM = "custom"
REST = "karenina"
"""The column with everything that has no column of its own, as JSON."""
NAMES: Mapping[str, Sequence[str]] = {
    "id": ("id", "question id", "item id", "key"),
    "question": ("question", "question text", "prompt", "query", "input"),
    "answer": (
        *("answer", "reference answer", "reference", "raw answer", "correct answer", "expected answer"),
        *("gold answer", "gold", "target", "solution"),
    ),
    "template": ("template", "answer template"),
    "keywords": ("keywords", "keyword", "tags", "topics"),
    "author": ("author", "contributor"),
    "sources": ("sources", "source", "url", "reference url", "link", "citation", "doi"),
    "notes": ("notes", "answer notes", "note"),
    "finished": ("finished",),
    REST: (REST,),
}
"""Field of a question -> names of columns that are taken for it."""
FACETS: Mapping[str, Sequence[str]] = {
    "field": ("field", "field name", "attribute"),
    "type": ("type", "field type", "data type"),
    "description": ("description", "field description"),
    "expected": ("expected", "expected value", "ground truth", "truth"),
    "compare": ("compare", "comparison", "primitive", "verify with"),
    "tolerance": ("tolerance",),
    "unit": ("unit", "units"),
    "aliases": ("aliases", "alias", "synonyms"),
}
"""The same of the template's fields. Several columns of a kind are numbered: `expected 1`, `expected 2`."""
NUMBERED = re.compile(r"(.*?)[ #.]*(\d{1,3})")
LONGEST_NAME = 200
"""Characters of the name of a column that may mean something. Chosen: the names that do are short."""


def _plain(column: str) -> str:
    return " ".join(re.sub(r"[_\-]+", " ", column).casefold().split())


def _guess(column: str) -> str:
    if len(column) > LONGEST_NAME:
        return CUSTOM
    name = _plain(column)
    for target, known in NAMES.items():
        if name in known:
            return target
    stem, number = name, ""
    if match := NUMBERED.fullmatch(name):
        stem, number = match[1], f" {int(match[2])}"
    return next((f"{facet}{number}" for facet, known in FACETS.items() if stem in known), CUSTOM)


@frozen
class Layout:
    """Column -> what it is: a key of `NAMES`, a facet of a field with its number (`expected 2`), or `custom`."""

    targets: Mapping[str, str]
    mark: str = ""
    """What stands before decimals in its cells, as far as they say it: see `written.decimal_mark`."""

    def column(self, target: str) -> str | None:
        return next((column for column, found in self.targets.items() if found == target), None)

    @property
    def groups(self) -> Sequence[Mapping[str, str]]:
        """Facet -> column, for each field that a row has place for."""
        found: dict[int, dict[str, str]] = {}
        for column, facet, number in self._facets():
            found.setdefault(number, {})[facet] = column
        return [found[number] for number in sorted(found)]

    @property
    def numbers(self) -> Sequence[str]:
        """What follows the facets of each field that a row has place for: nothing, or a blank and a number."""
        found = {number for _, _, number in self._facets()}
        return [f" {number}" if number else "" for number in sorted(found)]

    @property
    def facets(self) -> Collection[str]:
        """Those that every field has a column for."""
        return set.intersection(*map(set, self.groups)) if self.groups else set()

    @property
    def custom(self) -> Sequence[str]:
        return [column for column, target in self.targets.items() if target == CUSTOM]

    def _facets(self) -> Iterator[tuple[str, str, int]]:
        for column, target in self.targets.items():
            facet, _, number = target.partition(" ")
            if facet in FACETS:
                yield column, facet, int(number or 0)


def names_questions(record: Iterable[object], given: Collection[str]) -> bool:
    """Whether these cells are names of columns: one is of the question, or a mapping names it."""
    texts = [cell for cell in record if isinstance(cell, str)]
    return any(text in given or _guess(text) in ("question", REST) for text in texts)


def layout_of(columns: Sequence[str], given: Mapping[str, str], label: str) -> Layout:
    """`given` decides, what is left is guessed; of two columns that would be the same, the first one is.

    A column such as `type` belongs to a template only where the sheet says what is expected, too. Raises
    BenchmarkError.
    """
    targets = {column: _target(column, target, columns, label) for column, target in given.items()}
    for column in columns:
        guess = _guess(column)
        if column not in targets:
            targets[column] = CUSTOM if guess in targets.values() else guess
    layout = Layout({column: targets[column] for column in columns})
    for group in layout.groups:
        if "expected" not in group:
            for facet, column in group.items():
                if column in given:
                    raise BenchmarkError(
                        f"{label}: {column!r} is the {facet} of a field, and no column holds its expected value"
                    )
                targets[column] = CUSTOM
    if not {"question", REST} & set(targets.values()):
        raise BenchmarkError(
            f"{label}: no column is called question; name the one with the questions: karenina benchmark import "
            f"SHEET -o questions.jsonld --map \"COLUMN=question\", in Python columns={{'COLUMN': 'question'}}. "
            "Available: "
            f"{', '.join(map(repr, columns))}"
        )
    return Layout({column: targets[column] for column in columns})


def _target(column: str, target: str, columns: Sequence[str], label: str) -> str:
    if column not in columns:
        raise BenchmarkError(f"{label}: there is no column {column!r}{did_you_mean(column, columns)}")
    guess = target if target == CUSTOM else _guess(target)
    if guess == CUSTOM and target != CUSTOM:
        known = [*NAMES, *FACETS, CUSTOM]
        raise BenchmarkError(
            f"{label}: {column!r} cannot be {target!r}{did_you_mean(target, known)}; available: {', '.join(known)}"
        )
    return guess
