"""Everything that can be checked before a model is called, and what a run will consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_runs.plan.recorded import check_recorded
from karenina_runs.plan.templates import TemplateLoader
from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import (
    CallableRubricTrait,
    LLMRubricTrait,
    ModelConfig,
    RegexRubricTrait,
    Rubric,
    Stage,
    VerificationConfig,
    hookimpl,
)
from karenina_core.errors import ConfigError, PlanError, TemplateRefused
from karenina_core.pipeline.declaration import Category
from karenina_core.pipeline.stage import with_traits
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.benchmark import MissingTrait
from karenina_core.values.question import TemplateSource

Make = Callable[..., Any]
PYTHON = (
    "class Answer(BaseAnswer):\n    target: str = Field(description='x')\n    def verify(self):\n        return True\n"
)
TRAIT = LLMRubricTrait(name="concise", kind="boolean")
INERT = CallableRubricTrait(name="inert", kind="boolean")


class Scoring(Stage):
    """Stands for the stage that evaluates rubrics."""

    name = "RubricEvaluation"
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ArtifactKeys.RUBRIC_RESULT,)
    included_when = with_traits("llm", "regex", "callable", "metric")

    def scores(self, type_name: str) -> bool:
        return type_name != "agentic"

    def execute(self, context: Any) -> None: ...


def untouched(here: Any) -> None:
    assert (here.answerer.calls, here.judge.calls, here.answerer.opened) == ([], [], 0)


def problems(caught: Any) -> dict[str, str]:
    return {problem.path: problem.message for problem in caught.value.problems}


# Which questions


def test_what_is_left_out_is_told_with_its_reason(world: Make, make_question: Make) -> None:
    here = world(
        questions=[
            make_question(0),
            make_question(1, finished=False),
            make_question(2, finished=True),
            make_question(3, answer_template=None),
            make_question(4, answer_template=" \n"),
            make_question(5, placeholder_template=True, finished=True),
        ]
    )
    prepared = here.prepare()
    assert [q.id for q in prepared.questions] == ["q0", "q2"]
    assert {left.question_id: left.reason for left in prepared.left_out} == {
        "q1": "not finished",
        "q3": "has no answer template",
        "q4": "has no answer template",
        "q5": "has no answer template",
    }
    results = here.run()
    assert results.left_out == prepared.left_out
    assert len(results) == 2


def test_chosen_questions_run_in_the_order_of_the_benchmark(world: Make) -> None:
    here = world(questions=4)
    assert [q.id for q in here.prepare(question_ids=["q3", "q1", "q3"]).questions] == ["q1", "q3"]
    assert here.prepare(question_ids=["q3"]).left_out == ()


def test_unknown_questions_are_refused_with_a_suggestion(world: Make) -> None:
    with pytest.raises(ConfigError) as caught:
        world(questions=2).prepare(question_ids=["q1", "q11", "zz"])
    assert [str(problem) for problem in caught.value.problems] == [
        "questions: there is no question 'q11' (did you mean 'q1'?)",
        "questions: there is no question 'zz'",
    ]


def test_nothing_to_do_is_an_error_with_the_reasons(world: Make, make_question: Make) -> None:
    with pytest.raises(ConfigError, match=r"nothing to verify \(q0: not finished\)"):
        world(questions=[make_question(0, finished=False)]).prepare()
    with pytest.raises(ConfigError, match="the benchmark has no questions"):
        world(questions=[]).prepare()


def test_where_there_is_only_a_rubric_the_mode_for_that_is_proposed(world: Make, make_question: Make) -> None:
    bare = make_question(0, answer_template=None, template_language=None)
    rubric = Rubric(regex_traits=[RegexRubricTrait(name="cited", pattern="x")])
    with pytest.raises(ConfigError, match=r"has no answer template\); to score .* the mode rubric_only \(--mode"):
        world(questions=[bare], rubric=rubric).prepare()
    with pytest.raises(
        ConfigError, match=r"nothing to verify \(q0: has no answer template\); if there are reference answers"
    ):
        world(questions=[bare]).prepare()
    with pytest.raises(ConfigError, match=r"no answer template\); if a column of the sheet .* --map .*; if there"):
        world(questions=[bare], metadata={"table": {"columns": {"Golden": "custom"}}}).prepare()


def test_recorded_answers_have_to_be_to_questions(make_question: Make) -> None:
    every = [make_question(0), make_question(1)]

    def notes(**answers: str) -> list[str]:
        model = ModelConfig(interface="manual", manual_traces=answers)
        return list(check_recorded(VerificationConfig(answering_models=[model]), every, every[:1]))

    assert notes(q0="a", q1="a") == [], "q1 is a question too, although it is not asked"
    assert notes(q0="a", q00="a", x="a", y="a", z="a") == [
        "recorded answers for no question of the benchmark: 'q00' (did you mean 'q0'?), 'x', 'y', and 1 more"
    ]
    assert notes(**{every[0].question: "a"}) == []
    with pytest.raises(ConfigError) as caught:
        notes(q1="a", qq0="a")
    assert problems(caught) == {
        "answering_models[0].manual_traces": "none of 2 recorded answers belongs to a question of the run; a key is a "
        "question's id, its exact text, or the MD5 of its text; for no question of the benchmark: 'qq0' (did you mean "
        "'q0'?)"
    }


# Mode


@pytest.mark.parametrize(
    ("rubric", "own", "expected"),
    [
        (None, None, "template_only"),
        (Rubric(), None, "template_only"),
        (Rubric(callable_traits=[INERT]), None, "template_only"),
        (Rubric(llm_traits=[TRAIT]), None, "template_and_rubric"),
        (None, Rubric(llm_traits=[TRAIT]), "template_and_rubric"),
    ],
)
def test_an_unset_mode_follows_the_benchmark(
    world: Make, make_question: Make, rubric: Rubric | None, own: Rubric | None, expected: str
) -> None:
    here = world(Scoring, questions=[make_question(0, question_rubric=own)], rubric=rubric)
    assert here.prepare().mode == expected


def test_an_explicit_mode_is_honoured(world: Make) -> None:
    here = world(Scoring, rubric=Rubric(llm_traits=[TRAIT]))
    prepared = here.prepare(here.config(evaluation_mode="template_only"))
    assert prepared.mode == "template_only"
    assert set(prepared.rubrics.values()) == {None}
    assert "RubricEvaluation" not in [stage.name for plan in prepared.plans.values() for stage in plan.stages]


def test_rubric_only_needs_no_templates_but_traits(world: Make, make_question: Make) -> None:
    questions = [
        make_question(0, answer_template=None, question_rubric=Rubric(llm_traits=[TRAIT])),
        make_question(1, question_rubric=Rubric(callable_traits=[INERT])),
        make_question(2),
    ]
    here = world(Scoring, questions=questions)
    prepared = here.prepare(here.config(evaluation_mode="rubric_only"))
    assert [q.id for q in prepared.questions] == ["q0"]
    assert {left.reason for left in prepared.left_out} == {"has no rubric traits that can be scored"}


def test_traits_that_nobody_scores_are_refused_before_any_call(world: Make) -> None:
    here = world(rubric=Rubric(llm_traits=[TRAIT]))
    with pytest.raises(PlanError, match="no stage scores traits of the type llm"):
        here.prepare()
    untouched(here)


def test_traits_of_types_that_are_not_installed_are_refused_before_any_call(world: Make) -> None:
    missing = [
        MissingTrait(name="Hedges", reason="install it."),
        MissingTrait(name="Own", question_id="q1", reason="too."),
    ]
    here = world(Scoring, questions=2, rubric=Rubric(llm_traits=[TRAIT]), missing_traits=missing)
    with pytest.raises(ConfigError, match=r"install it\. To run without it, .*rubric_trait_names") as caught:
        here.prepare()
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigError) as caught:
        here.prepare(question_ids=["q0"])
    assert len(caught.value.problems) == 1, "that of another question does not matter"
    untouched(here)
    assert here.prepare(here.config(evaluation_mode="template_only")).mode == "template_only"
    assert here.prepare(here.config(rubric_trait_names=[TRAIT.name])).mode == "template_and_rubric"


def test_traits_of_one_name_clash(world: Make, make_question: Make) -> None:
    here = world(
        Scoring,
        questions=[make_question(0, question_rubric=Rubric(llm_traits=[TRAIT]))],
        rubric=Rubric(llm_traits=[TRAIT]),
    )
    with pytest.raises(ConfigError, match="question q0: rubrics clash on llm:concise"):
        here.prepare()


def test_a_feature_that_nobody_serves_is_refused(world: Make) -> None:
    here = world()
    with pytest.raises(PlanError, match="'tea'"):
        here.prepare(here.config(features=["tea"]))


# Code


@pytest.mark.parametrize(("policy", "words"), [("sandbox", "--trust"), ("refuse", "code_policy is 'refuse'")])
def test_untrusted_python_is_refused_before_any_call(world: Make, make_question: Make, policy: str, words: str) -> None:
    questions = [make_question(0), make_question(1, answer_template=PYTHON, template_language="python")]
    here = world(questions=questions)
    with pytest.raises(TemplateRefused, match=r"1 of 2 questions \(first: q1\)") as caught:
        here.prepare(here.config(code_policy=policy))
    assert words in str(caught.value)
    untouched(here)


def test_trusted_python_runs_and_the_result_says_how(world: Make, make_question: Make) -> None:
    here = world(questions=[make_question(0, answer_template=PYTHON, template_language="python"), make_question(1)])
    results = here.run(here.config(code_policy="trusted"))
    assert [r.metadata.template_isolation for r in results] == ["in-process", "no-code"]
    assert [r.metadata.outcome for r in results] == ["passed", "passed"]


def test_a_language_that_nobody_loads_is_that_item_s_error(world: Make, make_question: Make) -> None:
    here = world(questions=[make_question(0, template_language="prolog"), make_question(1)])
    first, second = sorted(here.run(), key=lambda result: str(result.metadata.question_id))
    assert str(first.outcome) == "error(template)"
    assert "'prolog'" in (first.metadata.error or "")
    assert str(second.outcome) == "passed"


# Expansion


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_every_combination_is_one_item(
    world: Make, questions: int, answerers: int, judges: int, replicates: int
) -> None:
    here = world(ScriptedLLM().adapter("x"), questions=questions)
    config = VerificationConfig(
        answering_models=[ModelConfig(model_name=f"a{i}", interface="x") for i in range(answerers)],
        parsing_models=[ModelConfig(model_name=f"j{i}", interface="x") for i in range(judges)],
        replicate_count=replicates,
    )
    prepared = here.prepare(config)
    generations = list(prepared.generations())
    items = [item for generation in generations for item in generation.items]
    assert len(prepared) == len(items) == questions * answerers * judges * replicates
    assert len(generations) == questions * answerers * replicates
    assert len({item.task.result_id("run") for item in items}) == len(items)
    for generation in generations:
        assert len({(i.question.id, i.answering.identity, i.replicate) for i in generation.items}) == 1
    assert {item.replicate for item in items} == set(range(1, replicates + 1))


class Unable:
    """A sandbox that does not work on this machine."""

    name, languages, executes_code, isolation = "unable", frozenset({"python"}), True, "box"
    unavailable = "this kernel has no locks"


class Boxes:
    @hookimpl
    def karenina_register_template_runtimes(self, registry: Any) -> None:
        registry.add(Unable, name="unable")


def test_a_sandbox_that_does_not_work_here_gives_its_reason() -> None:
    app = application(Boxes())
    with pytest.raises(TemplateRefused, match=r"no sandbox to run it in \(this kernel has no locks\); if you trust"):
        TemplateLoader(app, "sandbox").runtime_for(TemplateSource(PYTHON))
