"""Rubrics in runs: which traits are evaluated for which question, in which mode, and what is refused before a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve

from karenina_core import (
    CallableRubricTrait,
    DynamicRubric,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    TraitEvaluator,
    TraitScore,
    arun_single_model_verification,
    hookimpl,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedLLM, application

Make = Callable[..., Any]
MODELS = (ModelConfig(model_name="a", interface="answering"), ModelConfig(model_name="j", interface="judging"))
CITED = RegexRubricTrait(name="cited", pattern="BCL2", summary="citations")
SHORT = RegexRubricTrait(name="short", pattern="^.{1,80}$")
INERT = CallableRubricTrait(name="inert", kind="boolean", summary="a check")
CLEAR = LLMRubricTrait(name="clear", kind="boolean", summary="clarity")


class Judged(TraitEvaluator[LLMRubricTrait]):
    """Scores `llm` traits without asking anybody about them."""

    name = "llm"
    trait_class = LLMRubricTrait
    asks_judge = True

    async def score(self, trait: LLMRubricTrait, case: Any) -> TraitScore:
        return TraitScore(value=True)

    @staticmethod
    @hookimpl
    def karenina_register_traits(registry: Any) -> None:
        registry.add(Judged)


class Inert(TraitEvaluator[CallableRubricTrait]):
    """Fails for traits without code, as whoever runs code has to."""

    name = "callable"
    trait_class = CallableRubricTrait

    async def score(self, trait: CallableRubricTrait, case: Any) -> TraitScore:
        return TraitScore(state="error", reason="its code is missing")

    @staticmethod
    @hookimpl
    def karenina_register_traits(registry: Any) -> None:
        registry.add(Inert)


@pytest.fixture
def rubric_world(world: Make, plugin_names: set[str]) -> Make:
    """A world whose application scores rubrics."""

    def make(*, there: bool = True, **facts: Any) -> Any:
        def judge(call: Any) -> Any:
            return {"trait_1": there} if call.task == "rubric_dynamic_presence_check" else {"target": "BCL2"}

        here = world(judge=ScriptedLLM(judge), **facts)
        installed = plugin_names | {"rubric-evaluation", "trait-regex"}
        adapters = here.answerer.adapter("answering"), here.judge.adapter("judging")
        return evolve(here, app=application(*adapters, Judged, Inert, installed=installed))

    return make


def rubric_parts(results: Any) -> dict[str, Any]:
    return {result.metadata.question_id: result.rubric for result in results}


def scores_of(result: Any) -> Mapping[str, Any]:
    part = result.rubric
    return {**part.llm_trait_scores, **part.regex_trait_scores, **part.callable_trait_scores}


def verify(here: Any, **facts: Any) -> Any:
    return asyncio.run(arun_single_model_verification(here.benchmark.questions[0], *MODELS, app=here.app, **facts))


# From a benchmark


def test_traits_of_the_benchmark_and_of_a_question_are_scored_with_their_provenance(
    rubric_world: Make, make_question: Make
) -> None:
    questions = [make_question(0, question_rubric=Rubric(regex_traits=[SHORT])), make_question(1)]
    results = rubric_world(questions=questions, rubric=Rubric(regex_traits=[CITED])).run()
    parts = rubric_parts(results)
    assert parts["q0"].regex_trait_scores == {"cited": True, "short": True}
    assert parts["q0"].trait_provenance == {"cited": "global", "short": "question_specific"}
    assert parts["q1"].regex_trait_scores == {"cited": True}


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("of_question", [True, False])
def test_dynamic_traits_of_a_benchmark_and_of_a_question_are_asked_about(
    rubric_world: Make, make_question: Make, there: bool, of_question: bool
) -> None:
    dynamic = DynamicRubric(llm_traits=[CLEAR])
    here = rubric_world(
        there=there,
        questions=[make_question(0, question_dynamic_rubric=dynamic if of_question else None)],
        rubric=Rubric(regex_traits=[CITED]),
        dynamic_rubric=None if of_question else dynamic,
    )
    (result,) = here.run()
    assert scores_of(result) == {"cited": True, **({"clear": True} if there else {})}
    assert result.rubric.trait_provenance == {"cited": "global", "clear": "dynamic"}
    assert result.rubric.trait_states["clear"]["state"] == ("ok" if there else "skipped")
    assert len(here.judge.asked("rubric_dynamic_presence_check")) == 1
    assert str(result.outcome) == "passed"


def test_a_dynamic_rubric_alone_is_reason_enough_to_evaluate_rubrics(rubric_world: Make) -> None:
    here = rubric_world(dynamic_rubric=DynamicRubric(llm_traits=[CLEAR]))
    assert here.prepare().mode == "template_and_rubric"
    assert scores_of(next(iter(here.run()))) == {"clear": True}
    alone = here.run(here.config(evaluation_mode="rubric_only"))
    assert [str(result.outcome) for result in alone] == ["scored"]


def test_only_the_traits_that_are_named_are_evaluated(rubric_world: Make, make_question: Make) -> None:
    here = rubric_world(
        questions=[make_question(0, question_rubric=Rubric(regex_traits=[SHORT])), make_question(1)],
        rubric=Rubric(regex_traits=[CITED]),
        dynamic_rubric=DynamicRubric(llm_traits=[CLEAR]),
    )
    results = here.run(here.config(rubric_trait_names=["short"]))
    parts = rubric_parts(results)
    assert parts["q0"].regex_trait_scores == {"short": True}
    assert set(parts["q0"].trait_states) == {"short"}
    assert parts["q1"] is None
    assert here.judge.asked("rubric_dynamic_presence_check") == []
    every = rubric_parts(here.run(here.config(rubric_trait_names=["clear", "cited", "short"])))
    assert set(every["q0"].trait_states) == {"clear", "cited", "short"}


def test_a_name_that_no_trait_has_is_refused_before_any_call(rubric_world: Make) -> None:
    here = rubric_world(rubric=Rubric(regex_traits=[CITED]))
    with pytest.raises(ConfigError) as caught:
        here.prepare(here.config(rubric_trait_names=["cited", "citted"]))
    (problem,) = caught.value.problems
    assert str(problem) == "rubric_trait_names: no trait is called 'citted' (did you mean 'cited'?)"
    assert here.answerer.calls == []


def test_traits_and_questions_that_are_configured_and_not_there_are_refused_before_any_call(rubric_world: Make) -> None:
    here = rubric_world(rubric=Rubric(llm_traits=[CLEAR]))
    configured = {"global": {"clea": {}, "clear": {}}, "question_specific": {"q9": {"clear": {}}, "q0": {"x": {}}}}
    facts = {"deep_judgment_rubric_mode": "custom", "deep_judgment_rubric_config": configured}
    with pytest.raises(ConfigError) as caught:
        here.prepare(here.config(**facts))
    assert [str(problem) for problem in caught.value.problems] == [
        "deep_judgment_rubric_config.question_specific: there is no question 'q9'",
        "deep_judgment_rubric_config.global: no trait is called 'clea' (did you mean 'clear'?)",
        "deep_judgment_rubric_config.question_specific.q0: no trait is called 'x'",
    ]
    assert here.answerer.calls == []
    here.prepare(here.config(**{**facts, "deep_judgment_rubric_mode": "disabled"}))


def test_deep_judgment_is_refused_for_traits_that_it_cannot_score(rubric_world: Make) -> None:
    tone = LLMRubricTrait(name="tone", kind="literal", classes={"plain": None, "florid": None})
    here = rubric_world(rubric=Rubric(llm_traits=[CLEAR, tone], regex_traits=[CITED]))
    configured = {"global": {"tone": {}, "cited": {}, "clear": {}}}
    with pytest.raises(ConfigError) as caught:
        here.prepare(here.config(deep_judgment_rubric_mode="custom", deep_judgment_rubric_config=configured))
    assert [problem.path for problem in caught.value.problems] == ["deep_judgment_rubric_config.global"] * 2
    assert ["'tone'" in str(caught.value), "'cited'" in str(caught.value)] == [True, True]
    assert "'clear'" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (
            {"deep_judgment_rubric_mode": "disabled", "deep_judgment_rubric_search_tool": "x"},
            "deep_judgment_rubric_search_tool has no effect with deep_judgment_rubric_mode disabled",
        ),
        (
            {"deep_judgment_rubric_mode": "use_checkpoint", "deep_judgment_rubric_global_excerpts": False},
            "deep_judgment_rubric_global_excerpts has no effect with deep_judgment_rubric_mode use_checkpoint",
        ),
        (
            {"deep_judgment_rubric_mode": "custom", "deep_judgment_rubric_config": {}},
            "deep_judgment_rubric_config enables deep judgment for no trait",
        ),
        (
            {"evaluation_mode": "template_only", "rubric_concurrency": 2},
            "rubric_concurrency has no effect: the mode evaluates no rubric with traits that are not agentic",
        ),
        (
            {"deep_judgment_rubric_standard_scores": True},
            "deep_judgment_rubric_standard_scores has no effect: no trait has deep_judgment_enabled",
        ),
        ({"deep_judgment_rubric_mode": "use_checkpoint", "rubric_concurrency": 2}, None),
        ({"deep_judgment_rubric_mode": "disabled"}, None),
    ],
)
def test_settings_about_rubrics_that_have_no_effect_are_told(
    rubric_world: Make, facts: dict[str, Any], told: str | None
) -> None:
    here = rubric_world(rubric=Rubric(llm_traits=[CLEAR]))
    notes = here.prepare(here.config(**facts)).notes
    assert [note for note in notes if "rubric" in note] == ([told] if told else [])


def test_traits_whose_deep_judgment_is_switched_off_or_not_possible_are_named(rubric_world: Make) -> None:
    deep = evolve(CLEAR, deep_judgment_enabled=True)
    tone = LLMRubricTrait(name="tone", kind="literal", classes={"a": None, "b": None}, deep_judgment_enabled=True)
    here = rubric_world(rubric=Rubric(llm_traits=[deep, tone]))

    def notes(**facts: Any) -> list[str]:
        return [note for note in here.prepare(here.config(**facts)).notes if "deep" in note]

    assert notes(deep_judgment_rubric_mode="disabled") == [
        "deep_judgment_rubric_mode disabled: these traits request deep judgment but are judged without it: clear"
    ]
    other = "deep judgment is for boolean and score traits; these are judged without it: tone"
    assert notes() == notes(deep_judgment_rubric_standard_scores=True) == [other]
    assert notes(deep_judgment_rubric_mode="enable_all") == []


def test_traits_that_have_quotations_searched_by_themselves_are_named(rubric_world: Make) -> None:
    searched = evolve(CLEAR, deep_judgment_enabled=True, deep_judgment_search_enabled=True)
    here = rubric_world(rubric=Rubric(llm_traits=[searched]))
    told = "quotations for these traits go to the search tool, as the benchmark requests: clear"
    found = here.prepare(here.config(deep_judgment_rubric_search_tool=lambda query: [])).notes
    assert told in found
    assert told not in here.prepare(here.config(deep_judgment_rubric_mode="disabled")).notes


def test_every_clash_is_refused_at_once_before_any_call(rubric_world: Make, make_question: Make) -> None:
    other = LLMRubricTrait(name="cited", kind="boolean", summary="s")
    here = rubric_world(
        questions=[
            make_question(0, question_rubric=Rubric(regex_traits=[SHORT])),
            make_question(1, question_dynamic_rubric=DynamicRubric(llm_traits=[other, CLEAR])),
            make_question(2, question_rubric=Rubric(regex_traits=[SHORT])),
        ],
        rubric=Rubric(regex_traits=[CITED, SHORT], llm_traits=[CLEAR]),
    )
    with pytest.raises(ConfigError) as caught:
        here.prepare()
    assert [(problem.path, problem.message.partition(";")[0]) for problem in caught.value.problems] == [
        ("question q0 and 1 more", "rubrics clash on regex:short"),
        ("question q1", "rubrics clash on llm:cited, llm:clear, regex:cited"),
    ]
    assert here.answerer.calls == []


def test_a_clash_does_not_matter_where_no_rubric_is_evaluated(rubric_world: Make) -> None:
    here = rubric_world(rubric=Rubric(llm_traits=[CLEAR]), dynamic_rubric=DynamicRubric(llm_traits=[CLEAR]))
    with pytest.raises(ConfigError, match="clash on llm:clear"):
        here.prepare()
    assert here.prepare(here.config(evaluation_mode="template_only")).mode == "template_only"


def test_traits_that_nobody_scores_are_refused_with_the_evaluator_s_problems(rubric_world: Make) -> None:
    broken = RegexRubricTrait(name="broken", pattern="x")
    object.__setattr__(broken, "pattern", "(")
    here = rubric_world(rubric=Rubric(regex_traits=[broken]))
    with pytest.raises(ConfigError, match="trait 'broken': the pattern '\\(' cannot be used"):
        here.prepare()
    assert here.answerer.calls == []


# Traits without their code


def test_traits_without_code_do_not_make_a_run_one_of_rubrics_and_are_told(rubric_world: Make) -> None:
    here = rubric_world(rubric=Rubric(callable_traits=[INERT]))
    prepared = here.prepare()
    assert (prepared.mode, set(prepared.rubrics.values())) == ("template_only", {None})
    (note,) = prepared.notes
    assert note.startswith("these traits cannot be scored")
    assert note.endswith(": inert")
    assert here.prepare(here.config(evaluation_mode="template_only")).notes == ()


def test_traits_without_code_are_errors_beside_the_scores_of_others(rubric_world: Make) -> None:
    rubric = Rubric(callable_traits=[INERT], regex_traits=[CITED])
    here = rubric_world(rubric=rubric)
    assert len(here.prepare().notes) == 1
    (result,) = here.run()
    assert scores_of(result) == {"cited": True, "inert": None}
    assert result.rubric.trait_states["inert"] == {"state": "error", "reason": "its code is missing", "kind": "stage"}
    assert here.prepare(here.config(rubric_trait_names=["cited"])).notes == ()


def test_dynamic_traits_without_code_are_no_more_usable_than_static_ones(rubric_world: Make) -> None:
    here = rubric_world(dynamic_rubric=DynamicRubric(callable_traits=[INERT]))
    assert here.prepare().mode == "template_only"


# One question


@pytest.mark.parametrize(
    ("facts", "mode"),
    [
        ({}, "template_only"),
        ({"rubric": Rubric()}, "template_only"),
        ({"rubric": Rubric(regex_traits=[CITED])}, "template_and_rubric"),
        ({"dynamic_rubric": DynamicRubric(regex_traits=[CITED])}, "template_and_rubric"),
        ({"rubric": DynamicRubric(regex_traits=[CITED])}, "template_and_rubric"),
        ({"rubric": Rubric(callable_traits=[INERT])}, "template_and_rubric"),
        ({"rubric": Rubric(regex_traits=[CITED]), "evaluation_mode": "rubric_only"}, "rubric_only"),
    ],
)
def test_one_question_with_any_trait_is_evaluated_by_rubric_too(
    rubric_world: Make, facts: dict[str, Any], mode: str
) -> None:
    result = verify(rubric_world(), **facts)
    assert result.metadata.evaluation_mode == mode
    assert (result.rubric is not None) is (mode != "template_only")


def test_one_question_s_rubrics_are_merged_and_marked(rubric_world: Make) -> None:
    here = rubric_world(there=False)
    static = Rubric(regex_traits=[CITED, SHORT], provenance={"short": "question_specific"})
    result = verify(here, rubric=static, dynamic_rubric=DynamicRubric(llm_traits=[CLEAR]))
    assert result.rubric.trait_provenance == {"cited": "global", "short": "question_specific", "clear": "dynamic"}
    assert result.rubric.dynamic_rubric_skipped_traits == {"clear": "concept not present in response"}


def test_one_question_s_traits_are_chosen_by_name(rubric_world: Make) -> None:
    here = rubric_world()
    both = Rubric(regex_traits=[CITED, SHORT])
    result = verify(here, rubric=both, config=here.config(rubric_trait_names=["short"]))
    assert scores_of(result) == {"short": True}
    with pytest.raises(ConfigError, match="no trait is called 'shirt' \\(did you mean 'short'\\?\\)"):
        verify(here, rubric=both, config=here.config(rubric_trait_names=["shirt"]))
    with pytest.raises(ConfigError, match="clash on llm:clear"):
        verify(here, rubric=Rubric(llm_traits=[CLEAR]), dynamic_rubric=DynamicRubric(llm_traits=[CLEAR]))
    assert len(here.answerer.calls) == 1  # the first verification


def test_what_one_configuration_says_of_other_questions_does_not_matter_to_one_question(rubric_world: Make) -> None:
    """Nothing is known of the others, so that one configuration serves several of these calls."""
    here = rubric_world()
    configured = {"question_specific": {"q9": {"lucid": {}}}}
    custom = {"deep_judgment_rubric_mode": "custom", "deep_judgment_rubric_config": configured}
    result = verify(here, rubric=Rubric(regex_traits=[CITED]), config=here.config(**custom))
    assert scores_of(result) == {"cited": True}
    configured["question_specific"]["q0"] = {"clea": {}}
    with pytest.raises(ConfigError, match="no trait is called 'clea'"):
        verify(here, rubric=Rubric(llm_traits=[CLEAR]), config=here.config(**custom))


def test_a_trait_that_nothing_can_score_is_reported_with_every_question(
    rubric_world: Make, make_question: Make
) -> None:
    """Of a question whose other traits can be scored, and of one that has no others."""
    here = rubric_world(
        questions=[make_question(0), make_question(1, question_rubric=Rubric(regex_traits=[CITED]))],
        rubric=Rubric(callable_traits=[INERT]),
    )
    results = here.run(here.config(evaluation_mode="template_and_rubric"))
    assert [result.rubric.trait_states["inert"]["state"] for result in results] == ["error", "error"]


def test_names_that_leave_nothing_to_score_are_told(rubric_world: Make, make_question: Make) -> None:
    here = rubric_world(
        questions=[make_question(0), make_question(1, question_rubric=Rubric(regex_traits=[CITED]))],
        rubric=Rubric(llm_traits=[CLEAR]),
    )
    prepared = here.prepare(here.config(rubric_trait_names=["cited"]), question_ids=["q0"])
    assert [note for note in prepared.notes if "rubric" in note] == [
        "no question of this run has a trait that rubric_trait_names names, so no rubric is evaluated"
    ]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"rubric": [CITED]}, "rubric: must be a Rubric, not list"),
        ({"dynamic_rubric": Rubric(regex_traits=[evolve(CITED, summary=None)])}, "need a summary, or a description"),
    ],
)
def test_what_is_no_rubric_is_refused_before_any_call(facts: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        asyncio.run(arun_single_model_verification(Question(question="What?"), *MODELS, app=application(), **facts))


def test_where_traits_come_from_is_one_of_three_things() -> None:
    with pytest.raises(ValueError, match="provenance is one of global, question_specific, dynamic, not 'elsewhere'"):
        Rubric(regex_traits=[CITED], provenance={"cited": "elsewhere"})
