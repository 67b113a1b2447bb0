"""Views: what they give for results in trouble, by any column, and with any aggregator."""

from __future__ import annotations

from typing import Any

import karenina_results.aggregators
import karenina_results.views
import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_results.kinds import AggregatorRegistry
from karenina_results.views.judgment import JudgmentResults, RubricJudgmentResults
from karenina_results.views.rubric import RubricResults
from karenina_results.views.template import TemplateResults
from karenina_results.views.view import Aggregated
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet, hookimpl
from karenina_core.testing import application
from karenina_core.values.result import GenerationPart, MetadataPart

LAW = settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
RESULTS = st.lists(strategies.results(), max_size=3)


class Extra:
    """A package that brings an aggregator."""

    @hookimpl
    def karenina_register_aggregators(self, registry: Any) -> None:
        registry.add(max, name="largest")


APP = application(karenina_results.views, karenina_results.aggregators, Extra())


def result(
    question: str = "q", model: str = "m", replicate: int = 1, outcome: Any = "passed", **parts: Any
) -> VerificationResult:
    metadata = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{model}-{replicate}",
        question_text="?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        replicate=replicate,
        outcome=outcome,
        completed_without_errors=outcome != "error",
    )
    return VerificationResult(metadata=evolve(metadata, **parts.pop("metadata", {})), **parts)


def template(*results: VerificationResult) -> TemplateResults:
    with APP:
        found: TemplateResults = VerificationResultSet(results).get_template_results()
    return found


def rubric(*parts: RubricPart, **facts: Any) -> RubricResults:
    results = [result(str(number), rubric=part, **facts) for number, part in enumerate(parts)]
    with APP:
        found: RubricResults = VerificationResultSet(results).get_rubric_results()
    return found


# Making them


def test_every_view_has_its_way_in() -> None:
    whole = VerificationResultSet([result()])
    with APP:
        made = [
            whole.get_template_results(),
            whole.get_rubric_results(),
            whole.get_rubrics_results(),
            whole.get_judgment_results(),
            whole.get_rubric_judgments_results(),
        ]
        assert whole.get_rubric_results(include_deep_judgment=True).include_deep_judgment
    classes = [TemplateResults, RubricResults, RubricResults, JudgmentResults, RubricJudgmentResults]
    assert [type(view) for view in made] == classes
    assert all(list(view) == list(whole) and len(view) == 1 and view[0] is whole[0] for view in made)
    assert [str(len(view[1:])) for view in made] == ["0"] * 5
    assert repr(made[0]) == "<TemplateResults of 1 results>"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_view_have_lists_where_a_cell_holds_several_texts(backend: str) -> None:
    several = result(
        metadata={"keywords": ("a", "b; c"), "warnings": ("slow", "cut, off")},
        generation=GenerationPart(answering_mcp_servers=("files", "web")),
        rubric=PART,
    )
    whole = VerificationResultSet([several])
    with APP:
        views = [whole.get_template_results(), whole.get_rubric_results(), whole.get_judgment_results()]
    seen = set()
    for view in views:
        frame = view.to_dataframe(backend=backend)
        names = frame.column_names if backend == "pyarrow" else list(frame.columns)
        for name, texts in {
            "keywords": ["a", "b; c"],
            "warnings": ["slow", "cut, off"],
            "answering_mcp_servers": ["files", "web"],
        }.items():
            if name in names and len(frame):
                cells = frame.column(name).to_pylist() if backend == "pyarrow" else list(frame[name])
                assert [list(cell) for cell in cells] == [texts] * len(cells)
                seen.add(name)
    assert seen == {"keywords", "warnings", "answering_mcp_servers"}


@LAW
@given(RESULTS)
def test_views_hold_every_result_and_filter_like_the_set(results: Any) -> None:
    whole = VerificationResultSet(results)
    for name in karenina_results.views.VIEWS:
        view = whole.view(name, app=APP)
        assert list(view) == list(whole)
        assert list(view.filter(completed_only=True)) == list(whole.filter(completed_only=True))


