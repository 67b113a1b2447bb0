"""From a benchmark and a configuration to a list of items: everything that can be checked before a model is called."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

from attrs import evolve, fields_dict
from karenina_calls.limits.budget import check_limits
from karenina_calls.models.models import check_models, has_tools
from karenina_calls.models.overrides import check_overrides, overrides, resolve_models
from karenina_calls.secrets.redaction import Secrets
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import RegexRubricTrait, ScoredTrait

from karenina_core.errors import ConfigError, ErrorKind, Problem, TemplateError, TemplateRefused, did_you_mean, one_line
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import EvaluationMode, VerificationConfig, sections
from karenina_core.values.convert import unstructure
from karenina_core.values.fields import changed
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric, RubricTrait

from ..answers.answers import ReplayStore
from ..execution_settings import ExecutionSettings
from ..kinds import ExecutorRegistry
from ..summaries.rates import LeftOut
from ..trust.store import trusted_digest
from ..workspaces.workspace_sources import WorkspaceChecks
from .canaries import check_canaries
from .items import NO_ANSWER, Prepared, check_answers, trait_types, unanswered
from .recorded import check_recorded
from .rubrics import all_rubrics, check_names, check_types, notes_on_rubrics, rubric_of, rubrics_of
from .templates import TemplateLoader
from .without_template import note_on_stand_ins, with_stand_ins

TRUSTED = "the code of this benchmark runs in this process: it is trusted (karenina trust, SHA-256 {}...)"
UNABLE = "could not check the configuration"
OUTCOMES = ("auto_failed", "insufficient", *get_args(ErrorKind))
"""Words of results that are long enough to be a secret."""
PROMPTS = ("prompt_config", "few_shot_config")
"""Settings that are texts for models."""
NAMES_OF_MODELS = ("model_name", "id", "interface", "model_provider")
NO_TEMPLATE = "has no answer template"
WITHOUT_TEMPLATE = (
    "; if there are reference answers, draft templates with a model (karenina benchmark draft BENCHMARK -o "
    "drafted.jsonld --model MODEL), or judge answers against them, which is weaker evidence (karenina verify "
    "BENCHMARK --judge-with reference)"
)
OF_A_SHEET = (
    "; if a column of the sheet holds the correct values, name it: karenina benchmark import SHEET -o "
    'questions.jsonld --map "COLUMN=expected"'
)
FOUND = (
    "holds the value of {}, which is removed from all that models say and all that is kept; change that place, or, if "
    "the value is not a secret, unset the variable or give the setting another value"
)


def prepare(
    benchmark: BenchmarkData,
    config: VerificationConfig,
    *,
    app: Karenina,
    question_ids: Sequence[str] | None = None,
    run_name: str | None = None,
    workspace_root: Path | None = None,
    answers: ReplayStore | None = None,
) -> Prepared:
    """Check everything. `workspace_root` is the benchmark's by default; `answers` are given to the run.

    Raises ConfigError, PlanError (both ValueErrors), TemplateRefused or PluginError; calls no model, runs no code.
    """
    trusted_code = trusted_digest(benchmark, config.code_policy)
    if trusted_code is not None:
        config = evolve(config, code_policy="trusted")
    resolutions = check_models(app, config)
    plain = {question.id for question in benchmark.questions if question.template is None}
    benchmark = with_stand_ins(app, config, benchmark)
    _check_executor(app, config)
    mode = config.evaluation_mode or default_mode(benchmark)
    check_types(config, benchmark, question_ids)
    check_names(config, all_rubrics(benchmark), [question.id for question in benchmark.questions])
    questions, left_out = _select(benchmark, mode, question_ids, config.rubric_trait_names)
    rubrics, of_models = resolve_models(config, rubrics_of(benchmark, questions, mode, config.rubric_trait_names))
    plans, of_stages = checked_plans(app, config, mode, rubrics.values(), questions)
    templates = checked_templates(app, config, mode, questions)
    if config.canaries:
        check_canaries(app, config, templates)
    root = workspace_root or benchmark.workspace_root
    tools = any(has_tools(model, resolutions[str(model.identity)]) for model in config.answering_models)
    workspaces = WorkspaceChecks(root, config, questions, rubrics, tools)
    of_workspaces = workspaces.check(app)
    prepared = Prepared(
        app=app,
        benchmark=benchmark,
        config=config,
        mode=mode,
        run_name=run_name or f"run_{uuid4().hex[:8]}",
        questions=tuple(questions),
        left_out=tuple(left_out),
        rubrics=rubrics,
        plans=plans,
        resolutions=resolutions,
        templates=templates,
        notes=(
            *([TRUSTED.format(trusted_code[:12])] if trusted_code else []),
            *dict.fromkeys(r.note for r in resolutions.values() if r.note),
            *of_stages,
            *notes_on_rubrics(config, mode, benchmark, questions, rubrics.values()),
            *note_on_stand_ins(config, [question.id for question in questions if question.id in plain], mode),
            *of_models,
            *(*of_workspaces, *workspaces.idle()),
        ),
        workspace_root=root,
        answers=answers,
        trusted_code=trusted_code,
    )
    return _with_answers(prepared)


def _check_executor(app: Karenina, config: VerificationConfig) -> None:
    known = app.registry(ExecutorRegistry)
    if config.executor not in known:
        hint = did_you_mean(config.executor, known)
        raise ConfigError([Problem("executor", f"there is no {config.executor!r}{hint}")])


def _with_answers(prepared: Prepared) -> Prepared:
    """With notes on the answers that the run was given, and without the questions that they leave out."""
    config = prepared.config
    stages = [stage.name for plan in prepared.plans.values() for stage in plan.stages]
    others = {"run name": [prepared.run_name], "evaluation mode": [str(prepared.mode)], "name of a stage": stages}
    check_identities(Secrets(prepared.secrets), config, prepared.questions, prepared.rubrics.values(), others)
    without = unanswered(prepared)
    kept = tuple(question for question in prepared.questions if question.id not in without)
    rubrics = {question.id: prepared.rubrics[question.id] for question in kept}
    left = (LeftOut(question.id, NO_ANSWER) for question in prepared.questions if question.id in without)
    prepared = evolve(prepared, questions=kept, rubrics=rubrics, left_out=(*prepared.left_out, *left))
    of_recorded = check_recorded(config, prepared.benchmark.questions, kept)
    return evolve(prepared, notes=(*prepared.notes, *of_recorded, *check_answers(prepared)))


def default_mode(benchmark: BenchmarkData) -> EvaluationMode:
    """Rubrics too where some trait can be scored."""
    rubrics = all_rubrics(benchmark)
    usable = any(rubric is not None and len(rubric.usable) for rubric in rubrics)
    return "template_and_rubric" if usable else "template_only"


def _select(
    benchmark: BenchmarkData,
    mode: EvaluationMode,
    question_ids: Sequence[str] | None,
    names: Sequence[str] | None,
) -> tuple[list[Question], list[LeftOut]]:
    """The questions to run and those that are left out. Raises ConfigError for unknown ids and for nothing to do."""
    known = {q.id for q in benchmark.questions}
    unknown = [i for i in question_ids or () if i not in known]
    if unknown:
        raise ConfigError(
            [Problem("questions", f"there is no question {i!r}{did_you_mean(i, known)}") for i in unknown]
        )
    wanted = known if question_ids is None else set(question_ids)
    chosen: list[Question] = []
    left_out: list[LeftOut] = []
    for question in (q for q in benchmark.questions if q.id in wanted):
        reason = why_left_out(benchmark, question, mode, names)
        if reason:
            left_out.append(LeftOut(question.id, reason))
        else:
            chosen.append(question)
    if not chosen:
        reasons = "; ".join(f"{q.question_id}: {q.reason}" for q in left_out[:5]) or "the benchmark has no questions"
        scored = mode != "rubric_only" and any(
            not why_left_out(benchmark, question, "rubric_only", names) for question in benchmark.questions
        )
        hint = (
            "; to score answers by the rubric alone, choose the mode rubric_only (--mode rubric_only)" if scored else ""
        )
        if any(reason.reason == NO_TEMPLATE for reason in left_out):
            hint += (OF_A_SHEET if "table" in benchmark.metadata else "") + WITHOUT_TEMPLATE
        raise ConfigError([Problem("questions", f"nothing to verify ({reasons}){hint}")])
    return chosen, left_out


def why_left_out(
    benchmark: BenchmarkData, question: Question, mode: EvaluationMode, names: Sequence[str] | None = None
) -> str:
    """The reason why a question is not run in this mode, or nothing. Raises ConfigError as `rubric_of` does."""
    if question.finished is False:
        return "not finished"
    if mode != "rubric_only" and question.template is None:
        return NO_TEMPLATE
    if mode == "rubric_only":
        rubric = rubric_of(benchmark, question, mode, names)
        if rubric is None or not len(rubric.usable):
            return "has no rubric traits that can be scored"
    return ""


def checked_plans(
    app: Karenina,
    config: VerificationConfig,
    mode: EvaluationMode,
    rubrics: Collection[Rubric | None],
    questions: Sequence[Question],
) -> tuple[dict[frozenset[str], StageOrchestrator], list[str]]:
    """The plan for each set of types of traits, and notes of stages: those of the plans are asked whether they can work
    with the configuration, the rubrics and the questions, and all other installed ones whether something is configured
    for nothing.

    Raises PlanError, and ConfigError with all problems that are fatal.
    """
    plans = {}
    for kind, rubric in {trait_types(rubric): rubric for rubric in rubrics}.items():
        request = PlanRequest(mode=mode, features=config.features, rubric=rubric)
        plans[kind] = StageOrchestrator.for_request(request, app=app)
        plans[kind].ready()
    check_overrides(app, rubrics, config)
    different = list({id(rubric): rubric for rubric in rubrics if rubric is not None}.values())
    found = dict.fromkeys(_problems(plans.values(), evolve(config, evaluation_mode=mode), app, different, questions))
    if fatal := [problem for problem in found if problem.fatal]:
        raise ConfigError(fatal)
    check_limits(app, config, [model for _, model in overrides(rubrics)])
    return plans, list(map(str, found))


def checked_templates(
    app: Karenina, config: VerificationConfig, mode: EvaluationMode, questions: Sequence[Question]
) -> TemplateLoader:
    """What loads the templates. Raises TemplateRefused where they may not run: a run is refused as a whole, not every
    single item. Other trouble is the item's own."""
    templates = TemplateLoader(app, config.code_policy)
    refused: list[tuple[str, TemplateRefused]] = []
    for question in questions:
        if question.template is None or mode == "rubric_only":
            continue
        try:
            templates.runtime_for(question.template)
        except TemplateRefused as error:
            refused.append((question.id, error))
        except TemplateError:
            continue  # an unknown language: ValidateTemplate reports it for the item
    if refused:
        first, reason = refused[0]
        raise TemplateRefused(f"{len(refused)} of {len(questions)} questions (first: {first}): {reason}")
    return templates


