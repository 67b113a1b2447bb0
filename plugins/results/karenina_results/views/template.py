"""`TemplateResults`: fields, verdicts and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Self

from karenina_runs.summaries.rates import DECIDED, is_due, rates_of

from karenina_core import VerificationResult

from ..columns.table import Row, at
from ..columns.template import REGEX, TEMPLATE, USAGE, USAGE_TOTALS
from ..frames import frame
from .view import ALIASES, Aggregated, By, View, grouped

PLANNED = {
    "question_id": "questions",
    "replicate": "replicates",
    "answering_model": "answering",
    "parsing_model": "parsing",
}
"""Columns whose values are known of items that are not there, and what `Planned.part` calls them."""


class TemplateResults(View):
    """Results as fields, verdicts and checks.

    `to_dataframe()` has a row for every field that a template extracts, and one for every item without fields: errors
    and abstentions are there too. Getters give `{result id: value}` for the results that have the value.
    """

    table = TEMPLATE

    def to_regex_dataframe(self, *, backend: str = "pandas") -> Any:
        """A row for every pattern that a template ran over an answer; see `to_dataframe`."""
        return frame(REGEX, self.results, backend)

    def to_usage_dataframe(self, totals_only: bool = False, *, backend: str = "pandas") -> Any:
        """A row for every task that models were called for; `totals_only`: one for every item. See `to_dataframe`.

        The two are never mixed, so that columns can be added up; rows that are `cached` are not part of a total.
        """
        return frame(USAGE_TOTALS if totals_only else USAGE, self.results, backend)

    def filter(self, *, passed_only: bool = False, failed_only: bool = False, **conditions: Any) -> Self:
        """The same view of the results for which every condition holds; see `VerificationResultSet.filter`.

        `passed_only`: those that passed. `failed_only`: those with a verdict that did not; an error is no verdict.
        """
        if passed_only and failed_only:
            raise ValueError("no result has both passed and failed; give only one of passed_only and failed_only")
        view = super().filter(**conditions)
        if passed_only:
            return view.filter(outcomes=["passed"])
        return view.filter(where=_is_failed) if failed_only else view

    # Getters

    def get_results_with_template(self) -> list[VerificationResult]:
        """The results whose template was to be evaluated."""
        return [result for result in self.results if result.template is not None]

    def get_verification_results(self) -> dict[str, bool]:
        """`verify_result` of the results that have a verdict."""
        return self._of_part(lambda part: part.verify_result)

    def get_embedding_scores(self) -> dict[str, float]:
        """Similarities, where they were computed."""
        return self._of_part(lambda part: part.embedding_similarity_score)

    def get_embedding_overrides(self) -> dict[str, bool]:
        """Whether a wrong field was accepted for its similarity, where that was checked."""
        return self._of_part(lambda part: part.embedding_override_applied if part.embedding_check_performed else None)

    def get_regex_results(self) -> dict[str, dict[str, bool]]:
        """`{pattern: whether it passed}`, where the template has patterns."""
        return self._of_part(lambda part: None if (r := part.regex_validation_results) is None else dict(r))

    def get_abstention_detections(self) -> dict[str, bool]:
        """Whether the model refused to answer, where that was checked, whatever happened afterwards."""
        return self._by_id(lambda r: r.checks.abstention_detected if r.checks.abstention_check_performed else None)

    def get_mcp_usage(self) -> dict[str, list[str]]:
        """The tool servers of the answers that had any."""
        return self._by_id(lambda r: list(r.generation.answering_mcp_servers) or None)

    def get_parsed_responses(self) -> dict[str, dict[str, Any]]:
        """`{"gt": expected fields, "llm": extracted fields}`, where the judge extracted any."""
        return self._of_part(
            lambda part: (
                {"gt": dict(part.parsed_gt_response or {}), "llm": dict(part.parsed_llm_response)}
                if part.parsed_llm_response is not None
                else None
            )
        )

    # Aggregates

    def aggregate_pass_rate(self, by: By = "question_id") -> dict[Hashable, dict[str, Any]]:
        """`{group: {"items", "pass_rate", "partial_credit", "answered_accuracy", "coverage", "outcomes", ...}}`, with
        the intervals of the first two (`_low`, `_high`); see `karenina_runs.summaries.rates.RateTally.rates`. Errors
        are in no rate but in the counts and in the coverage. `by="keywords"` counts an item with each of its keywords.

        Planned items that have no result are in the coverage of groups by question, models and replicate. Of other
        groups they are not known: where there are any, the coverage is None.
        """
        columns = [ALIASES.get(name, name) for name in ([by] if isinstance(by, str) else by)]
        found: dict[Hashable, dict[str, Any]] = {}
        for key, results in grouped(self.table, self.results, by).items():
            values = key if isinstance(key, tuple) else (key,)
            absent = self._absent(dict(zip(columns, values, strict=True)), results)
            outcomes = Counter[str](result.metadata.outcome for result in results)
            rates = rates_of(results, absent or 0) | ({"coverage": None} if absent is None else {})
            found[key] = {"items": len(results), **rates, "outcomes": dict(outcomes)}
        return found

    def _absent(self, group: Mapping[str, Any], results: Sequence[VerificationResult]) -> int | None:
        """How many planned items of a group, by columns, are not there; None where that cannot be known."""
        planned, missing = self.results.planned, self.results.tally.absent
        if planned is None or not missing or not group.keys() <= PLANNED.keys():
            return None if missing else 0
        due = planned.part(**{PLANNED[name]: (value,) for name, value in group.items()})
        abouts = [result.metadata for result in results]
        there = {(about.answering_model, about.parsing_model, about.question_id, about.replicate) for about in abouts}
        return max(0, due.items - len(there))

    def macro_average(self, by: By = "question_id") -> float | None:
        """The mean of the groups' pass rates, each group counting the same; None without a rate. `pass_rate` of the
        summary counts each item the same."""
        found = [row["pass_rate"] for row in self.aggregate_pass_rate(by).values() if row["pass_rate"] is not None]
        return fmean(found) if found else None

    def aggregate_embedding_scores(self, strategy: str = "mean", by: By = "question_id") -> dict[Hashable, Aggregated]:
        """What the similarities of each group come to. Errors are checks that gave none."""
        checked = _checked("template", "embedding_check_performed", "embedding_similarity_score")
        return self._aggregated(strategy, by, checked)

    def aggregate_regex_success_rate(self, by: By = "question_id") -> dict[Hashable, Aggregated]:
        """The share of the answers whose patterns passed, among those that patterns were run over."""
        checked = _checked("template", "regex_validations_performed", "regex_overall_success")
        return self._aggregated("mean", by, checked)

    def aggregate_abstention_rate(self, by: By = "question_id") -> dict[Hashable, Aggregated]:
        """The share of refusals among the answers that were checked for one. Errors are checks that gave nothing."""
        return self._aggregated("mean", by, _checked("checks", "abstention_check_performed", "abstention_detected"))

    def get_template_summary(self) -> dict[str, Any]:
        """Counts and rates of all results. `num_failed` counts verdicts that are not passed, `num_errors` what has
        none because something broke."""
        outcomes = Counter[str](result.metadata.outcome for result in self.results)
        templates = [result.template for result in self.results if result.template is not None]
        return {
            "num_results": len(self),
            "num_with_template": len(templates),
            "num_passed": outcomes["passed"],
            "num_failed": sum(map(_is_failed, self.results)),
            "num_errors": outcomes["error"],
            **rates_of(self.results, self.results.tally.absent),
            "outcomes": dict(outcomes),
            "num_with_embedding": sum(template.embedding_check_performed for template in templates),
            "num_with_regex": sum(template.regex_validations_performed for template in templates),
            "num_with_abstention": sum(result.checks.abstention_check_performed for result in self.results),
            "num_questions": len({result.metadata.question_id for result in self.results}),
        }


def _is_failed(result: VerificationResult) -> bool:
    outcome = result.metadata.outcome
    return is_due(result.metadata) and outcome in DECIDED and outcome != "passed"


def _checked(part: str, performed: str, found: str) -> Callable[[VerificationResult], Iterator[tuple[Any, str]]]:
    """What a check found, of the results in which it was performed; a check that found nothing is an error."""

    def read(result: VerificationResult) -> Iterator[tuple[Any, str]]:
        if at(f"{part}.{performed}")(Row(result)):
            value = at(f"{part}.{found}")(Row(result))
            yield value, "error" if value is None else "ok"

    return read
