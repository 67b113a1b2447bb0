"""Agents that judge: what is refused before a run, what is told, and that nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.plan.prepare import prepare
from karenina_vocabulary.traits import RegexRubricTrait

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import application
from karenina_core.values.rubric import RubricTrait

ABLE = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
RECORDED = ModelConfig(interface="manual", manual_traces={"q0": "It is BCL2."})
PARSING: dict[str, Any] = {"agentic_parsing": True}
CITES = RegexRubricTrait(name="cites", pattern=r"\[\d+\]")


def trait(mode: Any = "trace_only", name: str = "right") -> AgenticRubricTrait:
    return AgenticRubricTrait(name=name, kind="boolean", description="Whether it is right.", context_mode=mode)


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(installed=True)


Notes = Callable[..., tuple[str, ...]]


@pytest.fixture
def notes(app: Karenina, make_question: Callable[..., Question], tmp_path: Path) -> Notes:
    """`notes(*traits, root=True, folder="here", answering=..., **config)`: what is told. Raises what refuses."""

    def given(
        *traits: RubricTrait, root: bool = True, folder: str | None = None, answering: ModelConfig = ABLE, **config: Any
    ) -> tuple[str, ...]:
        (tmp_path / "here").mkdir(exist_ok=True)
        rubric = Rubric.from_traits(traits) if traits else None
        questions = [make_question(0, workspace_path=folder)]
        benchmark = Benchmark(name="b", questions=questions, rubric=rubric, workspace_root=tmp_path if root else None)
        settings = VerificationConfig(answering_models=[answering], parsing_models=[ABLE], **config)
        return prepare(benchmark, settings, app=app).notes

    return given


REFUSED: dict[str, tuple[tuple[RubricTrait, ...], dict[str, Any], str, str]] = {
    "no template to fill in": (
        (trait(),),
        {**PARSING, "evaluation_mode": "rubric_only"},
        "agentic_parsing",
        "rubric_only",
    ),
    "dynamic alone": ((), {"agentic_parsing_trigger": "dynamic"}, "agentic_parsing_trigger", "switch it on"),
    "deep judgment": (
        (),
        {**PARSING, "deep_judgment_enabled": True},
        "deep_judgment_enabled",
        "--without deep_judgment",
    ),
    "a hidden trace as a file": (
        (),
        {**PARSING, "agentic_parsing_materialize_trace": True},
        "agentic_parsing_materialize_trace",
        "agentic_judge_context",
    ),
    "no root for the judge": ((), {**PARSING, "root": False}, "workspace_root", "--workspace-root"),
    "no root for a trait": ((trait("workspace_only"),), {"root": False}, "workspace_root", "--workspace-root"),
    "an empty folder for the judge": ((), {**PARSING, "answering": RECORDED}, "workspace_path", "empty folder"),
    "an empty folder for a trait": (
        (trait("workspace_only"),),
        {"answering": RECORDED},
        "workspace_path",
        "give the question its folder",
    ),
    "a folder that is not there": ((), {**PARSING, "folder": "gone"}, "question q0", "no folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_with_the_setting_and_what_to_do(case: str, notes: Notes) -> None:
    traits, config, path, said = REFUSED[case]
    with pytest.raises(ConfigError) as refused:
        notes(*traits, **config)
    assert [problem.path for problem in refused.value.problems] == [path]
    assert said in str(refused.value)


TOLD: dict[str, tuple[tuple[RubricTrait, ...], dict[str, Any], str]] = {
    "classical parsing with an agent": (
        (),
        {**PARSING, "agentic_judge_context": "trace_only"},
        "agentic_judge_context: with trace_only",
    ),
    "no root, but the trace": (
        (),
        {**PARSING, "agentic_judge_context": "trace_and_workspace", "root": False},
        "agents that investigate see no workspace",
    ),
    "a file that nobody writes": (
        (),
        {**PARSING, "agentic_judge_context": "trace_only", "agentic_parsing_persist_trace": True},
        "agentic_parsing_persist_trace has no effect",
    ),
    "a folder that nobody worked in, for the judge": (
        (),
        {**PARSING, "folder": "here", "answering": RECORDED},
        "question q0: agents judge the workspace, but manual:manual cannot work in it",
    ),
    "a folder that nobody worked in, for a trait": (
        (trait("trace_and_workspace"),),
        {"folder": "here", "answering": RECORDED},
        "original folder, and no part of the answer",
    ),
    "limits of no agent": ((), {"agentic_parsing_max_turns": 3}, "agentic_parsing_max_turns has no effect"),
    "a context of no agent": ((), {"agentic_judge_context": "trace_only"}, "agentic_judge_context has no effect"),
    "a strategy for no traits": (
        (CITES,),
        {"agentic_rubric_strategy": "shared"},
        "agentic_rubric_strategy has no effect: the mode evaluates no rubric with agentic traits",
    ),
    "groups of one": ((trait(),), {"agentic_rubric_by_context": True}, "has no effect with agentic_rubric_strategy"),
    "no rubric at all": (
        (trait(),),
        {"agentic_rubric_parallel": True, "evaluation_mode": "template_only"},
        "agentic_rubric_parallel has no effect: the mode evaluates no rubric with agentic traits",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_has_no_effect_or_costs_more_is_told_once(case: str, notes: Notes) -> None:
    traits, config, said = TOLD[case]
    assert len([note for note in notes(*traits, **config) if said in note]) == 1


@pytest.mark.parametrize(
    ("traits", "config"),
    [
        ((), {}),
        ((), {**PARSING, "folder": "here"}),
        ((), {**PARSING, "folder": "here", "agentic_parsing_trigger": "dynamic"}),
        ((), {**PARSING, "agentic_judge_context": "trace_and_workspace"}),
        ((), PARSING),
        ((trait("workspace_only"),), {"folder": "here", "agentic_rubric_strategy": "shared"}),
        (
            (trait(), trait("workspace_only", "neat")),
            {"folder": "here", "agentic_rubric_strategy": "shared", "agentic_rubric_by_context": True},
        ),
        ((trait(),), {"agentic_rubric_parallel": True, "evaluation_mode": "rubric_only"}),
        ((trait(),), {"folder": "here", "answering": RECORDED}),
    ],
)
def test_what_works_is_neither_refused_nor_remarked_on(traits: Any, config: dict[str, Any], notes: Notes) -> None:
    assert notes(*traits, **config) == ()


def test_every_refusal_comes_before_a_single_verification_too(
    app: Karenina, make_question: Callable[..., Question]
) -> None:
    for config, path in (
        ({"agentic_parsing_trigger": "dynamic"}, "agentic_parsing_trigger"),
        ({**PARSING, "deep_judgment_enabled": True, "agentic_judge_context": "trace_only"}, "deep_judgment_enabled"),
        (PARSING, "workspace_root"),
    ):
        with pytest.raises(ConfigError) as refused:
            run_single_model_verification(make_question(0), ABLE, ABLE, config=VerificationConfig(**config), app=app)
        assert [problem.path for problem in refused.value.problems] == [path]
    for features, config in ((["agentic_parsing"], {}), ([], PARSING)):
        with pytest.raises(ConfigError, match="agentic_parsing: in the mode rubric_only"):
            run_single_model_verification(
                make_question(0),
                ABLE,
                ABLE,
                rubric=Rubric.from_traits([trait()]),
                evaluation_mode="rubric_only",
                config=VerificationConfig(**config),
                features=features,
                app=app,
            )
    recorded = VerificationConfig(**PARSING)
    with pytest.raises(ConfigError, match="empty folder"):
        run_single_model_verification(
            make_question(0), RECORDED, ABLE, config=recorded, workspace_root=Path.cwd(), app=app
        )


@pytest.mark.parametrize("mode", ["trace_only", "trace_and_workspace"])
def test_an_agentic_trait_turns_a_run_of_templates_into_one_of_rubrics_too(mode: str, app: Karenina) -> None:
    questions = [Question(id="q", question="Why?", answer_template="{}", template_language="karenina-template")]
    benchmark = Benchmark(name="b", questions=questions, rubric=Rubric.from_traits([trait(mode)]))
    made = prepare(benchmark, VerificationConfig(answering_models=[ABLE], parsing_models=[ABLE]), app=app)
    (plan,) = made.plans.values()
    assert made.mode == "template_and_rubric"
    assert "AgenticRubricEvaluation" in [stage.name for stage in plan.stages]
