"""Looking at results: a group without a name is one, a refusal is seen, and a trait is from where the result says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import karenina_results.aggregators
import karenina_results.views
import pytest
from attrs import evolve
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.testing import application
from karenina_core.values.result import MetadataPart

LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
)
APP = application(karenina_results.views, karenina_results.aggregators)
ME = ModelIdentity("x", "m")
METADATA = MetadataPart(question_id="q", template_id="t", result_id="r", question_text="?", answering=ME, parsing=ME)


def result(number: int = 0, run_name: str | None = None, outcome: Any = "passed", **parts: Any) -> VerificationResult:
    metadata = evolve(METADATA, result_id=f"r{number}", replicate=number + 1, run_name=run_name, outcome=outcome)
    return VerificationResult(metadata=metadata, **parts)


def seen(name: str, results: Sequence[VerificationResult]) -> Any:
    return VerificationResultSet(results).view(name, app=APP)


# A group without a name is a group

Sizes = Callable[[Sequence[VerificationResult]], dict[Any, int]]
"""From results to the number of items of each run."""


def sizes_of_ours(results: Sequence[VerificationResult]) -> dict[Any, int]:
    rates = seen("template", results).aggregate_pass_rate(by="run_name")
    return {name: group["items"] for name, group in rates.items()}


def sizes_by_pandas(results: Sequence[VerificationResult]) -> dict[Any, int]:
    """Groups a DataFrame as pandas does by itself."""
    found = seen("template", results).to_dataframe().groupby("run_name")["result_index"].nunique()
    return dict(found.items())


def no_group_is_lost(sizes: Sizes) -> None:
    @LAW
    @given(st.lists(st.none() | st.sampled_from(["night", "day"]), max_size=5))
    @example([None, "night"])
    def law(names: list[str | None]) -> None:
        results = [result(number, name) for number, name in enumerate(names)]
        assert sizes(results) == Counter(names)

    law()


def test_items_without_a_name_are_a_group() -> None:
    no_group_is_lost(sizes_of_ours)


def test_grouping_as_pandas_does_by_itself_breaks_that() -> None:
    with pytest.raises(AssertionError):
        no_group_is_lost(sizes_by_pandas)


# A refusal is seen although nothing is verified after it

Rate = Callable[[Sequence[VerificationResult]], float | None]
"""From results to the share of refusals."""


def rate_of_ours(results: Sequence[VerificationResult]) -> float | None:
    found = seen("template", results).aggregate_abstention_rate(by="answering_model")
    value: float | None = found["x:m"].value
    return value


def rate_of_verified(results: Sequence[VerificationResult]) -> float | None:
    """Looks only at templates that were verified."""
    verified = [r for r in results if r.template is not None and r.template.template_verification_performed]
    checked = [r.checks.abstention_detected for r in verified if r.checks.abstention_check_performed]
    return sum(map(bool, checked)) / len(checked) if checked else None


def refusals_count(rate: Rate) -> None:
    @LAW
    @given(st.lists(st.booleans(), min_size=1, max_size=6))
    @example([True, False])
    def law(refused: list[bool]) -> None:
        results = [
            result(
                number,
                outcome="abstained" if no else "passed",
                checks=ChecksPart(abstention_check_performed=True, abstention_detected=no),
                template=TemplatePart(template_verification_performed=not no, verify_result=not no),
            )
            for number, no in enumerate(refused)
        ]
        assert rate(results) == sum(refused) / len(refused)

    law()


def test_a_refusal_counts_although_nothing_is_verified_after_it() -> None:
    refusals_count(rate_of_ours)


def test_looking_at_verified_templates_only_breaks_that() -> None:
    with pytest.raises(AssertionError):
        refusals_count(rate_of_verified)


# Traits that only agents scored are seen

Names = Callable[[VerificationResult], set[str]]
"""From a result to the traits that a table of it shows."""
SCORES = st.dictionaries(st.sampled_from("abc"), st.booleans(), max_size=2)


def names_of_ours(one: VerificationResult) -> set[str]:
    return set(seen("rubric", [one]).to_dataframe(backend="polars")["trait_name"].to_list())


def names_where_performed(one: VerificationResult) -> set[str]:
    """Leaves out results whose standard rubric was not evaluated."""
    performed = one.rubric is not None and one.rubric.rubric_evaluation_performed
    return names_of_ours(one) if performed else set()


def every_trait_is_seen(names: Names) -> None:
    @LAW
    @given(SCORES, SCORES)
    @example({}, {"a": True})
    def law(standard: dict[str, bool], agentic: dict[str, bool]) -> None:
        assume(not set(standard) & set(agentic))
        part = RubricPart(
            rubric_evaluation_performed=bool(standard), llm_trait_scores=standard, agentic_trait_scores=agentic
        )
        assert names(result(rubric=part)) == set(standard) | set(agentic)

    law()


def test_traits_that_only_agents_scored_are_seen() -> None:
    every_trait_is_seen(names_of_ours)


def test_asking_whether_the_standard_rubric_was_evaluated_breaks_that() -> None:
    with pytest.raises(AssertionError):
        every_trait_is_seen(names_where_performed)


# A trait is from where the result says

Origin = Callable[[Sequence[VerificationResult]], str]
"""From results to whether their trait `t` is of the benchmark (`global`) or of a question."""


def origin_of_ours(results: Sequence[VerificationResult]) -> str:
    origins = seen("rubric", results).get_trait_summary()["provenance"]
    (found,) = [origin for origin, names in origins.items() if "t" in names]
    return str(found)


def origin_by_coverage(results: Sequence[VerificationResult]) -> str:
    """Takes a trait that every result has for one of the benchmark."""
    having = [r for r in results if r.rubric is not None and "t" in r.rubric.llm_trait_scores]
    return "global" if len(having) == len(results) else "question_specific"


def the_origin_is_told(origin: Origin) -> None:
    @LAW
    @given(st.sampled_from(["global", "question_specific"]), st.lists(st.booleans(), min_size=1, max_size=4))
    @example("global", [True, False])
    def law(told: str, having: list[bool]) -> None:
        assume(any(having))
        part = RubricPart(llm_trait_scores={"t": True}, trait_provenance={"t": told})
        results = [result(number, rubric=part if has else None) for number, has in enumerate(having)]
        assert origin(results) == told

    law()


def test_a_trait_is_from_where_the_result_says() -> None:
    the_origin_is_told(origin_of_ours)


def test_telling_it_from_how_many_results_have_the_trait_breaks_that() -> None:
    with pytest.raises(AssertionError):
        the_origin_is_told(origin_by_coverage)


# The risk of a trait is read from where it is written

Risk = Callable[[VerificationResult], Any]
"""From a result to the risk of its trait `t`."""


def risk_of_ours(one: VerificationResult) -> Any:
    (row,) = seen("rubric_judgments", [one]).to_dataframe(backend="pyarrow").to_pylist()
    return row["trait_overall_risk"]


def risk_under_another_name(one: VerificationResult) -> Any:
    """Asks the trait's metadata for what nobody writes there."""
    part = one.deep_judgment_rubric
    return part.trait_metadata["t"].get("hallucination_assessment") if part is not None else None


