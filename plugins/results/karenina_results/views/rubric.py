"""`RubricResults`: scores of traits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

from attrs import define, evolve, field
from karenina_runs.summaries.trait_summary import has_no_scores, trait_lines
from karenina_vocabulary.rubric_part import COUNTS, FAILED, TraitOutcome, read_traits

from karenina_core import VerificationResult
from karenina_core.errors import did_you_mean

from ..columns.rubric import RUBRIC, RUBRIC_WITH_EVIDENCE, TraitRow, trait_rows, trait_type
from ..columns.table import Row
from ..frames import frame
from .view import Aggregated, Aggregator, By, ByName, Scores, View, grouping, in_order

TYPES = ("llm", "regex", "callable", "metric", "agentic")
OF_LLM = ("llm_score", "llm_binary", "llm_literal", "llm_template")


class RubricResults(View):
    """Results as scores of traits, whatever evaluated them and whatever became of them.

    `to_dataframe()` has a row for every trait of every item: one per metric of a metric trait, one per field of a
    record, and one for a trait without a score. Getters give `{result id: {trait: score}}`, scores only; aggregates
    give `{group: {trait: Aggregated}}`, where traits without a score are counted beside.
    """

    table = RUBRIC
    include_deep_judgment = False

    def with_deep_judgment(self) -> Self:
        """The same view whose DataFrames also have the evidence of each trait."""
        view = self._of(self.results)
        view.include_deep_judgment = True
        return view

    def _of(self, results: Any) -> Self:
        view = super()._of(results)
        view.include_deep_judgment = self.include_deep_judgment
        return view

    def to_dataframe(self, trait_type: str = "all", *, backend: str = "pandas") -> Any:
        """The traits of one type, or all of them, as a DataFrame of pandas or polars, or as a `pyarrow.Table`.

        Types: `all`, `llm` and, of these, `llm_score`, `llm_binary`, `llm_literal` and `llm_template`; `regex`,
        `callable`, `metric`, `agentic`, and what types of other packages are called. A trait without any record of
        the type, such as a skipped one, is among `all` only.

        Raises ValueError for a type that there is not or an unknown backend, PluginError where its package is missing.
        """
        table = RUBRIC_WITH_EVIDENCE if self.include_deep_judgment else RUBRIC
        if trait_type != "all":
            of_type = self._of_type(trait_type)
            table = evolve(table, items=lambda result: [row for row in trait_rows(result) if of_type(row.trait)])
        return frame(table, self.results, backend)

    def _of_type(self, wanted: str) -> Callable[[TraitOutcome], bool]:
        """Whether a trait is of a type. Raises ValueError for a type that no package and no trait has."""
        met = {trait.type for _, trait in self._traits() if trait.type}
        known = dict.fromkeys(("all", *TYPES, *OF_LLM, *sorted(met), *self._app.traits))
        if wanted not in known:
            hint = did_you_mean(wanted, known)
            raise ValueError(f"there is no type of trait {wanted!r}{hint}; available: {', '.join(known)}")
        if wanted == "all":
            return lambda trait: True
        return lambda trait: wanted in (trait.type, trait_type(trait))

    def _traits(self) -> Iterator[tuple[VerificationResult, TraitOutcome]]:
        for result in self.results:
            for trait in read_traits(result.rubric):
                yield result, trait

    # Getters

    def _by_trait_name(
        self, wanted: Callable[[TraitOutcome], bool], read: Callable[[TraitOutcome], Any]
    ) -> dict[str, dict[str, Any]]:
        """`{result id: {trait: what is read}}` of the traits that are wanted; results without one are left out."""
        found: dict[str, dict[str, Any]] = {}
        for result, trait in self._traits():
            if wanted(trait):
                found.setdefault(result.metadata.result_id, {})[trait.name] = read(trait)
        return found

    def get_scores(self, trait_type: str = "all") -> dict[str, dict[str, Any]]:
        """The scores of one type of trait, or of all; metric traits with counts and metrics, records by field."""
        of_type = self._of_type(trait_type)
        return self._by_trait_name(lambda t: t.state == "ok" and of_type(t), lambda t: t.value)

    def get_llm_labels(self) -> dict[str, dict[str, str]]:
        """The classes of literal traits that have one."""
        return self._by_trait_name(
            lambda t: t.kind == "literal" and t.state == "ok" and t.label is not None, lambda t: t.label
        )

    def get_confusion_matrices(self) -> dict[str, dict[str, dict[str, Any]]]:
        """`{result id: {trait: {"tp", "fp", "fn", "tn", "lists"}}}` of metric traits; counts without those that the
        trait does not have, and the texts that were counted."""
        return self._by_trait_name(
            lambda t: t.kind == "metric" and t.state == "ok", lambda t: {**t.counts, "lists": dict(t.confusion)}
        )

    def get_trait_errors(self) -> dict[str, dict[str, str]]:
        """`{result id: {trait: why there is no score}}` of traits that were due."""
        return self._by_trait_name(lambda t: t.state in FAILED, lambda t: t.reason)

    # Aggregates

    def aggregate_traits(self, strategy: str = "mean", by: By = "question_id", trait_type: str = "all") -> ByName:
        """What the scores of one type of trait, or of all but metric traits, come to in each group.

        A record is `trait.field`, field by field. Raises KeyError for an unknown aggregator and ValueError for an
        unknown column or type.
        """
        of_type = self._of_type(trait_type)
        return self._by_trait(strategy, by, lambda row: of_type(row.trait) and row.trait.kind != "metric")

    def aggregate_llm_traits(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """Of the traits that the judge scores by reading. Literal ones count with the rank of their class, from 0."""
        return self.aggregate_traits(strategy, by, "llm")

    def aggregate_regex_traits(self, strategy: str = "majority_vote", by: By = "question_id") -> ByName:
        """Of patterns."""
        return self.aggregate_traits(strategy, by, "regex")

    def aggregate_callable_traits(self, strategy: str = "majority_vote", by: By = "question_id") -> ByName:
        """Of functions."""
        return self.aggregate_traits(strategy, by, "callable")

    def aggregate_agentic_traits(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """Of traits that an agent investigated."""
        return self.aggregate_traits(strategy, by, "agentic")

    def aggregate_metric_traits(
        self, metric_name: str = "f1", strategy: str = "mean", by: By = "question_id"
    ) -> ByName:
        """One metric of metric traits, or one of the counts `tp`, `fp`, `fn` and `tn`; only traits that have it."""
        having = {t.name for _, t in self._traits() if metric_name in {**t.counts, **t.metrics}}

        def is_wanted(row: TraitRow) -> bool:
            trait = row.trait
            is_metric = "metric" in (trait.kind, trait.type) or trait.state == "skipped"
            return trait.name in having and is_metric

        def rows(result: VerificationResult) -> Iterator[TraitRow]:
            for trait in read_traits(result.rubric):
                values = trait.counts if metric_name in COUNTS else trait.metrics
                yield TraitRow(trait, trait.name, values.get(metric_name), metric_name)

        return self._by_trait(strategy, by, is_wanted, rows)

    def _by_trait(
        self,
        strategy: str,
        by: By,
        wanted: Callable[[TraitRow], bool],
        rows_of: Callable[[VerificationResult], Iterable[TraitRow]] = trait_rows,
    ) -> ByName:
        aggregate = self.aggregator(strategy)
        how = grouping(self.table, self.results, by)
        groups: dict[Hashable, _Traits] = {}
        fields: dict[str, dict[str, None]] = {}
        for index, result in in_order(self.results):
            if how.per_result:
                for key in how.keys(Row(result, index)):
                    groups.setdefault(key, _Traits()).unreached += has_no_scores(result)
            for row in filter(wanted, rows_of(result)):
                for key in how.keys(Row(result, index, row)):
                    groups.setdefault(key, _Traits()).take(row)
                if row.name != row.trait.name:
                    fields.setdefault(row.trait.name, {})[row.name] = None
        return {group: traits.aggregated(aggregate, fields) for group, traits in groups.items()}

    def get_trait_summary(self) -> dict[str, Any]:
        """What traits there are and what they come to over all results.

        `num_results`, `num_with_rubric`, `num_with_scores` count results. `traits` lists names by type, as
        `to_dataframe` takes it, and `provenance` by where they come from (`global`, `question_specific`, `dynamic`, or
        None where a result does not say). `lines` has the counts and means of each, as the summary of a run.
        """
        types: dict[str | None, dict[str, None]] = {}
        origins: dict[str | None, dict[str, None]] = {}
        scored: set[int] = set()
        for index, result in enumerate(self.results):
            for trait in read_traits(result.rubric):
                types.setdefault(trait_type(trait), {})[trait.name] = None
                origins.setdefault(trait.provenance, {})[trait.name] = None
                if trait.state == "ok":
                    scored.add(index)
        return {
            "num_results": len(self),
            "num_with_rubric": sum(result.rubric is not None for result in self.results),
            "num_with_scores": len(scored),
            "traits": {name: list(names) for name, names in types.items()},
            "provenance": {name: list(names) for name, names in origins.items()},
            "lines": trait_lines(self.results),
        }


@define
class _Traits:
    """The scores of one group by trait or `trait.field`; what failed is known of the trait as a whole."""

    scores: dict[str, Scores] = field(factory=dict)
    failed: dict[str, Scores] = field(factory=dict)
    unreached: int = 0

    def take(self, row: TraitRow) -> None:
        if row.ok:
            self.scores.setdefault(row.name, Scores()).take(row.score)
        else:
            self.failed.setdefault(row.trait.name, Scores()).take(None, row.trait.state)

    def aggregated(self, aggregate: Aggregator, fields: Mapping[str, Iterable[str]]) -> dict[str, Aggregated]:
        """By name. A record that failed has failed for each of its fields, where they are known from other items."""
        for trait, failed in self.failed.items():
            for name in fields.get(trait) or (trait,):
                scores = self.scores.setdefault(name, Scores())
                scores.errors += failed.errors
                scores.skipped += failed.skipped
        return {name: scores.aggregated(aggregate, self.unreached) for name, scores in self.scores.items()}
