"""One question, one answering model, one judge: the entry point for scripts and notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import (
    CallableRubricTrait,
    LLMRubricTrait,
    ModelConfig,
    Rubric,
    Stage,
    VerificationConfig,
    VerificationResult,
    arun_single_model_verification,
    feature,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError, PlanError, TemplateRefused
from karenina_core.pipeline.declaration import Category
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.pipeline.stage import with_traits

Make = Callable[..., Any]
ANSWERER = ModelConfig(model_name="a", interface="answering")
JUDGE = ModelConfig(model_name="j", interface="judging")
RUBRIC = Rubric(llm_traits=[LLMRubricTrait(name="concise", kind="boolean")])
INERT = Rubric(callable_traits=[CallableRubricTrait(name="x", kind="boolean")])


class Scoring(Stage):
    category = Category.RUBRIC
    produces = (ArtifactKeys.RUBRIC_RESULT,)
    included_when = with_traits("llm", "callable")

    def scores(self, type_name: str) -> bool:
        return type_name in ("llm", "callable")

    def execute(self, context: Any) -> None: ...


class Sample(Stage):
    included_when = feature("sample")

    def execute(self, context: Any) -> None: ...


def verify(here: Any, **facts: Any) -> VerificationResult:
    question = facts.pop("question", here.benchmark.questions[0])
    models = (facts.pop("answering_model", ANSWERER), facts.pop("parsing_model", JUDGE))
    return asyncio.run(arun_single_model_verification(question, *models, app=here.app, **facts))


def test_a_right_answer_passes(world: Make) -> None:
    result = verify(world(), run_name="mine", replicate=2)
    assert str(result.outcome) == "passed"
    assert result.template is not None
    assert (result.template.verify_result, result.template.raw_llm_response) == (True, "It is BCL2.")
    assert (result.metadata.run_name, result.metadata.replicate) == ("mine", 2)
    assert (result.rubric, result.deep_judgment, result.deep_judgment_rubric) == (None, None, None)


@pytest.mark.parametrize(
    ("rubric", "mode", "expected"),
    [
        (RUBRIC, "template_only", "template_and_rubric"),
        (
            Rubric(callable_traits=[CallableRubricTrait(name="x", kind="boolean")]),
            "template_only",
            "template_and_rubric",
        ),
        (Rubric(), "template_only", "template_only"),
        (None, "template_only", "template_only"),
        (RUBRIC, "rubric_only", "rubric_only"),
    ],
)
def test_a_rubric_with_any_trait_widens_the_mode(world: Make, rubric: Rubric | None, mode: Any, expected: str) -> None:
    result = verify(world(Scoring), rubric=rubric, evaluation_mode=mode)
    assert result.metadata.evaluation_mode == expected
    assert ("Scoring" in [entry.stage for entry in result.trail]) == (expected != "template_only")
    assert (result.template is None) == (expected == "rubric_only")


def test_without_template_evaluation_the_outcome_is_scored(world: Make) -> None:
    result = verify(world(Scoring), rubric=RUBRIC, evaluation_mode="rubric_only")
    assert str(result.outcome) == "scored"
    assert result.generation.raw_llm_response == "It is BCL2."


def test_features_are_added_to_those_of_the_configuration(world: Make) -> None:
    other = type("Other", (Stage,), {"included_when": feature("other"), "execute": lambda self, context: None})
    result = verify(world(Sample, other), features=["sample"], config=VerificationConfig(features=["other"]))
    assert {"Sample", "Other"} <= {entry.stage for entry in result.trail}


def test_a_given_answer_is_judged_without_asking_again(world: Make) -> None:
    here = world()
    result = verify(here, cached_answer_data=CachedAnswer(raw_llm_response="BCL2 of old"))
    assert here.answerer.calls == []
    assert "BCL2 of old" in here.judge.calls[0].text
    assert (str(result.outcome), result.generation.raw_llm_response) == ("passed", "BCL2 of old")


def test_one_configuration_may_play_both_roles(world: Make) -> None:
    from karenina_core.testing import ScriptedLLM

    llm = ScriptedLLM(lambda call: {"target": "BCL2"} if call.output else "It is BCL2.")
    here = world(llm.adapter("both"))
    both = ModelConfig(model_name="m", interface="both")
    result = verify(here, answering_model=both, parsing_model=both)
    assert str(result.outcome) == "passed"
    assert llm.opened == 2


@pytest.mark.parametrize(
    ("facts", "error", "words"),
    [
        ({"answering_model": ModelConfig(model_name="a", interface="nobody")}, ConfigError, "'nobody'"),
        ({"replicate": 0}, ConfigError, "counts from 1"),
        ({"features": ["tea"]}, PlanError, "'tea'"),
        ({"rubric": RUBRIC}, PlanError, "no stage scores traits"),
    ],
)
def test_what_cannot_work_is_refused_before_any_call(
    world: Make, facts: dict[str, Any], error: type[Exception], words: str
) -> None:
    here = world()
    with pytest.raises(error, match=words):
        verify(here, **facts)
    assert (here.answerer.calls, here.answerer.opened) == ([], 0)


def test_the_same_task_of_the_same_run_has_the_same_id(world: Make) -> None:
    first, second = (verify(world(), run_name="mine") for _ in range(2))
    assert first.metadata.result_id == second.metadata.result_id
    assert verify(world(), run_name="other").metadata.result_id != first.metadata.result_id
    assert first.metadata.timestamp < second.metadata.timestamp


def test_synchronous_callers(world: Make) -> None:
    here = world()
    with here.app:
        result = run_single_model_verification(here.benchmark.questions[0], ANSWERER, JUDGE)
    assert str(result.outcome) == "passed"
    here.app.loop.close()


@pytest.mark.parametrize(("policy", "words"), [("sandbox", "--trust"), ("refuse", "code_policy is 'refuse'")])
def test_an_untrusted_template_is_refused_as_in_a_run(
    world: Make, make_question: Make, policy: Any, words: str
) -> None:
    question = make_question(0, answer_template="class Answer(BaseAnswer): ...", template_language="python")
    config = VerificationConfig(code_policy=policy)
    here = world(questions=[question])
    with pytest.raises(TemplateRefused, match=words) as of_a_run:
        here.prepare(here.config(code_policy=policy))
    with pytest.raises(TemplateRefused) as refused:
        verify(here, config=config)
    assert str(refused.value) == str(of_a_run.value)
    assert (here.answerer.calls, here.answerer.opened) == ([], 0)
    scored = verify(world(Scoring), question=question, config=config, rubric=RUBRIC, evaluation_mode="rubric_only")
    assert str(scored.outcome) == "scored"  # nothing of the template is used