def settings_problems(
    plans: Sequence[StageOrchestrator],
    config: VerificationConfig,
    app: Karenina,
    mode: EvaluationMode,
    questions: Sequence[Question] = (),
) -> list[Problem]:
    """The problems and notes that do not depend on models, keys and files: stages check one without models."""
    bare = evolve(config, answering_models=(), parsing_models=(), evaluation_mode=mode)
    found = dict.fromkeys(_problems(plans, bare, app, (), questions))
    return [problem for problem in found if UNABLE not in problem.message]


def _problems(
    plans: Collection[StageOrchestrator],
    config: VerificationConfig,
    app: Karenina,
    rubrics: Sequence[Rubric],
    questions: Sequence[Question],
) -> Iterator[Problem]:
    used = {stage.name: stage for plan in plans for stage in plan.stages}
    others = {why.name: (stage, why.reason) for plan in plans for stage, why in plan.left_out.items()}
    left_out = [found for name, found in others.items() if name not in used]
    for stage in used.values():
        yield from _asked(stage, "check_config", config, app)
        if rubrics:
            yield from _asked(stage, "check_rubrics", rubrics, config, app)
        if questions:
            yield from _asked(stage, "check_questions", questions, config, app)
    for stage, _ in left_out:
        yield from _asked(stage, "check_left_out", config, app)
    read = {name for stage in used.values() for name in getattr(type(stage), "settings", ())}
    idle = {name: why for stage, why in left_out for name in getattr(type(stage), "settings", ()) if name not in read}
    active = {info.distribution for info in app.plugins if info.state == "active"}
    inactive = {info.distribution for info in app.plugins} - active
    for section in sections():  # settings of how a run is executed have an effect, whichever plugin brings its executor
        if section.cls not in (None, ExecutionSettings) and section.info.distribution in inactive:
            why = f"no plugin of {section.info.distribution} is active"
            idle |= {name: why for name in fields_dict(section.cls) if name not in read}
    for name in changed(config, idle):
        yield Problem("", f"{name} has no effect: {idle[name]}", fatal=False)