def test_evidence_stays_asked_for_after_filtering() -> None:
    with APP:
        view = VerificationResultSet([result()]).get_rubric_results(include_deep_judgment=True)
    assert "trait_reasoning" in view.filter(question_ids=["q"]).to_dataframe().columns
    assert "trait_reasoning" not in rubric().to_dataframe().columns


# Verdicts


def test_passed_and_failed_are_verdicts_and_an_error_is_neither() -> None:
    outcomes = ["passed", "failed", "auto_failed", "abstained", "insufficient", "error", "scored", "skipped"]
    view = template(*(result(str(n), outcome=outcome) for n, outcome in enumerate(outcomes)))
    assert [r.metadata.outcome for r in view.filter(passed_only=True)] == ["passed"]
    failed = ["failed", "auto_failed", "abstained", "insufficient"]
    assert [r.metadata.outcome for r in view.filter(failed_only=True)] == failed
    assert [r.metadata.question_id for r in view.filter(failed_only=True, question_ids=["1", "5"])] == ["1"]
    with pytest.raises(ValueError, match="one of passed_only and failed_only"):
        view.filter(passed_only=True, failed_only=True)
    summary = view.get_template_summary()
    assert (summary["num_passed"], summary["num_failed"], summary["num_errors"]) == (1, 4, 1)
    assert (summary["pass_rate"], summary["coverage"], summary["num_questions"]) == (0.2, 2 / 7, 8)
    assert sum(summary["outcomes"].values()) == summary["num_results"] == 8


def test_a_pass_rate_comes_with_what_is_not_in_it() -> None:
    view = template(
        result("a", outcome="passed"),
        result("a", replicate=2, outcome="error"),
        result("b", outcome="failed"),
        result("b", replicate=2, outcome="abstained"),
    )
    rates = view.aggregate_pass_rate()
    assert (rates["a"]["pass_rate"], rates["a"]["coverage"], rates["a"]["items"]) == (1.0, 0.5, 2)
    assert rates["a"]["outcomes"] == {"passed": 1, "error": 1}
    assert 0 < rates["a"]["pass_rate_low"] < rates["a"]["pass_rate_high"] == 1
    assert (rates["b"]["pass_rate"], rates["b"]["answered_accuracy"]) == (0.0, 0.0)
    assert view.aggregate_pass_rate(by="replicate")[2]["pass_rate"] == 0.0


@LAW
@given(RESULTS, st.sampled_from(["question_id", "answering_model", "run_name", "scenario_id", "error", "caveats"]))
def test_groups_of_any_column_hold_every_result_once(results: Any, by: str) -> None:
    view = template(*results)
    rates = view.aggregate_pass_rate(by=by)
    assert sum(group["items"] for group in rates.values()) == len(results)
    assert sum(group["items"] for group in view.aggregate_pass_rate(by=[by, "replicate"]).values()) == len(results)


def test_nothing_is_a_group_of_its_own() -> None:
    named, unnamed = result("a", metadata={"run_name": "night"}), result("b", metadata={"run_name": None})
    assert set(template(named, unnamed).aggregate_pass_rate(by="run_name")) == {"night", None}
    part = RubricPart(llm_trait_scores={"Safe": True})
    with APP:
        view = VerificationResultSet([evolve(r, rubric=part) for r in (named, unnamed)]).get_rubric_results()
    assert {key: found["Safe"].n for key, found in view.aggregate_llm_traits(by="run_name").items()} == {
        "night": 1,
        None: 1,
    }


def test_groups_by_what_other_packages_add_and_by_short_names() -> None:
    view = template(
        result("a", extensions={"site": {"floor": 1}}), result("b", extensions={"site": {"floor": True}}), result("c")
    )
    assert set(view.aggregate_pass_rate(by="site.floor")) == {"1", "true", None}
    assert set(view.aggregate_pass_rate(by="question")) == {"a", "b", "c"}
    assert set(view.aggregate_pass_rate(by=("model", "replicate"))) == {("x:m", 1)}


