"""`JudgmentResults` and `RubricJudgmentResults`: evidence for the fields of templates and for the scores of traits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, DeepJudgmentRubricPart

from karenina_core import VerificationResult

from ..columns.judgment import JUDGMENT, RUBRIC_JUDGMENT, attributes, excerpts_of, judged_traits, quoted
from .view import Aggregated, By, ByName, View

FIELDS_QUOTED = "excerpts"
"""The step after which it is known what can be quoted."""
REASONING_ONLY = "reasoning_only"
"""The mode in which nothing is quoted."""


class JudgmentResults(View):
    """Results as evidence: what deep judgment quoted, concluded and found risky, field by field.

    `to_dataframe()` has a row for every quotation, and one for every field without any. Getters give
    `{result id: value}` for the results that were to be judged deeply.
    """

    table = JUDGMENT
    part = "deep_judgment"

    def get_excerpts(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """`{field: [quotation]}`; an entry without a text explains why there is none."""
        return self._of_part(lambda part: {name: _entries(part, name) for name in part.extracted_excerpts})

    def get_reasoning(self) -> dict[str, dict[str, str]]:
        """`{field: what follows from its evidence}`."""
        return self._of_part(lambda part: dict(part.attribute_reasoning))

    def get_hallucination_risks(self) -> dict[str, dict[str, str]]:
        """`{field: risk}`, where risks were assessed."""
        return self._of_part(lambda part: None if (r := part.hallucination_risk_assessment) is None else dict(r))

    def get_attributes_without_excerpts(self) -> dict[str, list[str]]:
        """The fields for which nothing in the answer could be quoted."""
        return self._of_part(lambda part: list(part.attributes_without_excerpts))

    def get_search_results(self) -> dict[str, dict[str, list[Any]]]:
        """`{field: [what was found for each quotation]}`, None where no search was made or it failed."""
        return self._of_part(
            lambda part: {
                name: [entry.get("search_results") for entry in quoted(_entries(part, name))]
                for name in part.extracted_excerpts
            }
        )

    def get_processing_metrics(self) -> dict[str, dict[str, Any]]:
        """`{"performed", "mode", "model_calls", "excerpt_retries", "stages_completed", "search_enabled"}`."""
        return self._of_part(
            lambda part: {
                "performed": part.deep_judgment_performed,
                "mode": part.deep_judgment_mode,
                "model_calls": part.deep_judgment_model_calls,
                "excerpt_retries": part.deep_judgment_excerpt_retry_count,
                "stages_completed": list(part.deep_judgment_stages_completed),
                "search_enabled": part.deep_judgment_search_enabled,
            }
        )

    def aggregate_excerpt_counts(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """`{group: {field: Aggregated}}` of the number of quotations, among the items that were quoted from.

        Items that did not come so far are errors of their fields, and of all fields where they have none.
        """
        known = dict.fromkeys(name for result in self.results for name in attributes(result))
        return self._by_name(strategy, by, lambda result: _counts(result, known))

    def aggregate_risk_distribution(self, by: By = "question_id") -> dict[Hashable, dict[str | None, int]]:
        """`{group: {risk: fields}}`; None counts the fields that were not assessed."""
        return self._counted(by, _field_risks)

    def aggregate_model_calls(self, strategy: str = "mean", by: By = "question_id") -> dict[Hashable, Aggregated]:
        """What the calls of the judge come to, among the items that were to be judged deeply."""
        return self._aggregated(
            strategy, by, lambda r: [(part.deep_judgment_model_calls, "ok")] if (part := r.deep_judgment) else []
        )

    def get_judgment_summary(self) -> dict[str, Any]:
        """Counts over all results: items, those that were to be judged deeply and that were, fields with and without
        quotations, quotations, calls, retries, and fields by risk."""
        parts = [(result, result.deep_judgment) for result in self.results if result.deep_judgment is not None]
        entries = [
            quoted(_entries(part, name)) if FIELDS_QUOTED in part.deep_judgment_stages_completed else None
            for result, part in parts
            for name in attributes(result)
        ]
        return {
            "num_results": len(self),
            "num_with_judgment": len(parts),
            "num_performed": sum(part.deep_judgment_performed for _, part in parts),
            "num_attributes": len(entries),
            "num_with_excerpts": sum(bool(found) for found in entries),
            "num_without_excerpts": sum(found == [] for found in entries),
            "num_excerpts": sum(len(found) for found in entries if found),
            "model_calls": sum(part.deep_judgment_model_calls for _, part in parts),
            "excerpt_retries": sum(part.deep_judgment_excerpt_retry_count for _, part in parts),
            "risks": dict(Counter(risk for result, _ in parts for risk in _field_risks(result))),
        }


def _entries(part: DeepJudgmentPart, name: str) -> list[dict[str, Any]]:
    return [dict(entry) for entry in excerpts_of(part.extracted_excerpts, name)]


def _counts(result: VerificationResult, known: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """`(field, quotations, state)`; nothing for an item that was not to be quoted from."""
    part = result.deep_judgment
    if part is None or part.deep_judgment_mode == REASONING_ONLY:
        return
    if FIELDS_QUOTED in part.deep_judgment_stages_completed:
        yield from ((name, len(quoted(_entries(part, name))), "ok") for name in attributes(result))
    else:
        yield from ((name, 0, "error") for name in attributes(result) or known)


def _field_risks(result: VerificationResult) -> Iterator[str | None]:
    part = result.deep_judgment
    known: Mapping[str, str] = (part.hallucination_risk_assessment if part is not None else None) or {}
    yield from (known.get(name) for name in attributes(result))


TRAITS_QUOTED = "excerpt_extraction"
"""The step after which it is known what can be quoted."""
Counted = Callable[[DeepJudgmentRubricPart, str], tuple[Any, str]]


class RubricJudgmentResults(View):
    """Results as evidence: what deep judgment quoted, concluded and found risky, trait by trait.

    `to_dataframe()` has a row for every quotation, and one for every trait without any. Getters give
    `{result id: value}` for the results with a trait that was to be judged deeply.
    """

    table = RUBRIC_JUDGMENT
    part = "deep_judgment_rubric"

    def get_excerpts(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """`{trait: [quotation]}`; an entry without a text explains why there is none."""
        return self._of_part(
            lambda part: {
                name: [dict(entry) for entry in excerpts_of(part.extracted_rubric_excerpts, name)]
                for name in part.extracted_rubric_excerpts
            }
        )

    def get_reasoning(self) -> dict[str, dict[str, str]]:
        """`{trait: what follows from its evidence}`."""
        return self._of_part(lambda part: dict(part.rubric_trait_reasoning))

    def get_hallucination_risks(self) -> dict[str, dict[str, Any]]:
        """`{trait: {"overall_risk", "per_excerpt_risks"}}` of the traits that were assessed."""
        return self._of_part(lambda part: dict(part.rubric_hallucination_risk_assessment))

    def get_traits_without_excerpts(self) -> dict[str, list[str]]:
        """The traits for which nothing in the answer could be quoted."""
        return self._of_part(lambda part: list(part.traits_without_valid_excerpts))

    def get_processing_metrics(self) -> dict[str, dict[str, Any]]:
        """`{"model_calls", "traits_evaluated", "excerpt_retries", "traits"}`; `traits` as in `trait_metadata`."""
        return self._of_part(
            lambda part: {
                "model_calls": part.total_deep_judgment_model_calls,
                "traits_evaluated": part.total_traits_evaluated,
                "excerpt_retries": part.total_excerpt_retries,
                "traits": dict(part.trait_metadata),
            }
        )

    def aggregate_excerpt_counts(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """`{group: {trait: Aggregated}}` of the number of quotations; errors are traits that did not come so far."""
        return self._by_trait(strategy, by, _excerpts)

    def aggregate_excerpt_retries(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """`{group: {trait: Aggregated}}` of how often the judge was asked for quotations again."""
        return self._by_trait(strategy, by, lambda part, name: (_recorded(part, name).get("excerpt_retry_count"), "ok"))

    def aggregate_model_calls(self, strategy: str = "mean", by: By = "question_id") -> ByName:
        """`{group: {trait: Aggregated}}` of the calls of the judge."""
        return self._by_trait(strategy, by, lambda part, name: (_recorded(part, name).get("model_calls"), "ok"))

    def aggregate_risk_distribution(self, by: By = "question_id") -> dict[Hashable, dict[str | None, int]]:
        """`{group: {risk: traits}}`; None counts the traits that were not assessed."""
        return self._counted(by, _trait_risks)

    def _by_trait(self, strategy: str, by: By, counted: Counted) -> ByName:
        def scores(result: VerificationResult) -> Iterator[tuple[str, Any, str]]:
            if (part := result.deep_judgment_rubric) is not None:
                yield from ((name, *counted(part, name)) for name in judged_traits(result))

        return self._by_name(strategy, by, scores)

    def get_rubric_judgment_summary(self) -> dict[str, Any]:
        """Counts over all results: items, those with traits that were to be judged deeply, these traits, those with
        and without quotations, quotations, calls, retries, and traits by risk."""
        traits = [
            (part, name)
            for result in self.results
            if (part := result.deep_judgment_rubric) is not None
            for name in judged_traits(result)
        ]
        counts = [_excerpts(part, name) for part, name in traits]
        known = [count for count, state in counts if state == "ok"]
        parts = [part for result in self.results if (part := result.deep_judgment_rubric) is not None]
        return {
            "num_results": len(self),
            "num_with_judgment": len(parts),
            "num_traits": len(traits),
            "num_with_excerpts": sum(count > 0 for count in known),
            "num_without_excerpts": sum(count == 0 for count in known),
            "num_excerpts": sum(known),
            "model_calls": sum(part.total_deep_judgment_model_calls for part in parts),
            "excerpt_retries": sum(part.total_excerpt_retries for part in parts),
            "risks": dict(Counter(risk for result in self.results for risk in _trait_risks(result))),
        }


def _recorded(part: DeepJudgmentRubricPart, name: str) -> Mapping[str, Any]:
    recorded = part.trait_metadata.get(name)
    return recorded if isinstance(recorded, Mapping) else {}


def _excerpts(part: DeepJudgmentRubricPart, name: str) -> tuple[int, str]:
    count = len(quoted(excerpts_of(part.extracted_rubric_excerpts, name)))
    came_so_far = count or TRAITS_QUOTED in (_recorded(part, name).get("stages_completed") or ())
    return count, "ok" if came_so_far else "error"


def _trait_risks(result: VerificationResult) -> Iterator[str | None]:
    part = result.deep_judgment_rubric
    for name in judged_traits(result):
        assessed = part.rubric_hallucination_risk_assessment.get(name) if part is not None else None
        yield assessed.get("overall_risk") if isinstance(assessed, Mapping) else None