def _asked(stage: Any, method: str, *arguments: Any) -> Sequence[Problem]:
    check = getattr(stage, method, None)
    try:
        return () if check is None else tuple(check(*arguments))
    except Exception as error:  # code of a plugin
        return (Problem("", f"{stage.name} {UNABLE}: {one_line(error)}"),)


def check_identities(
    secrets: Secrets,
    config: VerificationConfig,
    questions: Iterable[Question],
    rubrics: Iterable[Rubric | None],
    others: Mapping[str, Iterable[str]],
) -> None:
    """Refuse a run whose names hold a secret, or what its answers are compared with: a secret is removed from
    every reply, and would never be found there. So are prompts that would send one to a model. `others` are more
    names, by what they are names of.

    Raises ConfigError; the secret is not in it, and neither is the name.
    """
    if not secrets:
        return
    listed, asked = list(rubrics), list(enumerate(questions, 1))
    models = (*config.answering_models, *config.parsing_models, *(model for _, model in overrides(listed)))
    names = [
        *((f"the id of question {number}", question.id) for number, question in asked),
        *((f"the text of question {number}", question.question) for number, question in asked),
        *((f"an example of question {number}", _as_text(q.few_shot_examples)) for number, q in asked),
        *(("a system prompt", model.system_prompt or "") for model in models),
        *((name, _as_text(getattr(config, name, None))) for name in PROMPTS),
        *((f"the template of question {number}", q.template.text) for number, q in asked if q.template is not None),
        *((f"a keyword of question {number}", keyword) for number, q in asked for keyword in q.keywords),
        *(named for rubric in listed for trait in rubric or () for named in _of_trait(trait)),
        *((f"{name} of a model", getattr(model, name) or "") for model in models for name in NAMES_OF_MODELS),
        *(("the name of a tool server", server) for model in models for server in model.mcp_urls_dict),
        *((name, getattr(config, name)) for name in ("embedding_check_embedder", "embedding_check_model")),
        *((f"the {kind}", name) for kind, found in others.items() for name in found),
        *(("a word of every result", word) for word in OUTCOMES),
    ]
    problems = [
        Problem("", f"{what} {FOUND.format(source)}") for what, name in names for source in secrets.sources_in(name)
    ]
    if problems:
        raise ConfigError(dict.fromkeys(problems))


def _as_text(value: Any) -> str:
    return json.dumps(unstructure(value), default=str, ensure_ascii=False)


def _of_trait(trait: RubricTrait) -> Iterator[tuple[str, str]]:
    """What is looked for in an answer, and what a judge may say of it."""
    yield "the name of a trait", trait.name
    yield "the description of a trait", trait.description or ""
    if isinstance(trait, RegexRubricTrait):
        yield "the pattern of a trait", trait.pattern
        yield "the pattern of a trait", re.sub(r"\\(.)", r"\1", trait.pattern)  # as `re.escape` may have written it
    if isinstance(trait, ScoredTrait):
        for name, about in (trait.classes or {}).items():
            yield "the name of a class of a trait", name
            yield "the description of a class of a trait", about or ""
        if isinstance(trait.kind, TemplateKind):
            yield "the schema of a trait", json.dumps(trait.kind.schema, default=str)
