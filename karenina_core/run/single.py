"""Verifying one item."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from ..errors import ConfigError
from ..model.config import EvaluationMode, ModelConfig, VerificationConfig
from ..model.question import Question
from ..model.result import VerificationResult
from ..model.rubric import Rubric
from ..pipeline.context import CachedAnswer, VerificationContext
from ..pipeline.orchestrator import StageOrchestrator
from ..plugin.application import Karenina, current
from ..ports.client import CallRecord, Model, ModelClient
from .models import check_models, open_models
from .prepare import Item, check_stages
from .templates import TemplateLoader

__all__ = ["arun_single_model_verification", "run_item", "run_single_model_verification"]


async def run_item(
    item: Item,
    *,
    app: Karenina,
    config: VerificationConfig,
    mode: EvaluationMode,
    answering: Model,
    parsing: Model,
    templates: TemplateLoader,
    run_name: str | None,
    cached: CachedAnswer | None = None,
) -> VerificationResult:
    """Run the pipeline for one item with open models."""
    calls: list[CallRecord] = []
    about = (calls, item.question.id, item.question.question, item.replicate)
    context = VerificationContext(
        question=item.question,
        task=item.task,
        config=config,
        mode=mode,
        rubric=item.rubric,
        answering=ModelClient(answering, *about),
        parsing=ModelClient(parsing, *about),
        app=app,
        run_name=run_name,
        cached_answer_data=cached,
        load_template=templates.load,
        calls=calls,
    )
    return await item.orchestrator.arun(context)


async def arun_single_model_verification(
    question: Question,
    answering_model: ModelConfig,
    parsing_model: ModelConfig,
    *,
    rubric: Rubric | None = None,
    evaluation_mode: EvaluationMode = "template_only",
    config: VerificationConfig | None = None,
    features: Iterable[str] = (),
    cached_answer_data: CachedAnswer | None = None,
    replicate: int = 1,
    run_name: str | None = None,
    app: Karenina | None = None,
) -> VerificationResult:
    """Verify one question with one answering and one parsing model.

    A rubric with any trait turns the mode `template_only` into `template_and_rubric`. Settings other than the models
    come from `config`. Raises ConfigError and PlanError before anything is called; after that there is always a result.
    """
    app = current(app)
    base = config or VerificationConfig()
    if rubric is not None and len(rubric) and evaluation_mode == "template_only":
        evaluation_mode = "template_and_rubric"
    config = evolve(
        base,
        answering_models=(answering_model,),
        parsing_models=(parsing_model,),
        evaluation_mode=evaluation_mode,
        features=base.features | frozenset(features),
    )
    check_models(app, config)
    if replicate < 1:
        raise ConfigError("replicate: counts from 1")
    orchestrator = StageOrchestrator.from_config(evaluation_mode, rubric, features=config.features, app=app)
    orchestrator.ready()
    check_stages(orchestrator, config, app)
    item = Item(question, answering_model, parsing_model, replicate, rubric, orchestrator)
    # Two openings, because one configuration may play both roles with a state of its own in each.
    async with (
        open_models(app, config, [answering_model]) as answerers,
        open_models(app, config, [parsing_model]) as judges,
    ):
        return await run_item(
            item,
            app=app,
            config=config,
            mode=evaluation_mode,
            answering=answerers[answering_model.identity],
            parsing=judges[parsing_model.identity],
            templates=TemplateLoader(app, config.code_policy),
            run_name=run_name,
            cached=cached_answer_data,
        )


def run_single_model_verification(
    question: Question,
    answering_model: ModelConfig,
    parsing_model: ModelConfig,
    *,
    rubric: Rubric | None = None,
    evaluation_mode: EvaluationMode = "template_only",
    config: VerificationConfig | None = None,
    features: Iterable[str] = (),
    cached_answer_data: CachedAnswer | None = None,
    replicate: int = 1,
    run_name: str | None = None,
    app: Karenina | None = None,
) -> VerificationResult:
    """The same for synchronous callers. See `arun_single_model_verification`."""
    app = current(app)
    return app.run(
        arun_single_model_verification(
            question,
            answering_model,
            parsing_model,
            rubric=rubric,
            evaluation_mode=evaluation_mode,
            config=config,
            features=features,
            cached_answer_data=cached_answer_data,
            replicate=replicate,
            run_name=run_name,
            app=app,
        )
    )
