"""What all views have in common: groups of rows by the values of columns, and what the scores of a group come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Self

from attrs import define, field, frozen
from karenina_runs.results.results import VerificationResultSet

from karenina_core import Karenina, VerificationResult
from karenina_core.errors import did_you_mean
from karenina_core.plugin.application import current

from ..columns.table import Column, Row, Table
from ..frames import frame
from ..kinds import AggregatorRegistry

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
            raise ValueError(f"there is no column {name!r} to group by{hint}; available: {', '.join(known)}")
    return Grouping(tuple(known[name] for name in wanted), isinstance(by, str))


def grouped(table: Table, results: Sequence[VerificationResult], by: By) -> dict[Hashable, list[VerificationResult]]:
    """`{group: results}`, each result once, by keywords once for each of them; None is a group like any other."""
    how = grouping(table, results, by, per_result=True)
    groups: dict[Hashable, list[VerificationResult]] = {}
    for index, result in in_order(results):
        for key in how.keys(Row(result, index)):
            groups.setdefault(key, []).append(result)
    return groups


class View(Sequence[VerificationResult]):
    """Results and one way to look at them. It is a sequence of results, all of them, whatever became of them."""

    table: ClassVar[Table]
    part: ClassVar[str] = "template"
    """The part of a result that most getters read."""

    def __init__(self, results: VerificationResultSet, *, app: Karenina | None = None) -> None:
        self.results = results
        self._app = current(app)
        self._own: dict[str, Aggregator] = {}

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[VerificationResult]:
        return iter(self.results)

    def __getitem__(self, index: Any) -> Any:
        """A result; of a slice, a view of these results."""
        return self._of(self.results[index]) if isinstance(index, slice) else self.results[index]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} results>"

    def _of(self, results: VerificationResultSet) -> Self:
        """The same view of other results."""
        view = type(self)(results, app=self._app)
        view._own = dict(self._own)
        return view

    def to_dataframe(self, *, backend: str = "pandas") -> Any:
        """The results as a DataFrame of pandas or polars, or as a `pyarrow.Table`.

        Raises ValueError for an unknown backend, PluginError where its package is not installed.
        """
        return frame(self.table, self.results, backend)

    def filter(self, **conditions: Any) -> Self:
        """The same view of the results for which every condition holds; see `VerificationResultSet.filter`."""
        return self._of(self.results.filter(**conditions))

    # Aggregators

    def register_aggregator(self, name: str, function: Aggregator) -> None:
        """Make a function of a list of values known to this view under a name. Raises ValueError where it is taken.

        Plugins bring aggregators for every view with the hook `karenina_register_aggregators`.
        """
        if name in self.list_aggregators():
            raise ValueError(f"there is an aggregator {name!r} already; choose another name")
        if not callable(function):
            raise ValueError(f"the aggregator {name!r} must be a function of a list of values, not {function!r}")
        self._own[name] = function

    def list_aggregators(self) -> list[str]:
        """The names of all aggregators."""
        return sorted({*self._app.registry(AggregatorRegistry), *self._own})

    def aggregator(self, name: str) -> Aggregator:
        """The aggregator of this name. Raises KeyError, and PluginError where it cannot be loaded."""
        if name in self._own:
            return self._own[name]
        known = self._app.registry(AggregatorRegistry)
        if name not in known:
            raise KeyError(f"there is no aggregator {name!r}; available: {', '.join(self.list_aggregators())}")
        found: Aggregator = known.load(name)
        return found

    # Groups

    def _aggregated(
        self, strategy: str, by: By, scores: Callable[[VerificationResult], Iterable[tuple[Any, str]]]
    ) -> dict[Hashable, Aggregated]:
        """What `(score, state)` of the results of each group come to."""
        found = self._by_name(strategy, by, lambda result: (("", *score) for score in scores(result)))
        nothing = Scores().aggregated(self.aggregator(strategy))
        return {key: found.get(key, {}).get("", nothing) for key in grouped(self.table, self.results, by)}

    def _by_name(
        self, strategy: str, by: By, scores: Callable[[VerificationResult], Iterable[tuple[str, Any, str]]]
    ) -> dict[Hashable, dict[str, Aggregated]]:
        """What `(name, score, state)` of the results of each group come to, by name."""
        aggregate = self.aggregator(strategy)
        found: dict[Hashable, dict[str, Aggregated]] = {}
        for key, results in grouped(self.table, self.results, by).items():
            named: dict[str, Scores] = {}
            for result in results:
                for name, score, state in scores(result):
                    named.setdefault(name, Scores()).take(score, state)
            if named:
                found[key] = {name: group.aggregated(aggregate) for name, group in named.items()}
        return found

    def _counted(
        self, by: By, read: Callable[[VerificationResult], Iterable[str | None]]
    ) -> dict[Hashable, dict[str | None, int]]:
        """How often the results of each group say what is read; groups without anything are left out."""
        groups = grouped(self.table, self.results, by).items()
        counts = {key: Counter(value for result in results for value in read(result)) for key, results in groups}
        return {key: dict(found) for key, found in counts.items() if found}

    def _of_part(self, read: Callable[[Any], Any]) -> dict[str, Any]:
        """`{result id: what is read of the part}` of the results that have both."""
        return self._by_id(lambda r: read(part) if (part := getattr(r, self.part)) is not None else None)

    def _by_id(self, read: Callable[[VerificationResult], Any]) -> dict[str, Any]:
        """`{result id: what is read}` of the results that have it."""
        found = ((result.metadata.result_id, read(result)) for result in self.results)
        return {name: value for name, value in found if value is not None}