def test_a_column_that_there_is_not_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"no column 'question_ids' .*did you mean 'question_id'"):
        template(result()).aggregate_pass_rate(by="question_ids")
    with pytest.raises(ValueError, match="no column 'field_name'"):
        template(result()).aggregate_pass_rate(by="field_name")  # results are counted, not their fields


# Checks


def test_refusals_are_counted_although_nothing_was_verified_after_them() -> None:
    refused = ChecksPart(abstention_check_performed=True, abstention_detected=True)
    view = template(
        result("a", outcome="abstained", checks=refused, template=TemplatePart()),
        result("a", replicate=2, checks=evolve(refused, abstention_detected=False)),
        result("a", replicate=3, outcome="error", checks=evolve(refused, abstention_detected=None)),
        result("a", replicate=4),
    )
    assert view.get_abstention_detections() == {"a-m-1": True, "a-m-2": False}
    assert view.aggregate_abstention_rate() == {"a": Aggregated(value=0.5, n=2, errors=1)}


def test_similarities_are_counted_although_nothing_was_verified() -> None:
    part = TemplatePart(embedding_check_performed=True, embedding_similarity_score=0.5)
    view = template(
        result("a", template=part),
        result(
            "a", replicate=2, template=evolve(part, embedding_similarity_score=1.0, embedding_override_applied=True)
        ),
        result("a", replicate=3, template=evolve(part, embedding_similarity_score=None)),
        result("a", replicate=4, template=TemplatePart()),
        result("b"),
    )
    assert view.get_embedding_scores() == {"a-m-1": 0.5, "a-m-2": 1.0}
    assert view.get_embedding_overrides() == {"a-m-1": False, "a-m-2": True, "a-m-3": False}
    found = view.aggregate_embedding_scores()
    assert found == {"a": Aggregated(value=0.75, n=2, errors=1), "b": Aggregated(value=None, n=0)}
    assert view.aggregate_embedding_scores("largest")["a"].value == 1.0


def test_patterns_and_parsed_fields_are_given_by_result() -> None:
    part = TemplatePart(
        parsed_gt_response={"drug": "v"},
        parsed_llm_response={"drug": "w"},
        verify_result=False,
        regex_validations_performed=True,
        regex_overall_success=False,
        regex_validation_results={"dose": False},
    )
    servers = GenerationPart(answering_mcp_servers=["files"])
    view = template(result("a", outcome="failed", template=part, generation=servers), result("b"))
    assert view.get_verification_results() == {"a-m-1": False}
    assert view.get_parsed_responses() == {"a-m-1": {"gt": {"drug": "v"}, "llm": {"drug": "w"}}}
    assert view.get_regex_results() == {"a-m-1": {"dose": False}}
    assert view.get_mcp_usage() == {"a-m-1": ["files"]}
    assert [one.metadata.question_id for one in view.get_results_with_template()] == ["a"]
    assert view.aggregate_regex_success_rate()["a"] == Aggregated(value=0.0, n=1)
    assert view.to_regex_dataframe()["pattern_name"].tolist() == ["dose"]


