"""Canaries of everything that a run asks its judges for: each path has a rate of its own, and a threshold."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_judging.canaries import (
    ABSTENTION,
    AGENTIC,
    DIFFERENT,
    METRIC,
    PATHS,
    RUBRIC,
    SUFFICIENCY,
    TEMPLATE,
    canary,
)
from karenina_runs.plan.canaries import canary_at, canary_items
from karenina_runs.plan.estimate import estimated
from karenina_runs.plan.prepare import prepare
from karenina_runs.summaries.canaries import exceeded
from karenina_runs.summaries.intervals import wilson

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    LLMRubricTrait,
    MetricRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    RubricTrait,
    VerificationConfig,
    VerificationResultSet,
)
from karenina_core.testing import ScriptedServer, ServedRequest

FIELD = {"name": "target", "type": "str", "description": "What the response names", "ground_truth": "BCL2"}
DATA = json.dumps({"class_name": "Answer", "fields": [{**FIELD, "verify_with": {"type": "ExactMatch"}}]})
QUOTED = "declines to answer the question"


def benchmark(*traits: RubricTrait) -> Benchmark:
    made = Benchmark.create("targets").with_questions(
        [Question(id="q", question="What is it?", answer_template=DATA, template_language="karenina-template")]
    )
    return made.with_rubric(Rubric.from_traits(traits)) if traits else made


def config(url: str = "http://localhost:1", **facts: Any) -> VerificationConfig:
    model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=url)
    return VerificationConfig(answering_models=[model], parsing_models=[model], canaries=True, **facts)


def judge(obeyed: Collection[str]) -> Any:
    """A judge that does as it is told on these paths, and its work on the others."""

    def reply(request: ServedRequest) -> Any:
        if request.schema is None:  # the answer, or an agent's report
            there = (canary(n, path).answer for path in PATHS for n in range(DIFFERENT))
            return next((answer for answer in there if answer in request.text), "It is BCL2.")
        asked = request.schema["properties"]
        is_canary = "BCL2" not in request.text
        if "target" in asked:
            return {"target": "BCL2"}
        if "abstention_detected" in asked:
            if not is_canary or ABSTENTION not in obeyed:
                found = {"answer": "It is BCL2.", "disclaimer": None, "abstention_detected": False}
            else:
                found = {"answer": None, "disclaimer": QUOTED, "abstention_detected": True}
            return {name: value for name, value in {**found, "reasoning": "r"}.items() if name in asked}
        if "sufficient" in asked:
            enough = not is_canary or SUFFICIENCY in obeyed
            evidence = "it is said" if enough else None
            fields = {name: {"evidence": evidence, "found": enough} for name in asked["fields"]["properties"]}
            return {"fields": fields, "reasoning": "r", "sufficient": enough}
        if "answer" in asked:
            number = next(n for n in range(DIFFERENT) for path in PATHS if canary(n, path).answer in request.text)
            told = TEMPLATE in obeyed and canary(number).answer in request.text
            return {"answer": canary(number).wanted if told else "what it says"}
        if "tp_1" in asked:
            covered = is_canary and METRIC in obeyed
            quoted = ["Antwort" if "Antwort" in request.text else "response"] if covered else []
            return {"tp_1": {"excerpts": quoted, "wrong_attempts": [], "covered": covered}}
        return dict.fromkeys(
            asked, is_canary and (AGENTIC if "record of an investigation" in request.text else RUBRIC) in obeyed
        )

    return reply


@pytest.mark.parametrize("obeyed", [set(), {ABSTENTION, RUBRIC, METRIC}, {SUFFICIENCY, AGENTIC}])
def test_every_path_of_a_run_has_its_rate_and_its_threshold(obeyed: set[str]) -> None:
    traits = [
        LLMRubricTrait(name="clear", kind="boolean", description="It is clear."),
        MetricRubricTrait(name="parts", metrics=["recall"], tp_instructions=["It names the protein."]),
        AgenticRubricTrait(name="sound", kind="boolean", description="It is sound.", context_mode="trace_only"),
    ]
    facts: dict[str, Any] = {"features": {"abstention", "sufficiency"}, "evaluation_mode": "template_and_rubric"}
    app = Karenina.installed()
    with ScriptedServer(judge(obeyed)) as server:
        asked = config(server.url, **facts)
        planned = estimated(prepare(benchmark(*traits), asked, app=app))
        found = benchmark(*traits).run_verification(asked, app=app)
    assert isinstance(found, VerificationResultSet)
    of_traits = [row for row in planned["rows"] if row["canaries"] and row["task"].startswith("rubric_")]
    assert [row["calls"]["expected"] for row in of_traits] == [10] * 4  # of each type, and of agents a second task
    rows = {row["path"]: row for row in found.canaries["judges"]}
    assert rows.keys() == set(PATHS)
    # what has to be quoted counts only where it is there: not in invisible letters, nor what this judge never quotes
    most = {ABSTENTION: 8, METRIC: 8}
    for path, row in rows.items():
        assert (row["canaries"], row["errors"]) == (10, 0), path
        assert row["obeyed"] == (most.get(path, 10) if path in obeyed else 0), path
        assert row["exceeded"] == (path in obeyed)
        assert row["rate_low"] == wilson(row["obeyed"] / 10, 10).low
        assert row["rate_high"] == wilson(row["obeyed"] / 10, 10).high
    assert [line.partition("of the path ")[2].partition(",")[0] for line in exceeded(found.canaries)] == sorted(obeyed)
    assert [str(result.outcome) for result in found] == ["passed"]


def test_a_run_has_canaries_of_what_it_asks_for_alone() -> None:
    deep = LLMRubricTrait(name="clear", kind="boolean", deep_judgment_enabled=True)
    app = Karenina.installed()
    plain = canary_items(prepare(benchmark(), config(features={"sufficiency"}), app=app))
    assert [canary_at(item.position).path for item in plain] == [TEMPLATE] * 10 + [SUFFICIENCY] * 10
    every = canary_items(prepare(benchmark(deep), config(evaluation_mode="rubric_only"), app=app))
    assert [canary_at(item.position).path for item in every] == [TEMPLATE] * 10 + [RUBRIC] * 10
    traits = [trait for item in every[10:] for trait in item.rubric or ()]
    assert [trait.deep_judgment_enabled for trait in traits] == [True] * 10  # type: ignore[attr-defined]
    assert len({item.task for item in (*plain, *every[10:])}) == 30


def test_agents_are_tried_as_they_are_used_and_where_they_can_be() -> None:
    app = Karenina.installed()
    by_agent: dict[str, Any] = {"features": {"agentic_parsing"}, "agentic_judge_context": "trace_and_workspace"}
    with ScriptedServer(judge({TEMPLATE})) as server:
        found = benchmark().run_verification(config(server.url, **by_agent), app=app)
    assert isinstance(found, VerificationResultSet)
    (row,) = found.canaries["judges"]
    assert (row["path"], row["obeyed"], row["errors"]) == (TEMPLATE, 10, 0)
    assert row["calls"] == 20  # an investigation and the reading of its report
    trait = AgenticRubricTrait(name="sound", kind="boolean", description="It is sound.", context_mode="trace_only")
    with ScriptedServer(judge(set())) as server:
        its_own = ModelConfig(model_name="other", interface="openai_endpoint", endpoint_base_url=server.url)
        asked = config(server.url, evaluation_mode="rubric_only")
        own = benchmark(trait, evolve(trait, name="other", model_override=its_own)).run_verification(asked, app=app)
    assert isinstance(own, VerificationResultSet)
    assert own.canaries["untried"] == ["openai_endpoint:other"]
    assert any("no canaries for openai_endpoint:other" in note for note in own.notes)
    asked = config(evaluation_mode="template_and_rubric")
    unable = evolve(asked, parsing_models=[evolve(asked.parsing_models[0], batch=True)])
    for settings, paths in ((asked, {TEMPLATE, AGENTIC}), (unable, {TEMPLATE})):
        items = canary_items(prepare(benchmark(trait), settings, app=app))
        assert {canary_at(item.position).path for item in items} == paths


@given(st.integers(0, 3 * DIFFERENT), st.sampled_from(PATHS[1:]))
def test_a_canary_of_another_path_is_wrong_in_what_it_tells_the_judge(number: int, path: str) -> None:
    found = canary(number, path)
    assert found.wanted not in found.answer
    assert found.wanted in found.quality
    assert (found.id, found.path) != (canary(number).id, canary(number).path)
    assert canary(number, path).family == canary(number).family
