"""Dynamic rubrics: traits that are evaluated where the answer takes their concept up, and skipped where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_rubric.evaluation import presence_of
from karenina_runs.execute.item_verifier import arun_single_model_verification

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Category,
    DynamicRubric,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    Stage,
    TraitScore,
)
from karenina_core.errors import ConfigError, PortError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedLLM, ScriptedServer, application

Make = Callable[..., Any]
LAW = settings(database=None, deadline=None, derandomize=True, max_examples=settings().max_examples // 2)
CHECK = "rubric_dynamic_presence_check"
ABSENT = "concept not present in response"

ENOUGH = {"rubric-evaluation", "generate-answer", "finalize-result"}


def boolean(name: str, **facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(name=name, kind="boolean", **{"summary": f"what {name} is about", **facts})


def yes(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, TraitScore(value=True))


def present(*there: bool) -> dict[str, Any]:
    return {CHECK: {f"trait_{number}": value for number, value in enumerate(there, 1)}}


TWO = DynamicRubric(llm_traits=[boolean("dosing"), boolean("safety")])


def test_a_trait_whose_concept_is_absent_is_skipped_and_the_others_are_scored(scored: Make, scripted: Make) -> None:
    static = Rubric(llm_traits=[boolean("clear")])
    done = scored(
        static, scripted("llm", yes("clear", "dosing", "safety")), dynamic_rubric=TWO, replies=present(False, True)
    )
    assert done.rubric.llm_trait_scores == {"clear": True, "safety": True}
    assert done.states == {"clear": "ok", "dosing": "skipped", "safety": "ok"}
    assert done.reason("dosing") == ABSENT
    assert done.rubric.dynamic_rubric_promoted_traits == ("safety",)
    assert done.rubric.dynamic_rubric_skipped_traits == {"dosing": ABSENT}
    assert done.rubric.trait_provenance == {"clear": "global", "dosing": "dynamic", "safety": "dynamic"}
    assert done.result.metadata.warnings == ()
    assert str(done.result.outcome) == "scored"


def test_all_concepts_are_asked_about_in_one_call_and_each_by_itself(scored: Make, scripted: Make) -> None:
    rubric = DynamicRubric(
        llm_traits=[
            boolean("a", summary="dose\nadjustment", description="whether it says how to adjust"),
            boolean("b", summary=" ", description="side effects"),
            boolean("näme / 3", summary="children"),
        ]
    )
    done = scored(rubric, scripted("llm", yes("a", "b", "näme / 3")), replies=present(True, True, True))
    (call,) = done.llm.calls
    assert (call.task, call.temperature) == (CHECK, 0.0)
    assert "- trait_1: dose adjustment\n- trait_2: side effects\n- trait_3: children" in call.text
    for words in ("has no bearing on any other", "in doubt, it is present", "What does aspirin do?", "COX-1 [3]"):
        assert words in call.text
    assert call.text.count("</untrusted-") >= 1
    assert set(done.rubric.dynamic_rubric_promoted_traits) == {"a", "b", "näme / 3"}


def test_the_reply_is_one_boolean_for_every_concept_and_nothing_else(scripted: Make, scored: Make) -> None:
    seen: list[Any] = []

    def judge(request: Any) -> Any:
        seen.append(request)
        return {"trait_1": True, "trait_2": False}

    with ScriptedServer(judge) as server:
        model = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        done = scored(TWO, scripted("llm", yes("dosing", "safety")), model=model)
    assert done.rubric.dynamic_rubric_promoted_traits == ("dosing",)
    (request,) = seen
    assert request.body["temperature"] == 0.0
    form = request.body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert form["schema"]["required"] == ["trait_1", "trait_2"]
    assert form["schema"]["additionalProperties"] is False
    assert {p["type"] for p in form["schema"]["properties"].values()} == {"boolean"}
    usage = done.result.generation.usage_metadata[CHECK]
    assert (usage["calls"], usage["channel"]) == (1, "json_schema")


def test_a_judge_that_gives_a_wrong_reply_is_asked_again(scored: Make, scripted: Make) -> None:
    replies = iter([{"trait_1": "yes", "trait_2": False}, {"trait_1": True}, {"trait_1": True, "trait_2": False}])
    done = scored(TWO, scripted("llm", yes("dosing")), replies=lambda call: next(replies))
    assert "trait_1 must be boolean" in done.llm.calls[1].text
    assert done.states == {"dosing": "error", "safety": "error"}  # one repair is allowed here
    replies = iter([{"trait_1": True}, {"trait_1": True, "trait_2": False}])
    done = scored(TWO, scripted("llm", yes("dosing")), replies=lambda call: next(replies))
    assert done.states == {"dosing": "ok", "safety": "skipped"}


def saying(reply: Any) -> Any:
    """A judge that says this, or raises it."""

    def judge(call: Any) -> Any:
        if isinstance(reply, BaseException):
            raise reply
        return reply

    return judge


@pytest.mark.parametrize(
    "reply",
    [
        PortError("who are you", kind="auth"),
        "They are present.",
        {"trait_1": True},
        {"trait_1": True, "trait_2": None},
        {"dosing": True, "safety": True},
        {},
        RuntimeError("the adapter broke"),
        asyncio.CancelledError(),
        SystemExit(2),
        BaseException("neither"),
    ],
)
def test_where_presence_cannot_be_decided_those_traits_fail_and_nothing_else_is_lost(
    scored: Make, scripted: Make, reply: Any
) -> None:
    static = Rubric(llm_traits=[boolean("clear")], regex_traits=[RegexRubricTrait(name="cited", pattern=r"\[\d+\]")])
    literal = LLMRubricTrait(name="tone", kind="literal", classes={"Dry": None, "Warm": None}, summary="its tone")
    dynamic = DynamicRubric(llm_traits=[boolean("dosing"), literal])
    done = scored(
        static, scripted("llm", yes("clear", "dosing", "tone")), dynamic_rubric=dynamic, replies=saying(reply)
    )
    assert done.rubric.llm_trait_scores == {"clear": True, "dosing": None, "tone": -1}
    assert done.rubric.regex_trait_scores == {"cited": True}
    assert done.states == {"clear": "ok", "dosing": "error", "tone": "error", "cited": "ok"}
    assert done.reason("dosing").startswith("whether its concept is present could not be decided: ")
    assert done.rubric.llm_trait_labels["tone"].startswith("[EVALUATION_ERROR: whether its concept")
    assert done.rubric.dynamic_rubric_promoted_traits == ()
    assert done.rubric.dynamic_rubric_skipped_traits == {}  # not known is not absent
    assert (str(done.result.outcome), done.result.metadata.completed_without_errors) == ("scored", True)


def test_traits_that_code_alone_decides_are_always_evaluated(scored: Make, scripted: Make) -> None:
    rubric = DynamicRubric(
        regex_traits=[RegexRubricTrait(name="cited", pattern=r"\[\d+\]", summary="citations")],
        llm_traits=[boolean("dosing")],
    )
    done = scored(rubric, scripted("llm", yes("dosing")), replies=present(False))
    assert "citations" not in done.llm.calls[0].text
    assert done.rubric.regex_trait_scores == {"cited": True}
    assert done.states == {"dosing": "skipped", "cited": "ok"}
    assert "cited" not in done.rubric.dynamic_rubric_promoted_traits
    alone = DynamicRubric(regex_traits=rubric.regex_traits)
    assert scored(alone).llm.calls == []


def test_an_evaluator_says_whether_its_traits_are_asked_about(scored: Make, scripted: Make) -> None:
    done = scored(DynamicRubric(llm_traits=[boolean("dosing")]), scripted("llm", yes("dosing"), asks_judge=False))
    assert (done.llm.calls, done.states) == ([], {"dosing": "ok"})


def test_the_question_about_concepts_takes_a_place_of_the_item(
    scored: Make, scripted: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[Any] = []

    def asked(case: Any) -> Any:
        cases.append(case)
        return presence_of(case)

    def judge(call: Any) -> Any:
        taken.append(cases[0].places.locked())
        return {"trait_1": True, "trait_2": True}

    taken: list[bool] = []
    monkeypatch.setattr("karenina_rubric.evaluation.presence_of", asked)
    scored(TWO, scripted("llm", yes("dosing", "safety")), replies=judge, config={"rubric_concurrency": 1})
    assert taken == [True]
    assert not cases[0].places.locked()


def test_an_item_that_is_cancelled_while_its_judge_decides_ends(scripted: Make) -> None:
    async def judge(call: Any) -> Any:
        asked.set()
        await asyncio.sleep(30)

    async def main() -> None:
        model = ModelConfig(model_name="m", interface="scripted")
        item = arun_single_model_verification(
            Question(id="q", question="?"),
            model,
            model,
            dynamic_rubric=TWO,
            evaluation_mode="rubric_only",
            cached_answer_data=CachedAnswer(raw_llm_response="x"),
            app=application(
                ScriptedLLM(judge),
                scripted("llm", {}),
                installed={"rubric-evaluation", "generate-answer", "finalize-result"},
            ),
        )
        task = asyncio.ensure_future(item)
        await asyncio.wait_for(asked.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)

    asked = asyncio.Event()
    asyncio.run(main())


def test_where_there_is_nothing_to_read_no_judge_is_asked(scored: Make, scripted: Make) -> None:
    answer = CachedAnswer(raw_llm_response="x", trace_messages=({"role": "tool", "content": "x"},))
    done = scored(TWO, scripted("llm", yes("dosing")), answer=answer, config={"use_full_trace_for_rubric": False})
    assert done.llm.calls == []
    assert done.states == {"dosing": "error", "safety": "error"}
    assert done.rubric.dynamic_rubric_skipped_traits == {}


AGENTIC = AgenticRubricTrait(name="runs", kind="boolean", description="whether the code runs", summary="code")


class Agents(Stage):
    """Takes the place of the stage that investigates agents' traits."""

    category = Category.RUBRIC
    produces = (ArtifactKeys.AGENTIC_TRAIT_SCORES,)
    after = ("RubricEvaluation",)

    def scores(self, type_name: str) -> bool:
        return type_name == "agentic"

    def execute(self, context: Any) -> None:
        context.set_artifact(ArtifactKeys.AGENTIC_TRAIT_SCORES, {})