def test_usage_by_task_and_in_total_are_never_mixed() -> None:
    row = {"calls": 1, "input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    usage = {"generation": row, "parsing": row, "total": {**row, "calls": 2, "total_tokens": 10}}
    view = template(result(generation=GenerationPart(usage_metadata=usage)))
    assert view.to_usage_dataframe()["total_tokens"].sum() == 10
    assert view.to_usage_dataframe(totals_only=True)["total_tokens"].tolist() == [10]
    assert view.to_usage_dataframe(backend="polars")["usage_stage"].to_list() == ["generation", "parsing"]


# Traits

LITERAL = {"type": "llm", "kind": "literal", "classes": ["poor", "good"], "higher_is_better": True}
RECORD = {"type": "llm", "kind": "template", "higher_is_better": None}
PART = RubricPart(
    llm_trait_scores={"Safe": True, "Clarity": 4, "Tone": 1, "Claims.year": 2016, "Claims.by": "FDA"},
    llm_trait_labels={"Tone": "good"},
    regex_trait_scores={"Cites": False},
    callable_trait_scores={"Words": 12.5},
    agentic_trait_scores={"Looked": True},
    metric_trait_scores={"Coverage": {"tp": 2, "fn": 1, "fp": 0, "f1": 0.8, "precision": None}},
    metric_trait_confusion_lists={"Coverage": {"tp": ["a", "b"], "fn": ["c"], "fp": []}},
    extra_trait_scores={"citations": {"Sources": 3}},
    trait_scales={"Tone": LITERAL, "Claims": RECORD},
    trait_provenance={"Safe": "global", "Cites": "question_specific"},
)
BROKEN = RubricPart(
    llm_trait_scores={"Safe": None, "Tone": -1, "Claims": None},
    llm_trait_labels={"Tone": "[MISSING_FROM_RESPONSE]"},
    metric_trait_scores={"Coverage": None},
    trait_scales={"Tone": LITERAL, "Claims": RECORD},
    trait_states={
        "Safe": {"state": "error", "reason": "the server is down"},
        "Tone": {"state": "missing", "reason": "the reply says nothing about it"},
        "Claims": {"state": "invalid", "reason": "no JSON"},
        "Coverage": {"state": "error", "reason": "the server is down"},
        "Dosing": {"state": "skipped", "reason": "no dose"},
    },
)


def test_scores_are_given_by_type_and_failures_apart() -> None:
    view = rubric(PART, BROKEN)
    assert view.get_scores("llm") == {
        "0-m-1": {"Safe": True, "Clarity": 4, "Tone": 1, "Claims": {"year": 2016, "by": "FDA"}}
    }
    assert view.get_scores("regex") == {"0-m-1": {"Cites": False}}
    assert view.get_scores("callable") == {"0-m-1": {"Words": 12.5}}
    assert view.get_scores("agentic") == {"0-m-1": {"Looked": True}}
    assert view.get_scores("metric") == {
        "0-m-1": {"Coverage": {"tp": 2, "fn": 1, "fp": 0, "f1": 0.8, "precision": None}}
    }
    assert view.get_scores("citations") == {"0-m-1": {"Sources": 3}}
    assert view.get_llm_labels() == {"0-m-1": {"Tone": "good"}}
    assert len(view.get_scores()["0-m-1"]) == 9
    assert set(view.get_trait_errors()["1-m-1"]) == {"Safe", "Tone", "Claims", "Coverage"}
    assert view.get_confusion_matrices() == {
        "0-m-1": {"Coverage": {"tp": 2, "fp": 0, "fn": 1, "lists": {"tp": ["a", "b"], "fn": ["c"], "fp": []}}}
    }


def test_aggregates_of_traits_count_failures_beside() -> None:
    found = rubric(PART, BROKEN).aggregate_llm_traits(by="answering_model")["x:m"]
    assert found["Safe"] == Aggregated(value=1.0, n=1, errors=1)
    assert found["Clarity"] == Aggregated(value=4.0, n=1)
    assert found["Tone"] == Aggregated(value=1.0, n=1, errors=1)
    assert found["Claims.year"] == Aggregated(value=2016.0, n=1, errors=1)
    assert (found["Claims.by"].value, found["Claims.by"].n, found["Claims.by"].errors) == (None, 1, 1)
    assert "mode, majority_vote" in found["Claims.by"].note
    assert "Claims" not in found
    assert rubric(PART).aggregate_llm_traits("mode")["0"]["Claims.by"].value == "FDA"


def test_a_record_that_failed_everywhere_has_a_line_of_its_own() -> None:
    assert rubric(BROKEN).aggregate_llm_traits()["0"]["Claims"] == Aggregated(value=None, n=0, errors=1)


def test_skipped_traits_are_counted_as_skipped() -> None:
    found = rubric(PART, BROKEN).aggregate_traits(by="model")["x:m"]
    assert found["Dosing"] == Aggregated(value=None, n=0, skipped=1)
    assert found["Sources"] == Aggregated(value=3.0, n=1)


def test_items_that_never_came_to_their_traits_are_counted_beside() -> None:
    scored = result("a", rubric=RubricPart(llm_trait_scores={"Safe": True}))
    lost = result("b", outcome="error", metadata={"evaluation_mode": "template_and_rubric"})
    without = result("c")
    with APP:
        view = VerificationResultSet([scored, lost, without]).get_rubric_results()
    assert view.aggregate_llm_traits(by="model")["x:m"] == {"Safe": Aggregated(value=1.0, n=1, unreached=1)}
    assert view.aggregate_llm_traits() == {"a": {"Safe": Aggregated(value=1.0, n=1)}, "b": {}, "c": {}}


def test_metrics_and_counts_are_aggregated_one_at_a_time() -> None:
    view = rubric(PART, BROKEN)
    assert view.aggregate_metric_traits("f1", by="model")["x:m"] == {"Coverage": Aggregated(value=0.8, n=1, errors=1)}
    assert view.aggregate_metric_traits("tp", "largest", by="model")["x:m"]["Coverage"].value == 2
    undefined = view.aggregate_metric_traits("precision", by="model")["x:m"]["Coverage"]
    assert undefined == Aggregated(value=None, n=0, errors=1, empty=1)
    assert view.aggregate_metric_traits("recall", by="model") == {"x:m": {}}


def test_groups_by_what_is_known_of_a_trait() -> None:
    found = rubric(PART, BROKEN).aggregate_traits("count", by=("kind", "trait_provenance"), trait_type="llm")
    assert found["boolean", "global"]["Safe"].n == 1
    assert {key: list(traits) for key, traits in found.items() if key[0] == "literal"} == {("literal", None): ["Tone"]}


def test_votes_of_patterns_and_functions() -> None:
    parts = [
        RubricPart(regex_trait_scores={"r": vote}, callable_trait_scores={"c": vote}) for vote in (True, True, False)
    ]
    view = rubric(*parts)
    assert view.aggregate_regex_traits(by="model")["x:m"]["r"] == Aggregated(value=True, n=3)
    assert view.aggregate_callable_traits(by="model")["x:m"]["c"].value is True
    tied = rubric(*parts[1:]).aggregate_regex_traits(by="model")["x:m"]["r"]
    assert tied == Aggregated(value=None, n=2)


def test_the_summary_of_traits_says_where_they_come_from_as_results_do() -> None:
    summary = rubric(PART, BROKEN).get_trait_summary()
    assert summary["provenance"]["global"] == ["Safe"]
    assert summary["provenance"]["question_specific"] == ["Cites"]
    assert summary["traits"]["llm_literal"] == ["Tone"]
    assert summary["traits"]["agentic"] == ["Looked"]
    assert (summary["num_results"], summary["num_with_rubric"], summary["num_with_scores"]) == (2, 2, 1)
    (safe,) = [line for line in summary["lines"] if line["trait"] == "Safe"]
    assert (safe["ok"], safe["errors"], safe["rate"]) == (1, 1, 1.0)


def test_a_type_that_there_is_not_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"no type of trait 'llm_binari' \(did you mean 'llm_binary'\?\)"):
        rubric(PART).to_dataframe("llm_binari")
    assert len(rubric(PART).to_dataframe("citations")) == 1
    assert len(rubric(RubricPart()).to_dataframe("llm_literal")) == 0