def the_risk_is_found(risk: Risk) -> None:
    @LAW
    @given(st.sampled_from(["none", "low", "medium", "high"]))
    def law(told: str) -> None:
        part = DeepJudgmentRubricPart(
            trait_metadata={"t": {"model_calls": 1}},
            rubric_hallucination_risk_assessment={"t": {"overall_risk": told, "per_excerpt_risks": []}},
        )
        assert risk(result(deep_judgment_rubric=part)) == told

    law()


def test_the_risk_of_a_trait_is_found_where_it_is_written() -> None:
    the_risk_is_found(risk_of_ours)


def test_looking_elsewhere_breaks_that() -> None:
    with pytest.raises(AssertionError):
        the_risk_is_found(risk_under_another_name)


# What belongs to the run stays

Filter = Callable[[VerificationResultSet], VerificationResultSet]


def filter_of_ours(results: VerificationResultSet) -> VerificationResultSet:
    return results.filter(replicates=[1])


def filter_that_starts_anew(results: VerificationResultSet) -> VerificationResultSet:
    """Makes a set of what it keeps."""
    return VerificationResultSet([one for one in results if one.metadata.replicate == 1])


def the_run_stays(keep: Filter) -> None:
    @LAW
    @given(st.lists(st.text(max_size=5), max_size=2), st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
    @example(["a model fell back"], {})
    def law(notes: list[str], failures: dict[str, str]) -> None:
        whole = VerificationResultSet([result(0), result(1)], notes=tuple(notes), sink_failures=failures)
        kept = keep(whole)
        assert (len(kept), kept.notes, kept.sink_failures) == (1, whole.notes, whole.sink_failures)

    law()


def test_a_filtered_set_still_knows_its_run() -> None:
    the_run_stays(filter_of_ours)


def test_making_a_new_set_breaks_that() -> None:
    with pytest.raises(AssertionError):
        the_run_stays(filter_that_starts_anew)
