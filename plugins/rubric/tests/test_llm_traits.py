"""`llm` traits: what the judge is shown, what it is never shown, who judges what, and what is refused before a run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import karenina_rubric.llm
import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.models.models import open_models
from karenina_calls.ports.client import Model, ModelClient
from karenina_rubric.llm import LLMEvaluator
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.traces import EvaluationInput
from pydantic import BaseModel

from karenina_core import (
    AdapterSpec,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    TraitCase,
    TraitScore,
    VerificationConfig,
    VerificationContext,
    hookimpl,
)
from karenina_core.errors import PortError, Problem
from karenina_core.testing import Reply, ScriptedCall, ScriptedLLM, ScriptedServer, ServedRequest, application

GOLD = "gold-7f41c"
ANSWER = "It is BCL2."


class Style(BaseModel):
    formal: bool


def trait(name: str, **facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(name=name, **{"kind": "boolean", **facts})


TONE = {"kind": "literal", "classes": {"rude": "insults the reader", "neutral": None, "warm": "kind words"}}
RUBRIC = [
    trait("Clear", description="One reading is enough."),
    trait("Depth", kind="score", min_score=0, max_score=10),
    trait("Tone", description="How it speaks.", **TONE),
    trait("Register", **TONE),
    trait("Style", kind=Style),
]


def any_reply(call: ScriptedCall) -> dict[str, Any]:
    """The first thing that fits."""
    assert call.output is not None
    properties = (call.output.schema or {})["properties"]
    firsts = {"boolean": True, "integer": 1}
    return {
        key: facts["enum"][0] if "enum" in facts else facts.get("minimum", firsts[facts["type"]])
        for key, facts in properties.items()
    }


def case_of(
    client: Model, *, raw_answer: str = "", app: Karenina | None = None, question: str = "q", **config: Any
) -> TraitCase:
    made = VerificationConfig(**config)
    context = VerificationContext(
        question=Question(id=question, question="Which protein?", raw_answer=raw_answer),
        config=made,
        parsing=ModelClient(client, []),
        app=app,
    )
    given_ = EvaluationInput(ANSWER, made.use_full_trace_for_rubric)
    return TraitCase(context, given_, asyncio.Semaphore(made.rubric_concurrency))


def evaluated(
    traits: Sequence[LLMRubricTrait], judge: Any = any_reply, **facts: Any
) -> tuple[Mapping[str, TraitScore], ScriptedLLM]:
    llm = ScriptedLLM(judge)
    model = Model(config=ModelConfig(model_name="judge", interface="scripted", max_retries=0), llm=llm)
    return asyncio.run(LLMEvaluator().evaluate(traits, case_of(model, **facts))), llm


def prompt(llm: ScriptedLLM, task: str) -> str:
    (call,) = llm.asked(task)
    return call.text


# What is shown


def test_a_batch_names_keys_criteria_scales_and_classes_in_their_order() -> None:
    found, llm = evaluated(RUBRIC)
    assert {score.state for score in found.values()} == {"ok"}
    assert sorted(call.task for call in llm.calls) == [
        "rubric_literal_trait_batch",
        "rubric_llm_trait_batch",
        "rubric_llm_trait_template",
    ]
    scores = prompt(llm, "rubric_llm_trait_batch")
    assert "trait_1: Clear\nCriteria: One reading is enough.\nReply with true or false" in scores
    assert "trait_2: Depth\nCriteria: none beyond the name\nReply with a whole number from 0 (lowest) to 10" in scores
    classes = prompt(llm, "rubric_literal_trait_batch")
    listed = "by its name:\n  - rude: insults the reader\n  - neutral\n  - warm: kind words"
    assert f"trait_1: Tone\nCriteria: How it speaks.\nReply with exactly one of these classes, {listed}" in classes
    for call in llm.calls:
        assert "Which protein?" in call.text
        assert f"{ANSWER}\n</untrusted-" in call.text
        assert "between <untrusted-" in call.messages[0].text
        assert "{label}" not in call.text


@pytest.mark.parametrize(
    ("facts", "task", "key"),
    [
        ({"kind": "boolean"}, "rubric_llm_trait_single", "result"),
        ({"kind": "score"}, "rubric_llm_trait_single", "score"),
        (TONE, "rubric_literal_trait_single", "classification"),
    ],
)
def test_one_trait_alone_is_asked_about_in_the_single_form(facts: dict[str, Any], task: str, key: str) -> None:
    for strategy in ("batch", "sequential"):
        _, llm = evaluated([trait("Only", **facts)], rubric_evaluation_strategy=strategy)
        (call,) = llm.calls
        assert call.task == task
        assert call.output is not None
        assert list((call.output.schema or {})["properties"]) == [key]
        assert f"{key}: Only\n" in call.text


@pytest.mark.parametrize("full", [True, False])
def test_the_text_is_called_what_it_is(full: bool) -> None:
    _, llm = evaluated(RUBRIC, use_full_trace_for_rubric=full)
    own, other = ("trace", "response") if full else ("response", "trace")
    for call in llm.calls:
        assert f'label="{own}"' in call.text
        assert f"The {own} is your only evidence" in call.text
        assert f"The {other} is" not in call.text


def test_braces_in_texts_are_shown_as_they_are() -> None:
    odd = trait("A {label} {0} %s", description="{text} {label}", include_ground_truth=True)
    _, llm = evaluated([odd], raw_answer="{label} {answer}")
    for text in ("A {label} {0} %s", "Criteria: {text} {label}", "\n{label} {answer}\n</reference-answer>"):
        assert text in llm.calls[0].text


# The reference answer


@given(
    st.lists(
        st.tuples(st.sampled_from([{"kind": "boolean"}, {"kind": "score"}, TONE, {"kind": Style}]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(["batch", "sequential"]),
)
@settings(deadline=None, max_examples=60)
def test_the_reference_answer_is_never_shown_beside_a_trait_that_did_not_ask_for_it(
    rows: list[tuple[dict[str, Any], bool]], strategy: str
) -> None:
    traits = [trait(f"t{n}_", include_ground_truth=asks, **facts) for n, (facts, asks) in enumerate(rows)]
    found, llm = evaluated(traits, raw_answer=GOLD, rubric_evaluation_strategy=strategy)
    assert {score.state for score in found.values()} == {"ok"}
    for one in traits:
        (call,) = [call for call in llm.calls if f": {one.name}\n" in call.text]
        assert (GOLD in call.text) is one.include_ground_truth
    kinds = {(one.kind == "literal", one.include_ground_truth) for one in traits if isinstance(one.kind, str)}
    records = sum(not isinstance(one.kind, str) for one in traits)
    assert len(llm.calls) == (len(kinds) + records if strategy == "batch" else len(traits))


def test_without_a_reference_answer_nothing_is_split() -> None:
    _, llm = evaluated([trait("a", include_ground_truth=True), trait("b")], raw_answer=" \n")
    assert [call.task for call in llm.calls] == ["rubric_llm_trait_batch"]
    assert "eference" not in llm.calls[0].text


# Deep judgment


@define
class Deep:
    """A strategy that scores traits, or fails for one of them."""

    name = "deep_judgment"
    asked: list[tuple[str, TraitEvidenceRules]] = field(factory=list)

    def __call__(self) -> Deep:
        return self

    async def score(self, trait: LLMRubricTrait, case: TraitCase, rules: TraitEvidenceRules) -> TraitScore:
        self.asked.append((trait.name, rules))
        if trait.name == "Broken":
            raise RuntimeError("no luck")
        return await case.in_turn(self._scored)

    async def _scored(self) -> TraitScore:
        return TraitScore(value=True)

    @hookimpl
    def karenina_register_strategies(self, registry: Any) -> None:
        registry.add(self, name="deep_judgment")


def test_traits_that_are_judged_deeply_go_to_the_strategy_and_fail_alone() -> None:
    deep = Deep()
    rubric = [trait("Broken", deep_judgment_enabled=True), *RUBRIC, trait("Fine", deep_judgment_enabled=True)]
    found, llm = evaluated(rubric, app=application(deep), deep_judgment_rubric_mode="use_checkpoint")
    assert [name for name, _ in deep.asked] == ["Broken", "Fine"]
    assert list(found) == [one.name for one in rubric]
    assert [score.state for score in found.values()] == ["error", *["ok"] * 6]
    assert "no luck" in found["Broken"].reason
    assert "Broken" not in "".join(call.text for call in llm.calls)


def test_standard_scores_come_from_the_calls_of_a_run_without_deep_judgment() -> None:
    rubric = [trait("Fine", deep_judgment_enabled=True), *RUBRIC]
    asked = []
    for mode in (
        {"deep_judgment_rubric_mode": "disabled"},
        {"deep_judgment_rubric_standard_scores": True},
        {},
    ):
        found, llm = evaluated(rubric, app=application(Deep()), **mode)
        asked.append(sorted(re.sub(r"untrusted-\w+", "untrusted", call.text) for call in llm.calls))
        standard = {name: score.standard.value for name, score in found.items() if score.standard is not None}
        both = "deep_judgment_rubric_standard_scores" in mode
        assert standard == ({"Fine": True} if both else {})
    assert asked[0] == asked[1] != asked[2]


def test_literal_traits_and_template_kinds_are_never_judged_deeply() -> None:
    deep = Deep()
    found, _ = evaluated(RUBRIC, app=application(deep), deep_judgment_rubric_mode="enable_all", rubric_concurrency=1)
    assert [name for name, _ in deep.asked] == ["Clear", "Depth"]
    assert (found["Tone"].value, found["Tone"].label, found["Style"].value) == (0, "rude", {"formal": True})


def test_the_rules_of_a_question_are_those_that_the_strategy_gets() -> None:
    deep = Deep()
    custom: dict[str, Any] = {
        "global": {"Clear": {"max_excerpts": 2}},
        "question_specific": {"q7": {"Clear": {"max_excerpts": 5}}},
    }
    for question in ("q1", "q7"):
        evaluated(
            RUBRIC,
            app=application(deep),
            deep_judgment_rubric_mode="custom",
            deep_judgment_rubric_config=custom,
            question=question,
        )
    assert [rules.max_excerpts for _, rules in deep.asked] == [2, 5]


# What is refused before a run


def problems(app: Karenina, traits: Sequence[LLMRubricTrait], **config: Any) -> list[Problem]:
    return list(LLMEvaluator().check_config(traits, VerificationConfig(**config), app))


def test_deep_judgment_without_its_strategy_is_refused_with_a_remedy() -> None:
    for mode in ("enable_all", "use_checkpoint"):
        deep = [trait("Clear", deep_judgment_enabled=True)]
        (found,) = problems(application(), deep, deep_judgment_rubric_mode=mode)
        assert found.path == "deep_judgment_rubric_mode"
        assert "install karenina-deep-judgment" in found.message
    custom: dict[str, Any] = {"question_specific": {"q7": {"Clear": {}}}}
    (found,) = problems(application(), RUBRIC, deep_judgment_rubric_mode="custom", deep_judgment_rubric_config=custom)
    assert found.path == "deep_judgment_rubric_mode"


@pytest.mark.parametrize("mode", ["disabled", "use_checkpoint"])
def test_traits_that_are_judged_as_usual_need_no_strategy_and_no_search(mode: str) -> None:
    searching = {"deep_judgment_rubric_search_tool": "nonsense"}
    assert problems(application(), RUBRIC, deep_judgment_rubric_mode=mode, **searching) == []


def test_a_search_tool_that_does_not_work_is_refused_where_a_trait_would_search() -> None:
    wanted = [trait("Clear", deep_judgment_enabled=True, deep_judgment_search_enabled=True)]
    found = problems(
        application(Deep()),
        wanted,
        deep_judgment_rubric_mode="use_checkpoint",
        deep_judgment_rubric_search_tool="tavly",
    )
    assert [problem.path for problem in found] == ["deep_judgment_rubric_search_tool"]
    for tool, config in ((lambda query: [], {}), ("tavly", {"deep_judgment_rubric_mode": "enable_all"})):
        usual: dict[str, Any] = {"deep_judgment_rubric_mode": "use_checkpoint", **config}
        assert problems(application(Deep()), wanted, **usual, deep_judgment_rubric_search_tool=tool) == []


def recorded_judge(*tasks: str) -> tuple[Karenina, dict[str, Any]]:
    spec = AdapterSpec(interface="tape", llm_factory=lambda model: ScriptedLLM("x"), judge_tasks=tasks)
    return application(spec, Deep()), {"parsing_models": [ModelConfig(model_name="m", interface="tape")]}


def test_a_judge_that_cannot_serve_the_task_is_refused_once_with_a_remedy() -> None:
    app, judge = recorded_judge("parsing")
    (found,) = problems(app, RUBRIC, **judge)
    assert found.path == "parsing_models[0]"
    assert "'rubric_llm_trait_batch'" in found.message
    assert "rubric_trait_names" in found.message
    (found,) = problems(app, RUBRIC[:2], deep_judgment_rubric_mode="enable_all", **judge)
    assert "'dj_rubric_excerpt_extraction'" in found.message
    assert "deep_judgment_rubric_mode disabled" in found.message


def test_only_the_tasks_of_these_traits_are_asked_for() -> None:
    app, judge = recorded_judge("rubric_literal_trait_single")
    assert problems(app, RUBRIC[2:4], rubric_evaluation_strategy="sequential", **judge) == []
    assert len(problems(app, RUBRIC[2:4], **judge)) == 1


def test_the_evaluator_is_registered_under_the_name_of_its_traits() -> None:
    app = application(karenina_rubric.llm)
    assert isinstance(app.trait_evaluator("llm"), LLMEvaluator)
    assert app.trait_evaluator("llm").asks_judge


# Through the whole pipeline

CITES = RegexRubricTrait(name="Cites", pattern=r"\[\d+\]")


def test_a_judge_that_is_down_costs_only_the_scores_that_it_would_have_given(scored: Callable[..., Any]) -> None:
    rubric = Rubric(llm_traits=RUBRIC, regex_traits=[CITES])
    done = scored(rubric, karenina_rubric.llm, replies=lambda call: PortError("out of credit", kind="auth"))
    assert done.rubric.regex_trait_scores == {"Cites": True}
    assert done.states == {**{one.name: "error" for one in RUBRIC}, "Cites": "ok"}
    assert done.rubric.llm_trait_scores == {"Clear": None, "Depth": None, "Tone": -1, "Register": -1, "Style": None}
    assert done.rubric.llm_trait_labels["Tone"] == "[EVALUATION_ERROR: out of credit]"
    assert done.result.metadata.completed_without_errors


def test_one_useless_call_costs_no_score_of_the_other_calls(scored: Callable[..., Any]) -> None:
    def judge(call: ScriptedCall) -> Any:
        if "literal" not in call.task:
            return any_reply(call)
        return {key: "lukewarm" if number else "Warm" for number, key in enumerate(any_reply(call))}

    rubric = Rubric(llm_traits=[*RUBRIC, trait("Third", **TONE)], regex_traits=[CITES])
    found = scored(rubric, karenina_rubric.llm, replies=judge)
    assert found.rubric.regex_trait_scores == {"Cites": True}
    scores = {"Clear": True, "Depth": 0, "Tone": 2, "Register": 2, "Third": 2, "Style.formal": True}
    assert found.rubric.llm_trait_scores == scores
    assert found.rubric.llm_trait_labels == dict.fromkeys(("Tone", "Register", "Third"), "warm")


def test_a_text_that_is_no_class_is_kept_as_the_label_of_minus_one(scored: Callable[..., Any]) -> None:
    rubric = Rubric(llm_traits=[RUBRIC[2]])
    found = scored(rubric, karenina_rubric.llm, replies=lambda call: {"classification": "lukewarm"})
    assert (found.rubric.llm_trait_scores, found.rubric.llm_trait_labels) == ({"Tone": -1}, {"Tone": "lukewarm"})
    assert found.states == {"Tone": "invalid"}
    found = scored(rubric, karenina_rubric.llm, replies=lambda call: {"class": "warm"})
    assert found.rubric.llm_trait_labels == {"Tone": "[MISSING_FROM_RESPONSE]"}
    assert found.states == {"Tone": "missing"}


# Over HTTP


def over_http(script: Any, traits: Sequence[LLMRubricTrait], **config: Any) -> tuple[Mapping[str, TraitScore], Any]:
    async def run(url: str) -> Mapping[str, TraitScore]:
        model = ModelConfig(model_name="judge", interface="openai_endpoint", endpoint_base_url=url, request_timeout=5.0)
        app = application(installed=["openai_endpoint"])
        made = VerificationConfig(parsing_models=[model], **config)
        async with open_models(app, made, [model]) as judges:
            return await LLMEvaluator().evaluate(traits, case_of(judges[model.identity], **config))

    with ScriptedServer(script) as server:
        return asyncio.run(run(server.url)), server


def reply_to(request: ServedRequest) -> dict[str, Any]:
    properties = (request.schema or {})["properties"]
    return {
        key: facts["enum"][0] if "enum" in facts else facts["type"] == "boolean" for key, facts in properties.items()
    }


def test_six_traits_are_judged_in_the_time_of_one_call() -> None:
    """The server replies to none of them before all six have arrived."""
    arrived = 0
    complete = asyncio.Event()

    async def script(request: ServedRequest) -> dict[str, Any]:
        nonlocal arrived
        arrived += 1
        if arrived == 6:
            complete.set()
        await asyncio.wait_for(complete.wait(), 60)
        return reply_to(request)

    traits = [trait(f"t{number}") for number in range(6)]
    found, server = over_http(script, traits, rubric_evaluation_strategy="sequential", rubric_concurrency=6)
    assert [score.value for score in found.values()] == [True] * 6
    assert (server.count, server.peak) == (6, 6)


def test_every_schema_has_a_strict_form() -> None:
    rubric = [one for one in RUBRIC if one.name != "Depth"]
    found, server = over_http(reply_to, rubric)
    assert {score.state for score in found.values()} == {"ok"}
    assert len(server.requests) == 3
    assert all(request.body["response_format"]["json_schema"]["strict"] is True for request in server.requests)


@pytest.mark.parametrize(
    "refusal",
    [
        Reply.error(400, "filtered", code="content_filter"),
        Reply.error(400, "we do not process this"),
        Reply.error(413, "too much"),
        Reply.error(422, "unprocessable"),
        Reply("", finish_reason="content_filter"),
    ],
)
def test_a_provider_that_refuses_one_trait_gives_the_scores_of_the_others(refusal: Reply) -> None:
    traits = [trait(f"t{number}") for number in range(6)]
    found, _ = over_http(lambda request: refusal if "t3" in request.text else reply_to(request), traits)
    assert {name: score.state for name, score in found.items() if score.state != "ok"} == {"t3": "error"}
    assert "/chat/completions: " in found["t3"].reason


def test_traits_that_no_judge_could_score_consistently_are_refused_before_a_run() -> None:
    alike = trait("Tone", kind="literal", classes={"a": None, "a ": None})
    dotted = {"type": "object", "properties": {"a.b": {"type": "boolean"}}}
    record = trait("Record", kind={"type": "template", "schema": dotted})
    found = problems(application(), [*RUBRIC, alike, record])
    assert [problem.path for problem in found] == ["rubric", "rubric"]
    assert "trait 'Tone': classes 'a' and 'a ' look alike" in found[0].message
    assert "trait 'Record': field 'a.b'" in found[1].message