# Aggregators


def test_aggregators_are_those_of_plugins_and_of_the_view() -> None:
    view = rubric(PART)
    assert view.list_aggregators() == ["count", "first", "largest", "majority_vote", "mean", "median", "mode"]
    view.register_aggregator("spread", lambda values: max(values) - min(values))
    assert "spread" in view.list_aggregators()
    assert view.aggregate_llm_traits("spread")["0"]["Clarity"].value == 0
    assert view.filter(question_ids=["0"]).aggregate_llm_traits("spread")["0"]["Clarity"].value == 0
    assert "spread" not in rubric(PART).list_aggregators()


@pytest.mark.parametrize("name", ["mean", "largest", "mine"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    view = rubric(PART)
    view.register_aggregator("mine", len)
    with pytest.raises(ValueError, match=f"there is an aggregator '{name}' already"):
        view.register_aggregator(name, len)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a function"):
        rubric(PART).register_aggregator("mine", "mean")  # type: ignore[arg-type]


def test_an_unknown_aggregator_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(KeyError, match=r"no aggregator 'average'.*majority_vote, mean"):
        rubric(PART).aggregate_llm_traits("average")
    with pytest.raises(KeyError):
        template(result()).aggregate_embedding_scores("average")


def test_the_order_of_finishing_changes_no_number() -> None:
    results = [
        result("q", replicate=n, rubric=RubricPart(llm_trait_scores={"t": score}))
        for n, score in ((1, 5), (2, 3), (3, 3), (4, 5))
    ]
    for name in ("first", "mode", "majority_vote", "mean", "median", "count"):
        values = []
        for order in (results, results[::-1]):
            with APP:
                view = VerificationResultSet(order).get_rubric_results()
            values.append(view.aggregate_llm_traits(name)["q"]["t"].value)
        assert values[0] == values[1]
    assert APP.registry(AggregatorRegistry).load("first")([5, 3]) == 5


# Evidence


def deep(**facts: Any) -> DeepJudgmentPart:
    return DeepJudgmentPart(
        **{
            "deep_judgment_mode": "full",
            "deep_judgment_performed": True,
            "deep_judgment_stages_completed": ["excerpts", "reasoning", "parameters"],
            "deep_judgment_model_calls": 3,
            **facts,
        }
    )


def judgment(*results: VerificationResult) -> JudgmentResults:
    with APP:
        found: JudgmentResults = VerificationResultSet(results).get_judgment_results()
    return found


QUOTED = {
    "drug": [
        {"text": "a", "search_results": [{"title": "t", "url": "u", "content": "c"}]},
        {"text": "b", "search_error": "down"},
    ],
    "dose": [{"text": "", "explanation": "nothing is said"}],
}


def test_evidence_for_fields_is_given_by_result() -> None:
    part = deep(
        extracted_excerpts=QUOTED,
        attribute_reasoning={"drug": "named"},
        attributes_without_excerpts=["dose"],
        hallucination_risk_assessment={"drug": "low"},
        deep_judgment_excerpt_retry_count=2,
    )
    view = judgment(result("a", deep_judgment=part), result("b"))
    assert view.get_excerpts()["a-m-1"]["drug"][0]["text"] == "a"
    assert view.get_reasoning() == {"a-m-1": {"drug": "named"}}
    assert view.get_hallucination_risks() == {"a-m-1": {"drug": "low"}}
    assert view.get_attributes_without_excerpts() == {"a-m-1": ["dose"]}
    assert view.get_search_results()["a-m-1"] == {
        "drug": [[{"title": "t", "url": "u", "content": "c"}], None],
        "dose": [],
    }
    metrics = view.get_processing_metrics()["a-m-1"]
    assert (metrics["model_calls"], metrics["excerpt_retries"], metrics["mode"]) == (3, 2, "full")
    summary = view.get_judgment_summary()
    assert (summary["num_results"], summary["num_with_judgment"], summary["num_performed"]) == (2, 1, 1)
    counts = [summary[name] for name in ("num_attributes", "num_with_excerpts", "num_without_excerpts", "num_excerpts")]
    assert counts == [2, 1, 1, 2]
    assert (summary["model_calls"], summary["risks"]) == (3, {"low": 1, None: 1})


def test_quotations_are_counted_where_it_is_known_what_can_be_quoted() -> None:
    view = judgment(
        result("a", deep_judgment=deep(extracted_excerpts=QUOTED)),
        result("a", replicate=2, outcome="error", deep_judgment=DeepJudgmentPart(deep_judgment_mode="full")),
        result(
            "a", replicate=3, deep_judgment=deep(deep_judgment_mode="reasoning_only", attribute_reasoning={"drug": ""})
        ),
        result("b"),
    )
    assert view.aggregate_excerpt_counts() == {
        "a": {"drug": Aggregated(value=2.0, n=1, errors=1), "dose": Aggregated(value=0.0, n=1, errors=1)}
    }
    assert view.aggregate_model_calls()["a"] == Aggregated(value=2.0, n=3)
    assert view.aggregate_model_calls()["b"] == Aggregated(value=None, n=0)
    assert view.aggregate_risk_distribution() == {"a": {None: 3}}


def test_evidence_for_traits_is_given_by_result() -> None:
    part = DeepJudgmentRubricPart(
        extracted_rubric_excerpts={"Safe": [{"text": "a"}]},
        rubric_trait_reasoning={"Safe": "warns"},
        trait_metadata={
            "Safe": {"stages_completed": ["excerpt_extraction"], "model_calls": 3, "excerpt_retry_count": 1},
            "Clear": {"stages_completed": ["excerpt_extraction"], "model_calls": 1, "excerpt_retry_count": 0},
            "Down": {"stages_completed": [], "model_calls": 1, "excerpt_retry_count": 0, "error": "down"},
        },
        traits_without_valid_excerpts=["Clear"],
        rubric_hallucination_risk_assessment={"Safe": {"overall_risk": "high", "per_excerpt_risks": ["high"]}},
        total_deep_judgment_model_calls=5,
        total_excerpt_retries=1,
    )
    with APP:
        view = VerificationResultSet(
            [result("a", deep_judgment_rubric=part), result("b")]
        ).get_rubric_judgments_results()
    assert view.get_excerpts() == {"a-m-1": {"Safe": [{"text": "a"}]}}
    assert view.get_reasoning() == {"a-m-1": {"Safe": "warns"}}
    assert view.get_hallucination_risks()["a-m-1"]["Safe"]["overall_risk"] == "high"
    assert view.get_traits_without_excerpts() == {"a-m-1": ["Clear"]}
    assert view.get_processing_metrics()["a-m-1"]["model_calls"] == 5
    assert view.aggregate_excerpt_counts()["a"] == {
        "Safe": Aggregated(value=1.0, n=1),
        "Clear": Aggregated(value=0.0, n=1),
        "Down": Aggregated(value=None, n=0, errors=1),
    }
    assert view.aggregate_excerpt_retries("largest")["a"]["Safe"].value == 1
    assert view.aggregate_model_calls()["a"]["Safe"] == Aggregated(value=3.0, n=1)
    assert view.aggregate_risk_distribution() == {"a": {"high": 1, None: 2}}
    summary = view.get_rubric_judgment_summary()
    assert (summary["num_traits"], summary["num_with_excerpts"], summary["num_without_excerpts"]) == (3, 1, 1)
    assert (summary["num_excerpts"], summary["model_calls"], summary["excerpt_retries"]) == (1, 5, 1)
    assert summary["risks"] == {"high": 1, None: 2}


def test_the_first_value_is_that_of_the_first_replicate() -> None:
    results = [result(replicate=n, rubric=RubricPart(llm_trait_scores={"t": n})) for n in (3, 1, 2)]
    with APP:
        view = VerificationResultSet(results).get_rubric_results()
    assert view.aggregate_llm_traits("first")["q"]["t"].value == 1