@pytest.mark.parametrize("there", [True, False])
def test_agents_dynamic_traits_are_asked_about_for_their_stage(scored: Make, scripted: Make, there: bool) -> None:
    rubric = DynamicRubric(llm_traits=[boolean("dosing")], agentic_traits=[AGENTIC])
    done = scored(rubric, Agents, scripted("llm", yes("dosing")), replies=present(True, there))
    assert "- trait_2: code" in done.llm.calls[0].text
    assert ("runs" in done.rubric.dynamic_rubric_promoted_traits) is there
    assert ("runs" in done.rubric.dynamic_rubric_skipped_traits) is not there
    assert done.states == {"dosing": "ok"}


def test_agents_dynamic_traits_that_could_not_be_decided_are_reported(scored: Make, scripted: Make) -> None:
    rubric = DynamicRubric(llm_traits=[boolean("dosing")], agentic_traits=[AGENTIC])
    done = scored(rubric, Agents, scripted("llm", yes("dosing")), replies={CHECK: PortError("away", kind="auth")})
    assert "runs: whether its concept is present could not be decided: away" in done.result.metadata.warnings


def test_only_the_traits_that_are_wanted_are_asked_about(scored: Make, scripted: Make) -> None:
    done = scored(TWO, scripted("llm", yes("safety")), replies=present(True), config={"rubric_trait_names": ["safety"]})
    assert "dosing" not in done.llm.calls[0].text
    assert done.states == {"safety": "ok"}
    assert done.rubric.trait_provenance == {"safety": "dynamic"}


