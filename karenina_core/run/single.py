"""Verifying one item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve

from ..errors import ConfigError, Problem
from ..model.config import EvaluationMode, ModelConfig, VerificationConfig
from ..model.question import Question
from ..model.result import VerificationResult
from ..model.rubric import DynamicRubric, Rubric
from ..pipeline.context import CachedAnswer, VerificationContext
from ..pipeline.orchestrator import StageOrchestrator
from ..plugin.application import Karenina, current
from ..ports.client import CallRecord, Model, ModelClient
from .models import check_models, open_models
from .prepare import Item, check_stages
from .rubrics import check_names
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
    dynamic_rubric: DynamicRubric | None = None,
    evaluation_mode: EvaluationMode = "template_only",
    config: VerificationConfig | None = None,
    features: Iterable[str] = (),
    cached_answer_data: CachedAnswer | None = None,
    replicate: int = 1,
    run_name: str | None = None,
    app: Karenina | None = None,
) -> VerificationResult:
    """Verify one question with one answering and one parsing model.

    A rubric with any trait turns the mode `template_only` into `template_and_rubric`; so does a dynamic one, whose
    traits are evaluated where the answer takes them up. Traits count as `global` unless the rubric's provenance says
    where they are from; the question's own rubrics are not looked at. Settings other than the models
    come from `config`. Raises ConfigError and PlanError before anything is called; after that there is always a result.
    """
    app = current(app)
    base = config or VerificationConfig()
    rubric, dynamic_rubric = _given(rubric, dynamic_rubric)
    check_names(base, [rubric, dynamic_rubric], [question.id], all_known=False)
    rubric = _merged(rubric, dynamic_rubric, base.rubric_trait_names)
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
    check_stages(orchestrator, config, app, [rubric if evaluation_mode != "template_only" else None])
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


def _given(rubric: Any, dynamic: Any) -> tuple[Rubric | None, DynamicRubric | None]:
    """Both rubrics as what they are to be. Raises ConfigError for anything else."""
    problems = [
        Problem(where, f"must be a Rubric, not {type(given).__name__}; Rubric.from_traits makes one from traits")
        for where, given in (("rubric", rubric), ("dynamic_rubric", dynamic))
        if given is not None and not isinstance(given, Rubric)
    ]
    if problems:
        raise ConfigError(problems)
    try:
        usual = dynamic is None or isinstance(dynamic, DynamicRubric)
        return rubric, dynamic if usual else DynamicRubric.from_traits(dynamic)
    except ValueError as error:
        raise ConfigError([Problem("dynamic_rubric", str(error))]) from None


def _merged(rubric: Rubric | None, dynamic: DynamicRubric | None, names: Sequence[str] | None) -> Rubric | None:
    """What is evaluated of both rubrics, marked with where it came from. Raises ConfigError."""
    parts: list[Rubric] = []
    if rubric is not None:
        usual = rubric.labelled("dynamic" if isinstance(rubric, DynamicRubric) else "global")
        parts.append(evolve(usual, provenance={**usual.provenance, **rubric.provenance}))
    if dynamic is not None:
        parts.append(dynamic.labelled("dynamic"))
    if not parts:
        return None
    try:
        merged = Rubric.merged(parts)
    except ValueError as error:
        raise ConfigError([Problem("dynamic_rubric", str(error))]) from None
    return merged if names is None else merged.only(names)


def run_single_model_verification(
    question: Question,
    answering_model: ModelConfig,
    parsing_model: ModelConfig,
    *,
    rubric: Rubric | None = None,
    dynamic_rubric: DynamicRubric | None = None,
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
            dynamic_rubric=dynamic_rubric,
            evaluation_mode=evaluation_mode,
            config=config,
            features=features,
            cached_answer_data=cached_answer_data,
            replicate=replicate,
            run_name=run_name,
            app=app,
        )
    )
