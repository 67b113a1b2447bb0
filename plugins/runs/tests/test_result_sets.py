"""Sets of results: filtering and grouping drop nothing that belongs to the run, sizes and usage add up."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_cli.summary import model_parts
from karenina_runs.plan.items import LeftOut
from karenina_runs.summaries.summary import Tally
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet, hookimpl
from karenina_core.errors import UnknownName
from karenina_core.testing import application
from karenina_core.values.result import GenerationPart, MetadataPart

LAW = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
RESULTS = st.lists(strategies.results(), max_size=4)
OF_THE_RUN = [a.name for a in fields(VerificationResultSet) if a.name != "results"]


def of_a_run(results: list[VerificationResult]) -> VerificationResultSet:
    return VerificationResultSet(
        results,
        run_dir=Path("run"),
        left_out=(LeftOut("q9", "not finished"),),
        notes=("x falls back to y",),
        sink_failures={"jsonl:out": "disk full"},
    )


def result(question: str = "q", model: str = "m", replicate: int = 1, **parts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{model}-{replicate}",
        question_text="?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        replicate=replicate,
        outcome="passed",
    )
    return VerificationResult(metadata=metadata, **parts)


def kept_of_the_run(found: VerificationResultSet, whole: VerificationResultSet) -> bool:
    return all(getattr(found, name) == getattr(whole, name) for name in OF_THE_RUN)


# Nothing is dropped


@LAW
@given(RESULTS, st.sampled_from(["question", "answering", "parsing", "both", "replicate"]))
def test_groups_hold_every_result_once_and_all_that_belongs_to_the_run(results: Any, by: str) -> None:
    whole = of_a_run(results)
    groups: dict[Any, VerificationResultSet] = {
        "question": whole.group_by_question,
        "replicate": whole.group_by_replicate,
    }.get(by, lambda: whole.group_by_model(by))()  # type: ignore[arg-type]
    assert sum(map(len, groups.values())) == len(whole)
    assert sorted(map(id, whole)) == sorted(id(one) for group in groups.values() for one in group)
    assert all(len(group) and kept_of_the_run(group, whole) for group in groups.values())


@LAW
@given(RESULTS, st.data())
def test_a_condition_and_its_opposite_split_the_set(results: Any, data: Any) -> None:
    whole = of_a_run(results)
    name = data.draw(st.sampled_from(["has_template", "has_rubric", "has_judgment"]))
    parts = [whole.filter(**{name: wanted}) for wanted in (True, False)]
    assert sorted(id(one) for part in parts for one in part) == sorted(map(id, whole))
    assert all(kept_of_the_run(part, whole) for part in parts)
    assert kept_of_the_run(whole[1:], whole)
    assert list(whole.filter(**dict.fromkeys(("has_template", "has_rubric", "has_judgment")))) == list(whole)


@LAW
@given(RESULTS)
def test_every_filter_keeps_what_it_names_and_nothing_else(results: Any) -> None:
    whole = of_a_run(results)
    names = ["question_id", "answering_model", "parsing_model", "replicate", "outcome"]
    for one, name in ((one, name) for one in results for name in names):
        wanted = getattr(one.metadata, name)
        expected = [r for r in whole if getattr(r.metadata, name) == wanted]
        assert list(whole.filter(**{f"{name}s": [wanted]})) == expected
    assert list(whole.filter(completed_only=True)) == [r for r in whole if r.metadata.completed_without_errors]


def test_one_text_is_one_name() -> None:
    assert len(VerificationResultSet([result("abc"), result("a")]).filter(question_ids="abc")) == 1


def test_evidence_for_fields_or_for_traits_is_a_judgment() -> None:
    whole = VerificationResultSet(
        [result(deep_judgment=DeepJudgmentPart()), result(deep_judgment_rubric=DeepJudgmentRubricPart()), result()]
    )
    assert [len(whole.filter(has_judgment=wanted)) for wanted in (True, False, None)] == [2, 1, 3]


def test_groups_are_named_and_ordered_as_they_come() -> None:
    whole = VerificationResultSet([result("b"), result("a", "other", 2), result("b", "other")])
    assert list(whole.group_by_question()) == whole.get_question_ids() == ["b", "a"]
    assert list(whole.group_by_model()) == whole.get_model_names() == ["x:m", "x:other"]
    assert whole.get_model_names("parsing") == ["x:judge"]
    assert list(whole.group_by_model("both")) == ["x:m | x:judge", "x:other | x:judge"]
    assert list(whole.group_by_replicate()) == [1, 2]
    with pytest.raises(ValueError, match="answering, parsing, both"):
        whole.group_by_model("judging")  # type: ignore[arg-type]


# Usage and summary


@LAW
@given(st.lists(st.lists(st.sampled_from(["generation", "parsing", "embedding"]), unique=True), max_size=5), st.data())
def test_usage_by_task_adds_up_to_the_totals(tasks: list[list[str]], data: Any) -> None:
    from karenina_calls.usage_totals import usage_metadata

    from karenina_core.ports.model_client import CallRecord
    from karenina_core.values.message import UsageMetadata

    def call(task: str) -> CallRecord:
        used: UsageMetadata = data.draw(strategies.usage())
        return CallRecord(
            task=task, usage=used, attempts=data.draw(st.integers(1, 3)), model="m", retries={}, seconds=0.5
        )

    results = [
        result(str(number), generation=GenerationPart(usage_metadata=usage_metadata([call(task) for task in named])))
        for number, named in enumerate(tasks)
    ]
    found = VerificationResultSet(results).usage_by_task()
    totals = [r.generation.usage_metadata["total"] for r in results if r.generation.usage_metadata]
    for name in ("calls", "attempts", "input_tokens", "output_tokens", "total_tokens"):
        assert sum(row[name] for row in found.values()) == sum(total[name] for total in totals)
    assert Counter(task for named in tasks for task in named) == {task: row["items"] for task, row in found.items()}
    unknown = any(total["cost_usd"] is None for total in totals)
    assert any(row["cost_usd"] is None for row in found.values()) == unknown


@pytest.mark.parametrize(("reads", "told"), [((None, None), None), ((None, 0), 0), ((30, 12), 42)])
def test_tokens_from_a_cache_are_known_where_a_reply_says_so(reads: tuple[int | None, ...], told: int | None) -> None:
    rows = [{"calls": 1, "attempts": 1, "input_tokens": 50, "cache_read_tokens": read} for read in reads]
    usage = [{"generation": rows[0], "parsing": rows[1]}, {"generation": {**rows[0], "cached": True}}]
    parts = [GenerationPart(usage_metadata=row) for row in usage]
    whole = VerificationResultSet([result(str(n), generation=part) for n, part in enumerate(parts)])
    assert whole.get_summary()["cached_input_tokens"] == told
    assert [row["cache_read_tokens"] for row in whole.usage_by_task().values()] == list(reads)


def test_an_answer_that_is_shared_is_counted_where_it_was_paid_for() -> None:
    paid = {"calls": 1, "attempts": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "cost_usd": 0.5}
    rows = [{"generation": paid, "total": paid}, {"generation": {**paid, "cached": True}, "total": {}}]
    whole = VerificationResultSet(
        [result(str(n), generation=GenerationPart(usage_metadata=r)) for n, r in enumerate(rows)]
    )
    assert whole.usage_by_task()["generation"]["total_tokens"] == 15
    assert whole.usage_by_task()["generation"]["cost_usd"] == 0.5
    assert whole.get_summary()["tokens"] == {"input": 10, "output": 5, "total": 15}


def test_one_untold_call_makes_the_tokens_and_the_cost_of_its_task_unknown() -> None:
    told = {"calls": 1, "attempts": 1, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "cost_usd": 0.5}
    untold = {**told, "cost_usd": None, "usage_unavailable": True}
    rows = [{"generation": told, "parsing": told}, {"generation": untold}]
    found = VerificationResultSet(
        [result(str(n), generation=GenerationPart(usage_metadata=r)) for n, r in enumerate(rows)]
    ).usage_by_task()
    assert (found["generation"]["usage_unavailable"], found["generation"]["cost_usd"]) == (True, None)
    assert (found["parsing"]["usage_unavailable"], found["parsing"]["cost_usd"]) == (False, 0.5)


@LAW
@given(RESULTS)
def test_the_summary_of_any_set_is_json_and_its_counts_are_those_of_the_set(results: Any) -> None:
    whole = of_a_run(results)
    found = json.loads(json.dumps(whole.get_summary(), allow_nan=False))
    assert found["num_results"] == len(whole) == sum(row["items"] for row in found["replicate_stats"])
    assert found["num_with_template"] == len(whole.filter(has_template=True))
    assert found["num_with_rubric"] == len(whole.filter(has_rubric=True))
    assert found["num_with_judgment"] == len(whole.filter(has_judgment=True))
    assert (
        found["num_completed"] == len(whole.filter(completed_only=True)) == sum(m["completed"] for m in found["models"])
    )
    assert found["num_questions"] == len(whole.get_question_ids())
    assert found["num_models"] == len(whole.get_model_names())
    assert found["num_parsing_models"] == len(whole.get_model_names("parsing"))
    assert found["num_replicates"] == len(whole.group_by_replicate())
    told = [note for note in found["notes"] if not note.startswith("every score of the")]
    assert (len(found["left_out"]), len(told)) == (1, 1)


def test_times_are_there_when_asked_for() -> None:
    usage = {"generation": {"calls": 1, "seconds": 0.5}, "total": {"calls": 1, "seconds": 0.5}}
    one = result(generation=GenerationPart(usage_metadata=usage))
    whole = VerificationResultSet([evolve(one, metadata=evolve(one.metadata, execution_time=2.5))])
    found = whole.get_summary(times=True)
    assert (found["total_execution_time"], found["models"][0]["execution_time"]) == (2.5, 2.5)
    assert found["usage"]["generation"]["seconds"] == 0.5
    without = whole.get_summary()
    assert "total_execution_time" not in without
    assert "seconds" not in without["usage"]["generation"]
    assert {name: value for name, value in found.items() if name not in ("usage", "models")} == {
        **{name: value for name, value in without.items() if name not in ("usage", "models")},
        "total_execution_time": 2.5,
    }


def test_what_answering_agents_did_is_added_up() -> None:
    agents: list[Any] = [
        {"iterations": 3, "tool_calls": 2, "tool_call_counts": {"search": 2}, "suspect_failed_tool_calls": 1},
        {"iterations": 1, "tool_calls": 1, "tool_call_counts": {"search": 1, "odd": None}},
        None,
    ]
    whole = VerificationResultSet(
        [result(str(n), generation=GenerationPart(agent_metrics=a)) for n, a in enumerate(agents)]
    )
    found = whole.get_summary()
    assert found["tool_usage_stats"] == {
        "items": 2,
        "tool_calls": 3,
        "iterations": 4,
        "suspect_failed_tool_calls": 1,
        "calls_by_tool": {"search": 3, "odd": 0},
    }
    assert found["trace_length_stats"] == {"min": 0, "mean": 0, "median": 0, "max": 0}
    assert VerificationResultSet().get_summary()["tool_usage_stats"] is None


@given(st.lists(st.integers(0, 6), min_size=1, max_size=9))
def test_lengths_of_traces_are_summed_up_as_by_the_standard_library(lengths: list[int]) -> None:
    found = VerificationResultSet(
        [result(generation=GenerationPart(trace_messages=({"role": "user"},) * length)) for length in lengths]
    ).get_summary()["trace_length_stats"]
    assert found == {
        **{"min": min(lengths), "max": max(lengths)},
        **{"mean": statistics.mean(lengths), "median": statistics.median(lengths)},
    }
    assert VerificationResultSet().get_summary()["trace_length_stats"] is None


def test_traits_are_listed_by_type() -> None:
    part = RubricPart(llm_trait_scores={"Safe": True}, extra_trait_scores={"citations": {"Sources": 3}})
    found = VerificationResultSet(
        [result(rubric=part), result("other", rubric=evolve(part, regex_trait_scores={"r": True}))]
    )
    assert found.get_summary()["rubric_traits"] == {"llm": ["Safe"], "citations": ["Sources"], "regex": ["r"]}


# Views


class Loud:
    """A view of somebody else."""

    def __init__(self, results: VerificationResultSet) -> None:
        self.shouted = [one.metadata.question_text.upper() for one in results]


class LoudPlugin:
    @hookimpl
    def karenina_register_views(self, registry: Any) -> None:
        registry.add(Loud, name="loud")


def test_a_view_is_made_by_the_plugin_that_brings_it() -> None:
    whole = VerificationResultSet([result(template=TemplatePart())])
    app = application(LoudPlugin())
    assert whole.view("loud", app=app).shouted == ["?"]
    with app:
        assert whole.view("loud").shouted == ["?"]


def test_a_view_that_nobody_brings_is_refused_by_name() -> None:
    with pytest.raises(UnknownName, match="no view is called 'templat'"):
        VerificationResultSet().view("templat", app=application(LoudPlugin()))


@pytest.mark.parametrize(
    ("hook", "thing", "told"),
    [
        ("views", 3, "is not a view"),
        ("aggregators", 3, "is not an aggregator"),
        ("formats", object, "is not a valid file format: it has no write"),
    ],
)
def test_what_cannot_be_one_is_refused_when_it_is_registered(hook: str, thing: Any, told: str) -> None:
    class Wrong:
        pass

    def register(self: Any, registry: Any) -> None:
        registry.add(thing, name="wrong")

    name = f"karenina_register_{hook}"
    register.__name__ = name
    setattr(Wrong, name, hookimpl(register))
    (plugin,) = application(Wrong()).plugins
    assert plugin.state == "failed"
    assert told in plugin.reason


def test_an_outcome_that_there_is_not_is_no_empty_set() -> None:
    with pytest.raises(ValueError, match="unknown outcome 'pased'; the outcomes are passed, failed"):
        VerificationResultSet().filter(outcomes=["pased"])
    with pytest.raises(ValueError, match="unknown outcome 'wrong'"):
        VerificationResultSet().filter(outcomes="wrong")


def test_a_single_replicate_needs_no_list() -> None:
    whole = VerificationResultSet([result(replicate=number) for number in (1, 2, 1)])
    assert [len(whole.filter(replicates=number)) for number in (1, 2, 3)] == [2, 1, 0]


def test_results_are_counted_once_however_often_numbers_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    add = Tally.add

    def watched(tally: Tally, found: VerificationResult, position: int | None = None) -> None:
        counted.append(found.metadata.question_id)
        add(tally, found, position)

    monkeypatch.setattr(Tally, "add", watched)
    found = VerificationResultSet([result("q1"), result("q2")])
    assert [found.get_summary()["num_results"], found.tally.calls.replies, found.usage_by_task()] == [2, 0, {}]
    assert model_parts(found)
    assert counted == ["q1", "q2"]
    for others in (evolve(found, results=[result("q3")]), found[:1], found.filter(question_ids="q2")):
        assert others.get_summary()["num_results"] == 1, "other results are counted anew"
    assert counted == ["q1", "q2", "q3", "q1", "q2"]
