"""Groups of rows by the values of columns, and what the scores of a group come to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from attrs import define, field, frozen

from karenina_core import VerificationResult
from karenina_core.errors import did_you_mean

from ..columns.table import Column, Row, Table

Aggregator = Callable[[Sequence[Any]], Any]
By = str | Sequence[str]
"""A column, or several."""
ALIASES: Mapping[str, str] = {
    "question": "question_id",
    "model": "answering_model",
    "answering": "answering_model",
    "parsing": "parsing_model",
}


KEYWORDS = "keywords"
"""The column that puts a result into as many groups as it has keywords."""


@frozen(kw_only=True)
class Aggregated:
    """What the scores of a group come to, and how many there were."""

    value: Any
    """None where there was no score, where a vote has no majority, or where `note` says why."""
    n: int
    """Scores that went in."""
    errors: int = 0
    """Due and without a score, because something failed."""
    skipped: int = 0
    """Not due."""
    empty: int = 0
    """Scored, but this field or metric has no value: no value was given, or it is not defined."""
    unreached: int = 0
    """Of traits: items of the group in which none was reached, mostly because no answer came. Which were due there is
    not known, so this is the same for all traits of the group."""
    note: str = ""
    """Why the scores could not be put together."""


ByName = dict[Hashable, dict[str, Aggregated]]
"""`{group: {name of a field or a trait: what its scores come to}}`."""


@define
class Scores:
    """The scores of a group, and the items that have none."""

    values: list[Any] = field(factory=list)
    errors: int = 0
    skipped: int = 0
    empty: int = 0

    def take(self, score: Any, state: str = "ok") -> None:
        """Count one score. What is no score is counted beside the others and never among them."""
        if state == "skipped":
            self.skipped += 1
        elif state != "ok":
            self.errors += 1
        elif score is None:
            self.empty += 1
        else:
            self.values.append(score)

    def aggregated(self, aggregate: Aggregator, unreached: int = 0) -> Aggregated:
        """What they come to. An aggregator that cannot be applied to them is a note."""
        value, note = None, ""
        if self.values:
            try:
                value = aggregate(tuple(self.values))
            except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
                note = str(error) or type(error).__name__
        return Aggregated(
            value=value,
            n=len(self.values),
            errors=self.errors,
            skipped=self.skipped,
            empty=self.empty,
            unreached=unreached,
            note=note,
        )


def in_order(results: Iterable[VerificationResult]) -> list[tuple[int, VerificationResult]]:
    """`(place, result)` by question, models, replicate and run: the order of finishing changes no number."""

    def rank(pair: tuple[int, VerificationResult]) -> tuple[Any, ...]:
        about = pair[1].metadata
        return (about.question_id, about.answering_model, about.parsing_model, about.replicate, about.run_name or "")

    return sorted(enumerate(results), key=rank)


@frozen
class Grouping:
    """How the group of a row is read: the cell of a column, or a tuple where several were asked for."""

    columns: tuple[Column, ...]
    alone: bool

    @property
    def per_result(self) -> bool:
        """Whether all rows of a result are in one group."""
        return all(column.per_result for column in self.columns)

    def keys(self, row: Row) -> list[Hashable]:
        """The groups of a row: one, or one for each of its keywords. Values of any type are compared as JSON: True is
        not 1."""
        keywords = tuple(dict.fromkeys(row.result.metadata.keywords)) or (None,)
        cells = product(*(keywords if column.name == KEYWORDS else [column.written(row)] for column in self.columns))
        return [cell[0] if self.alone else cell for cell in cells]


def grouping(table: Table, results: Iterable[VerificationResult], by: By, *, per_result: bool = False) -> Grouping:
    """`per_result`: by columns that all rows of a result have in common, because results are counted and not rows.

    Raises ValueError for a column that there is not.
    """
    known = {column.name: column for column in table.columns_for(results) if column.per_result or not per_result}
    wanted = [ALIASES.get(name, name) for name in ([by] if isinstance(by, str) else by)]
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"there is no column {name!r} to group by{hint}; there is: {', '.join(known)}")
    return Grouping(tuple(known[name] for name in wanted), isinstance(by, str))


def grouped(table: Table, results: Sequence[VerificationResult], by: By) -> dict[Hashable, list[VerificationResult]]:
    """`{group: results}`, each result once, by keywords once for each of them; None is a group like any other."""
    how = grouping(table, results, by, per_result=True)
    groups: dict[Hashable, list[VerificationResult]] = {}
    for index, result in in_order(results):
        for key in how.keys(Row(result, index)):
            groups.setdefault(key, []).append(result)
    return groups
