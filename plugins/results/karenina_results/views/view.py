"""What all views have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

from karenina_runs.results.results import VerificationResultSet

from karenina_core import Karenina, VerificationResult
from karenina_core.plugin.application import current

from ..columns.table import Table
from ..frames import frame
from ..kinds import AggregatorRegistry
from .grouping import Aggregated, Aggregator, By, Scores, grouped


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
            raise KeyError(f"there is no aggregator {name!r}; there is: {', '.join(self.list_aggregators())}")
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
