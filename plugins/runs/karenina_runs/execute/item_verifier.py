"""Verifying one item."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve
from karenina_calls.metering import Metering
from karenina_calls.models.models import check_models, open_models
from karenina_calls.models.overrides import ModelPool, model_pool, overrides, resolve_models
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.secrets.incoming import SECRET_REMOVED, Cleaner, removal_note, sources_of
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import Secrets
from karenina_calls.services.similarity import similarities
from karenina_calls.usage_totals import usage_metadata
from karenina_judging.services import LOAD_TEMPLATE, OTHER_MODEL, SIMILARITIES

from karenina_core.errors import ConfigError, Problem
from karenina_core.pipeline.artifact_keys import Key
from karenina_core.pipeline.assemble import USAGE
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina, current
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.config import EvaluationMode, ModelConfig, VerificationConfig
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.question import Question
from karenina_core.values.result import VerificationResult
from karenina_core.values.rubric import DynamicRubric, Rubric

from ..plan.canaries import canary_config, canary_mode
from ..plan.items import Item
from ..plan.prepare import check_identities, checked_plans, checked_templates
from ..plan.rubrics import check_names
from ..plan.templates import TemplateLoader
from .control import synchronous
from .senders import Senders
from .surroundings import Place, Surroundings, surroundings_kind
from .watchdogs import IdleStages, watched_stages


@define(eq=False)
class Verifier:
    """Runs the pipeline for items with open models: what the items of a run have in common."""

    app: Karenina
    config: VerificationConfig
    mode: EvaluationMode
    run_name: str | None
    templates: TemplateLoader
    answerers: Mapping[ModelIdentity, Model]
    judges: Mapping[ModelIdentity, Model]
    pool: ModelPool
    """Other models that stages ask for."""
    stages: IdleStages
    """Ends those that hang."""
    surroundings: Surroundings

    async def verify(
        self, item: Item, cached: CachedAnswer | None, place: Place | None, files: dict[str, str] | None = None
    ) -> VerificationResult:
        """Without the place that the item needs, no model is called. What its stages keep is put into `files`."""
        task = item.task
        asked = ItemCalls(item.question.id, task.result_id(self.run_name), meter=self.pool.metering)
        current_item.set(asked)
        if cached is not None:
            asked.removed |= sources_of(cached.text_flags)
            if self.pool.metering is not None:
                cached = Cleaner(self.pool.metering.secrets, asked.removed).reply(cached)
        calls: list[CallRecord] = []
        about = (calls, item.question.id, item.question.question, item.replicate, asked)
        context = VerificationContext(
            question=item.question,
            task=task,
            config=self.config,
            mode=self.mode,
            rubric=item.rubric,
            answering=ModelClient(self.answerers[item.answering.identity], *about),
            parsing=ModelClient(self.judges[item.parsing.identity], *about),
            app=self.app,
            run_name=self.run_name,
            cached_answer_data=cached,
            calls=calls,
            workspace=place.path if place else None,
            services=_Services(self, about, place, files),
        )
        self.surroundings.begin(context, place, cached)
        result = await self.stages.run(asked, context, item.orchestrator)
        if not asked.removed:
            return result
        warnings = (*result.metadata.warnings, removal_note(asked.removed))
        caveats = tuple(dict.fromkeys((*result.metadata.caveats, SECRET_REMOVED)))
        return evolve(result, metadata=evolve(result.metadata, warnings=warnings, caveats=caveats))


def canary_verifier(verifier: Verifier, path: str) -> Verifier:
    """The same for the canaries of a path."""
    return evolve(verifier, config=canary_config(verifier.config, path), mode=canary_mode(path))


@define(eq=False)
class _Services:
    """What a run offers to the stages of one item. Each is made when it is asked for: thousands of items may be under
    way, and few ask."""

    verifier: Verifier
    about: tuple[Any, ...]
    place: Place | None
    files: dict[str, str] | None

    def get(self, kind: Key[Any], default: Any, /) -> Any:
        run = self.verifier
        if kind == USAGE:
            return partial(usage_metadata, self.about[0])
        if kind == LOAD_TEMPLATE:
            return run.templates.load
        if kind == OTHER_MODEL:
            return self._client
        if kind == SIMILARITIES:
            return partial(similarities, run.app, run.config, self.about[0])
        service = run.surroundings.service(kind, self.place, self.files)
        return default if service is None else service

    async def _client(self, model: ModelConfig) -> ModelClient:
        asked: ItemCalls = self.about[-1]
        asked.begun += 1
        try:
            return ModelClient(await self.verifier.pool.model(model), *self.about)
        finally:
            asked.ended += 1


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
    workspace_root: str | Path | None = None,
    app: Karenina | None = None,
) -> VerificationResult:
    """Verify one question with one answering and one parsing model.

    A rubric with any trait turns the mode `template_only` into `template_and_rubric`; so does a dynamic one, whose
    traits are evaluated where the answer takes them up. Traits count as `global` unless the rubric's provenance says
    where they are from; the question's own rubrics are not used. `workspace_root` holds the question's workspace;
    copies of that of a cached answer are made there too, or in a temporary folder. Other settings come from `config`.
    Raises ConfigError, PlanError and TemplateRefused, as a run does, before any call; later there is always a result.
    """
    app = current(app)
    config = config or VerificationConfig()
    config = evolve(config, answering_models=(answering_model,), parsing_models=(parsing_model,))
    rubric = _chosen(question, rubric, dynamic_rubric, config)
    if rubric is not None and len(rubric) and evaluation_mode == "template_only":
        evaluation_mode = "template_and_rubric"
    config = evolve(config, evaluation_mode=evaluation_mode, features=config.features | frozenset(features))
    if replicate < 1:
        raise ConfigError("replicate: counts from 1")
    check_models(app, config)
    rubrics = [rubric if evaluation_mode != "template_only" else None]
    plans, _ = checked_plans(app, config, evaluation_mode, rubrics, [question])
    (plan,) = plans.values()
    models = (answering_model, parsing_model, *(model for _, model in overrides([rubric])))
    secrets = Secrets(secrets_of(app, models))
    check_identities(secrets, config, [question], [rubric], {"run name": [run_name or ""]})
    templates = checked_templates(app, config, evaluation_mode, [question])
    senders = Senders.of_run(config, keeps=False)
    metering = Metering(senders, secrets=secrets)
    item = Item(question, answering_model, parsing_model, replicate, rubric, plan)
    is_answered = cached_answer_data is not None
    surroundings = surroundings_kind().of_item(app, item, config, workspace_root, is_answered=is_answered)
    async with (  # two openings: one configuration may play both roles, with a state of its own in each
        open_models(app, config, [answering_model], "answering", metering) as answerers,
        open_models(app, config, [parsing_model], metering=metering) as judges,
        model_pool(app, config, judges.values(), metering) as pool,
        _place(surroundings, item, cached_answer_data) as place,
        watched_stages(config, app) as stages,
    ):
        what = (app, config, evaluation_mode, run_name, templates, answerers, judges, pool, stages, surroundings)
        return await Verifier(*what).verify(item, cached_answer_data, place)


@asynccontextmanager
async def _place(surroundings: Surroundings, item: Item, cached: CachedAnswer | None) -> AsyncIterator[Place | None]:
    """The item's own; that of a cached answer where there is one, for a new one would not hold the answer's files."""
    try:
        if cached is None:
            async with surroundings.opened(item) as place:
                yield place
        else:
            yield surroundings.lent(cached.workspace) if cached.workspace else None
    finally:
        surroundings.close()


def _chosen(question: Question, rubric: Any, dynamic: Any, config: VerificationConfig) -> Rubric | None:
    """What is evaluated of both rubrics, marked with where it came from. Raises ConfigError."""
    problems = [
        Problem(where, f"must be a Rubric, not {type(given).__name__}; Rubric.from_traits makes one from traits")
        for where, given in (("rubric", rubric), ("dynamic_rubric", dynamic))
        if given is not None and not isinstance(given, Rubric)
    ]
    if problems:
        raise ConfigError(problems)
    parts: list[Rubric] = []
    try:
        if dynamic is not None and not isinstance(dynamic, DynamicRubric):
            dynamic = DynamicRubric.from_traits(dynamic)
        check_names(config, [rubric, dynamic], [question.id], all_known=False)
        if rubric is not None:
            usual = rubric.labelled("dynamic" if isinstance(rubric, DynamicRubric) else "global")
            parts.append(evolve(usual, provenance={**usual.provenance, **rubric.provenance}))
        if dynamic is not None:
            parts.append(dynamic.labelled("dynamic"))
        merged = Rubric.merged(parts) if parts else None
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError([Problem("dynamic_rubric", str(error))]) from None
    names = config.rubric_trait_names
    merged = merged if merged is None or names is None else merged.only(names)
    return resolve_models(config, {question.id: merged})[0][question.id]


run_single_model_verification = synchronous(arun_single_model_verification)