def test_a_dynamic_trait_of_a_static_one_s_name_is_refused_before_any_call(scored: Make, scripted: Make) -> None:
    static = Rubric(regex_traits=[RegexRubricTrait(name="dosing", pattern="mg")], llm_traits=[boolean("safety")])
    with pytest.raises(ConfigError) as caught:
        scored(static, scripted("llm", {}), dynamic_rubric=TWO)
    (problem,) = caught.value.problems
    assert "llm:dosing, llm:safety, regex:dosing" in problem.message
    assert "rename" in problem.message


@LAW
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.booleans())
def test_every_dynamic_trait_is_either_scored_or_skipped_as_the_judge_says(
    scored: Make, scripted: Make, there: list[bool], fails: bool
) -> None:
    names = [f"t{number}" for number in range(len(there))]
    rubric = DynamicRubric(llm_traits=[boolean(name) for name in names])
    replies = {CHECK: PortError("away", kind="auth")} if fails else present(*there)
    done = scored(rubric, scripted("llm", yes(*names)), replies=replies)
    states = ["error"] * len(there) if fails else ["ok" if value else "skipped" for value in there]
    assert done.states == dict(zip(names, states, strict=True))
    part = done.rubric
    assert set(part.dynamic_rubric_promoted_traits) == {n for n, state in done.states.items() if state == "ok"}
    assert set(part.dynamic_rubric_skipped_traits) == {n for n, state in done.states.items() if state == "skipped"}
    assert set(part.llm_trait_scores) == {n for n, state in done.states.items() if state != "skipped"}
