"""Agentic traits in whole runs: beside other traits, in results, in plans; what is refused before any call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from karenina_agentic import AgenticTraitEvaluator, rubric_stage
from karenina_calls.models.models import open_models
from karenina_calls.ports.client import ModelClient

from karenina_core import (
    AgenticRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    RubricTrait,
    StageOrchestrator,
    VerificationConfig,
    VerificationResult,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports.model_client import CallRecord
from karenina_core.testing import Reply, ScriptedServer, application, check_stage
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.message import ToolUseBlock

INSTALLED = {
    *("generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail", "finalize-result"),
    *("rubric-evaluation", "trait-regex", "deep-judgment-rubric-auto-fail", "openai_endpoint", "manual"),
}
ANSWER = "It adds up to 42 [1]."
RIGHT = AgenticRubricTrait(name="right", kind="boolean", description="Whether the sum is right.")
CITES = RegexRubricTrait(name="cites", pattern=r"\[\d+\]")


def run(scripted: Any, *traits: RubricTrait, **config: Any) -> VerificationResult:
    app = application(rubric_stage, installed=INSTALLED)
    with ScriptedServer(scripted) as server:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url, max_retries=0)
        return run_single_model_verification(
            Question(id="q", question="What is the sum?"),
            model,
            model,
            rubric=Rubric.from_traits(traits),
            evaluation_mode="rubric_only",
            config=VerificationConfig(**config),
            cached_answer_data=CachedAnswer(raw_llm_response=ANSWER),
            app=app,
        )


def test_a_rubric_of_agentic_traits_alone_has_a_rubric_section(scripted: Any) -> None:
    result = run(scripted("It is 42.", {"result": True}), RIGHT)
    part = result.rubric
    assert part is not None
    assert part.agentic_rubric_evaluation_performed
    assert (part.rubric_evaluation_performed, dict(part.agentic_trait_scores)) == (False, {"right": True})
    assert part.get_trait_by_name("right") == (True, "agentic")
    assert "It is 42." in part.agentic_trait_investigation_traces["right"]
    again = structure(unstructure(result), VerificationResult)
    assert again.rubric is not None
    assert again.rubric.rows() == part.rows()
    assert result.metadata.outcome == "scored"


def test_other_traits_and_agentic_ones_are_in_the_same_tables(scripted: Any) -> None:
    part = run(scripted("It is 42.", {"result": False}), RIGHT, CITES).rubric
    assert part is not None
    assert {name: row["state"] for name, row in part.trait_states.items()} == {"cites": "ok", "right": "ok"}
    assert part.get_all_trait_scores() == {"cites": True, "right": False}
    assert {row["trait_name"]: row["kind"] for row in part.rows()} == {"cites": "boolean", "right": "boolean"}


def test_a_failed_agentic_trait_ends_no_item(scripted: Any) -> None:
    result = run(scripted("It is 42.", "no score"), RIGHT, CITES)
    assert result.rubric is not None
    assert result.rubric.trait_errors.keys() == {"right"}
    assert (result.metadata.completed_without_errors, result.metadata.outcome) == (True, "scored")
    assert any("1 of 1 agentic traits" in warning for warning in result.metadata.warnings)


def test_usage_is_recorded_by_task(scripted: Any) -> None:
    result = run(scripted("It is 42.", {"result": True}), RIGHT)
    usage = result.generation.usage_metadata
    assert usage["rubric_agentic_trait_investigation"]["calls"] == 1
    assert usage["rubric_agentic_trait_extraction"]["total_tokens"] > 0


@pytest.mark.parametrize("where", ["judge", "override"])
def test_a_model_that_cannot_investigate_is_refused_before_any_call(where: str, scripted: Any) -> None:
    app = application(rubric_stage, installed=INSTALLED)
    recorded = ModelConfig(interface="manual", manual_traces={"q": "It is 42."})
    trait = AgenticRubricTrait(
        name="right",
        kind="boolean",
        description="Whether the sum is right.",
        model_override=recorded if where == "override" else None,
    )
    with ScriptedServer(scripted()) as server:
        able = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
        with pytest.raises(ConfigError, match=r"right.*cannot investigate|cannot investigate.*right") as refused:
            run_single_model_verification(
                Question(id="q", question="What is the sum?"),
                able,
                able if where == "override" else recorded,
                rubric=Rubric.from_traits([trait]),
                evaluation_mode="rubric_only",
                app=app,
            )
        assert server.count == 0
    assert "rubric_trait_names" in str(refused.value)


def test_the_stage_comes_after_other_traits_and_before_the_guard_of_deep_judgment() -> None:
    app = application(rubric_stage, installed=True)

    def plan(*traits: RubricTrait, mode: Any) -> list[str]:
        return [s.name for s in StageOrchestrator.from_config(mode, Rubric.from_traits(traits), app=app).stages]

    own = "AgenticRubricEvaluation"
    for mode in ("rubric_only", "template_and_rubric"):
        names = plan(RIGHT, CITES, mode=mode)
        assert names[names.index(own) - 1 : names.index(own) + 2] == [
            "RubricEvaluation",
            own,
            "DeepJudgmentRubricAutoFail",
        ]
        assert "RubricEvaluation" not in plan(RIGHT, mode=mode)
        assert own not in plan(CITES, mode=mode)
    assert own not in plan(RIGHT, mode="template_only")


def test_deep_judgment_of_templates_and_agentic_traits_make_one_valid_plan() -> None:
    app = application(rubric_stage, installed=True)
    features = ("deep_judgment", "abstention", "sufficiency", "embedding_check")
    made = StageOrchestrator.from_config(
        "template_and_rubric", Rubric.from_traits([RIGHT, CITES]), features=features, app=app
    )
    assert made.validate_dependencies() == []


def test_the_stage_keeps_the_promises_of_stages() -> None:
    check_stage(
        rubric_stage.AgenticRubricEvaluation,
        strategies={},
        max_examples=5,
    )


def test_the_evaluator_returns_score_and_trace(scripted: Any, tmp_path: Path) -> None:
    """Without a run: a model, a trait, an answer, a folder."""
    (tmp_path / "sum.txt").write_text("42")

    async def both(url: str, say: Any) -> tuple[Any, Any]:
        app, config = application(installed={"openai_endpoint"}), VerificationConfig()
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=url, max_retries=0)
        calls: list[CallRecord] = []
        async with open_models(app, config, [model]) as opened:
            evaluator = AgenticTraitEvaluator(ModelClient(opened[model.identity], calls))
            score = await evaluator.evaluate_trait(RIGHT, "What is the sum?", ANSWER, tmp_path)
            return score, await evaluator.run_extraction(RIGHT, "A record that says yes.")

    says = scripted("It is 42.", {"result": True})
    with ScriptedServer(says) as server:
        (score, trace), extracted = asyncio.run(both(server.url, says))
    assert (score, extracted) == (True, True)
    assert "It is 42." in trace
    assert "A record that says yes." in says.prompts("extraction")[1]


def test_a_whole_run_investigates_a_copy_of_the_workspace_and_leaves_nothing_behind(
    scripted: Any, tmp_path: Path
) -> None:
    (tmp_path / "q1").mkdir()
    (tmp_path / "q1" / "sum.txt").write_text("It is 42.")

    def says(request: Any) -> Any:
        if "evaluation agent" not in request.text:
            return ANSWER
        last = request.messages[-1]
        return (
            "Seen."
            if last["role"] == "tool"
            else Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": "sum.txt"})])
        )

    blind = AgenticRubricTrait(
        name="blind", kind="boolean", description="Whether the file is right.", context_mode="workspace_only"
    )
    filed = AgenticRubricTrait(name="filed", kind="boolean", description="Whether it is told.", materialize_trace=True)
    app = application(rubric_stage, installed=INSTALLED)
    with ScriptedServer(scripted(says, {"result": True})) as server:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url, max_retries=0)
        result = run_single_model_verification(
            Question(id="q1", question="What is the sum?", workspace_path="q1"),
            model,
            model,
            rubric=Rubric.from_traits([blind, filed]),
            evaluation_mode="rubric_only",
            workspace_root=tmp_path,
            app=app,
        )
    part = result.rubric
    assert part is not None
    assert dict(part.agentic_trait_scores) == {"blind": True, "filed": True}, part.trait_states
    for trace in part.agentic_trait_investigation_traces.values():
        assert "It is 42." in trace
    assert [path.name for path in tmp_path.iterdir()] == ["q1"]
    assert [path.name for path in (tmp_path / "q1").iterdir()] == ["sum.txt"]
