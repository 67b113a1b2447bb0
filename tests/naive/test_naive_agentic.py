"""Ways to let agents judge that look right and are not: each law holds for ours and rejects the variant."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from karenina_agentic import AgenticTraitEvaluator
from karenina_agentic.parse_stage import AgenticParseTemplate
from karenina_agentic.rubric_stage import AgenticRubricEvaluation
from karenina_calls.models.models import open_models
from karenina_calls.ports.client import ModelClient
from karenina_testing.adapters.replies import ServedRequest

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    StageOrchestrator,
    VerificationConfig,
)
from karenina_core.pipeline.context import VerificationContext
from karenina_core.testing import ScriptedServer, application

TRACE = "SECRET-TRACE: I wrote totals.csv."

# A plan: what other stages require of whoever fills the template in.


class ProducesOnlyItsOwn(AgenticParseTemplate):
    """Declares what it finds out, and not what stages of deep judgment require of its place in the plan."""

    name = "AgenticParseTemplate"
    produces = (
        ArtifactKeys.PARSED_ANSWER,
        ArtifactKeys.PARSING_MODEL_STR,
        ArtifactKeys.INVESTIGATION_TRACE,
        ArtifactKeys.AGENTIC_PARSING_PERFORMED,
    )


def every_combination_of_features_is_a_valid_plan(stage: type[AgenticParseTemplate]) -> None:
    app = application(stage, installed=PLANNED)
    rubric = Rubric.from_traits([LLMRubricTrait(name="clear", kind="boolean")])
    others = ("deep_judgment", "abstention", "sufficiency", "embedding_check")
    for count in range(len(others) + 1):
        for chosen in itertools.combinations(others, count):
            plan = StageOrchestrator.from_config(
                "template_and_rubric", rubric, features=("agentic_parsing", *chosen), app=app
            )
            assert plan.validate_dependencies() == []


PLANNED = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("abstention-check", "sufficiency-check", "verify-template", "embedding-check", "deep-judgment"),
    *("deep-judgment-auto-fail", "rubric-evaluation", "deep-judgment-rubric-auto-fail", "finalize-result"),
    "parse-template",
}


def test_agentic_parsing_and_deep_judgment_make_a_valid_plan() -> None:
    every_combination_of_features_is_a_valid_plan(AgenticParseTemplate)


def test_a_stage_that_declares_its_own_finds_only_breaks_plans() -> None:
    with pytest.raises(AssertionError):
        every_combination_of_features_is_a_valid_plan(ProducesOnlyItsOwn)


# Prompts: who is shown what.

Prompts = list[str]


def model_at(url: str) -> ModelConfig:
    return ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=url, max_retries=0)


def asked(work: Callable[[str], Any]) -> Prompts:
    """What investigators are told while the work goes on."""
    prompts: Prompts = []

    def says(request: ServedRequest) -> str:
        if "record of an investigation" in request.text:
            return '{"result": true}'
        prompts.append(request.text)
        return "It is all there."

    with ScriptedServer(says) as server:
        asyncio.run(work(server.url))
    return prompts


def shared_prompts(traits: Sequence[AgenticRubricTrait], **config: Any) -> Prompts:
    """What the agents of the shared strategy are told."""

    async def work(url: str) -> None:
        app, settings = application(installed={"openai_endpoint"}), VerificationConfig(**config)
        model = model_at(url)
        with tempfile.TemporaryDirectory() as folder:
            async with open_models(app, settings, [model]) as opened:
                context = VerificationContext(
                    question=Question(id="q", question="What is the sum?"),
                    config=settings,
                    mode="rubric_only",
                    rubric=Rubric.from_traits(traits),
                    parsing=ModelClient(opened[model.identity], []),
                    app=app,
                    workspace=Path(folder),
                )
                context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, TRACE)
                stage = AgenticRubricEvaluation()
                with context.acting(stage):
                    await stage.execute(context)

    return asked(work)


def by_context(traits: Sequence[AgenticRubricTrait]) -> Prompts:
    return shared_prompts(traits, agentic_rubric_strategy="shared", agentic_rubric_by_context=True)


def in_one_union(traits: Sequence[AgenticRubricTrait]) -> Prompts:
    """One agent for everything: what any trait may see, all of them see."""
    return shared_prompts(traits, agentic_rubric_strategy="shared")


def no_agent_of_a_trait_about_the_workspace_is_shown_the_trace(
    prompts_of: Callable[[Sequence[AgenticRubricTrait]], Prompts],
) -> None:
    modes: tuple[Any, ...] = ("workspace_only", "trace_and_workspace", "trace_only", "workspace_only")
    traits = [
        AgenticRubricTrait(name=f"t{number}", kind="boolean", description=f"About {mode}.", context_mode=mode)
        for number, mode in enumerate(modes)
    ]
    prompts = prompts_of(traits)
    assert any("SECRET-TRACE" in prompt for prompt in prompts)
    for prompt in prompts:
        assert not ("About workspace_only." in prompt and "SECRET-TRACE" in prompt)


def test_grouped_by_context_no_trait_meets_what_it_must_not_see() -> None:
    no_agent_of_a_trait_about_the_workspace_is_shown_the_trace(by_context)


def test_one_agent_for_everything_shows_the_trace_to_traits_about_the_workspace() -> None:
    with pytest.raises(AssertionError):
        no_agent_of_a_trait_about_the_workspace_is_shown_the_trace(in_one_union)


# The trace as a file.

Investigate = Callable[[AgenticTraitEvaluator, AgenticRubricTrait, Path], Any]


def with_file(evaluator: AgenticTraitEvaluator, trait: AgenticRubricTrait, file: Path) -> Any:
    return evaluator.evaluate_trait(trait, "What is the sum?", TRACE, trace_file=file)


def written_and_forgotten(evaluator: AgenticTraitEvaluator, trait: AgenticRubricTrait, file: Path) -> Any:
    """The file is there, but nobody tells the agent of it."""
    return evaluator.evaluate_trait(trait, "What is the sum?", TRACE)


def a_trace_in_a_file_is_named_and_not_quoted(investigate: Investigate) -> None:
    trait = AgenticRubricTrait(name="right", kind="boolean", description="Whether it is right.", materialize_trace=True)

    async def work(url: str) -> None:
        app, settings, model = application(installed={"openai_endpoint"}), VerificationConfig(), model_at(url)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trace_q.txt")
            file.write_text(TRACE)
            async with open_models(app, settings, [model]) as opened:
                evaluator = AgenticTraitEvaluator(ModelClient(opened[model.identity], []))
                await investigate(evaluator, trait, file)

    (prompt,) = asked(work)
    assert "trace_q.txt" in prompt
    assert "SECRET-TRACE" not in prompt


def test_a_materialized_trace_reaches_the_prompt_as_a_file() -> None:
    a_trace_in_a_file_is_named_and_not_quoted(with_file)


def test_a_file_that_nobody_is_told_of_leaves_the_trace_in_the_prompt() -> None:
    with pytest.raises(AssertionError):
        a_trace_in_a_file_is_named_and_not_quoted(written_and_forgotten)
