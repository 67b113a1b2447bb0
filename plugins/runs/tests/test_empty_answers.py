"""An empty answer is an answer: asked for once more, kept, wrong without a judge, and in every rate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.answers.answers import ReplayStore
from karenina_runs.resume import resume_run
from karenina_vocabulary.explanations import why

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    LLMRubricTrait,
    ModelConfig,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
    VerificationResultSet,
)
from karenina_core.errors import ConfigError
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import ScriptedLLM, application

Make = Callable[..., Any]
EMPTY = LLMResponse(content="")


def silent(call: Any) -> Any:
    """Answers the first question, and says nothing to the others."""
    return "It is BCL2." if "target 0" in call.text else EMPTY


def judged(call: Any) -> Any:
    assert "It is BCL2." in call.text, "nobody reads an empty answer"
    return {"target": "BCL2"}


def outcomes(results: VerificationResultSet) -> dict[str, str]:
    return {result.metadata.question_id: str(result.outcome) for result in results}


def test_a_model_that_says_nothing_is_wrong_and_in_every_rate(world: Make) -> None:
    here = world(answerer=ScriptedLLM(silent), judge=ScriptedLLM(judged), questions=2)
    results = here.run()
    assert outcomes(results) == {"q0": "passed", "q1": "failed"}
    (row,) = results.get_summary()["models"]
    assert (row["pass_rate"], row["coverage"]) == (0.5, 1.0)
    (nothing,) = [result for result in results if result.metadata.question_id == "q1"]
    assert [effect.reason for effect in nothing.ledger] == ["the answer is empty"]
    assert why(nothing) == "the answer is empty"
    assert nothing.generation.text_flags == ("empty",)
    assert [entry.status for entry in nothing.trail if entry.stage == "ParseTemplate"] == ["skipped"]
    asked = [call.context.question_id for call in here.answerer.calls]
    assert (asked.count("q0"), asked.count("q1")) == (1, 2)


def test_a_second_reply_is_the_answer_and_both_are_served_again(world: Make, tmp_path: Path) -> None:
    said = iter([EMPTY, LLMResponse(content="It is BCL2.")])
    here = world(answerer=ScriptedLLM(lambda call: next(said)), judge=ScriptedLLM(judged))
    first = here.benchmark.run_verification(here.config(), run_dir=tmp_path / "a", app=here.app)
    again = here.benchmark.run_verification(here.config(), run_dir=tmp_path / "b", reuse=[tmp_path / "a"], app=here.app)
    assert outcomes(first) == outcomes(again) == {"q0": "passed"}
    assert len(here.answerer.calls) == 2


@pytest.mark.parametrize("retry_failed", [False, True])
def test_what_was_not_said_is_not_asked_for_again_by_a_resumed_run(
    world: Make, tmp_path: Path, retry_failed: bool
) -> None:
    down: list[bool] = [True]

    def judge(call: Any) -> Any:
        if down:
            raise TimeoutError
        return judged(call)

    here = world(answerer=ScriptedLLM(silent), judge=ScriptedLLM(judge), questions=2)
    first = here.benchmark.run_verification(here.config(), run_dir=tmp_path, app=here.app)
    assert outcomes(first) == {"q0": "error(timeout)", "q1": "failed"}
    calls = len(here.answerer.calls)
    down.clear()
    results = resume_run(
        tmp_path, benchmark=here.benchmark, config=here.config(), app=here.app, retry_failed=retry_failed
    )
    assert outcomes(results) == {"q0": "passed", "q1": "failed"}
    assert len(here.answerer.calls) == calls


@pytest.mark.parametrize("recorded", ["", " \n", {"answer": "", "fields": {"target": "BCL2"}}])
@pytest.mark.parametrize("source", ["python", "file", "store", "saved store"])
def test_recorded_answers_that_are_empty_are_taken(
    world: Make, plugin_names: set[str], tmp_path: Path, recorded: Any, source: str
) -> None:
    judge = ScriptedLLM(judged)
    here = world(judge=judge, questions=2)
    traces = {"q0": "It is BCL2.", "q1": recorded}
    given: dict[str, Any] = {}
    manual = ModelConfig(interface="manual", manual_traces=traces)
    if source == "file":
        from karenina_calls.records.manual import load_manual_traces

        path = tmp_path / "answers.json"
        path.write_text(json.dumps(traces), "utf-8")
        manual = ModelConfig(interface="manual", manual_traces=load_manual_traces(path))
    if "store" in source:
        store = ReplayStore.from_manual_traces(traces, here.benchmark.questions, parsing_model="judging:j")
        if source == "saved store":
            store.save(tmp_path / "store.json")
            store = ReplayStore.load(tmp_path / "store.json")
        given, manual = {"answers": store}, here.config().answering_models[0]
    app = application(here.answerer.adapter("answering"), judge.adapter("judging"), installed=plugin_names | {"manual"})
    config = here.config(answering_models=[manual])
    results = here.benchmark.run_verification(config, app=app, **given)
    assert outcomes(results) == {"q0": "passed", "q1": "failed"}
    assert len(judge.calls) == 1
    assert not here.answerer.calls
    kept = ReplayStore.from_results(results)
    again = here.benchmark.run_verification(config, app=app, answers=kept)
    assert outcomes(again) == outcomes(results)


def test_a_run_without_an_answer_is_still_refused(world: Make) -> None:
    here = world(questions=2)
    store = ReplayStore.from_manual_traces({"q0": ""}, here.benchmark.questions)
    with pytest.raises(ConfigError, match="q1"):
        here.benchmark.run_verification(here.config(), answers=store, app=here.app)


def test_several_judges_share_an_empty_answer(world: Make) -> None:
    here = world(answerer=ScriptedLLM(silent), questions=2, judge=ScriptedLLM(judged))
    judges = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j", "k")]
    results = here.run(here.config(parsing_models=judges))
    assert sorted(str(result.outcome) for result in results) == ["failed", "failed", "passed", "passed"]
    assert len(here.answerer.calls) == 3


TRAITS = [
    LLMRubricTrait(name="polite", kind="boolean", description="Whether it is polite."),
    RegexRubricTrait(name="cited", pattern=r"\[\d+\]"),
    RegexRubricTrait(name="short", pattern=r"^.{0,20}$"),
    AgenticRubricTrait(name="sound", kind="boolean", description="Whether it is sound.", context_mode="trace_only"),
]


@pytest.mark.parametrize("mode", ["rubric_only", "template_and_rubric"])
def test_code_decides_about_traits_of_an_empty_answer_and_no_judge_is_asked(make_question: Make, mode: Any) -> None:
    def nobody(call: Any) -> Any:
        raise AssertionError("nobody reads an empty answer")

    answerer, judge = ScriptedLLM(lambda call: EMPTY), ScriptedLLM(nobody)
    judge.capabilities = evolve(judge.capabilities, supports_tools=True)
    app = application(answerer.adapter("answering"), judge.adapter("judging"), installed=True)
    benchmark = Benchmark(name="b", questions=[make_question(0)], rubric=Rubric.from_traits(TRAITS))
    config = VerificationConfig(
        answering_models=[ModelConfig(model_name="a", interface="answering")],
        parsing_models=[ModelConfig(model_name="j", interface="judging")],
        evaluation_mode=mode,
        features={"abstention"},
    )
    (result,) = benchmark.run_verification(config, app=app)
    assert str(result.outcome) == ("scored" if mode == "rubric_only" else "failed")
    assert result.rubric is not None
    states = {name: row["state"] for name, row in result.rubric.trait_states.items()}
    assert states == {"polite": "skipped", "cited": "ok", "short": "ok", "sound": "skipped"}
    assert result.rubric.regex_trait_scores == {"cited": False, "short": True}
    assert not judge.calls
    assert not result.checks.abstention_check_performed
