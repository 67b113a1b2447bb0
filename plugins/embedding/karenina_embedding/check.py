"""EmbeddingCheck: a second opinion on texts that were judged wrong. The same in other words is right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from attrs import astuple, evolve, frozen
from karenina_calls.services.shared import EmbedderRegistry, embedder_of
from karenina_judging.asking import unable_judges
from karenina_judging.judgment import own_strategy
from karenina_judging.services import SIMILARITIES
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.tasks import EMBEDDING, PromptTask

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    hookimpl,
)
from karenina_core.errors import PluginError, PortError, Problem, TemplateError, UnknownName, one_line
from karenina_core.pipeline.stage import in_mode

from .equivalence import Accepted, Pair, Wrong, opinions
from .settings import EMBEDDING_THRESHOLD

FEATURE = "embedding_check"
REASON_LIMIT = 200  # characters of the judge's reasoning; chosen
FAILURES = (PluginError, PortError, TemplateError)
"""What may go wrong with an embedder, a judge and a template."""

PRICE = (
    "the cost of its calls is unknown; set the price in the settings of its plugin (litellm: input_cost_per_token) or "
    "limit budget_tokens instead; an embedder of your own says reports_cost = True, or needs_provider = False where it "
    "computes on this machine"
)


@frozen(kw_only=True)
class Finding:
    """What the check leaves behind, in the order of the four artifacts."""

    performed: bool = False
    """Whether there were texts to compare, also where the embedder failed."""
    similarity_score: float | None = None
    """The lowest similarity among them; None where the embedder failed."""
    model_used: str | None = None
    override_applied: bool = False


class EmbeddingCheck(Stage):
    """Compares the wrong texts with the expected ones by an embedder; the judge decides about those that are close.

    Of two lists of texts each extracted text is compared with the most similar expected one that is not in both lists;
    with those that the judge calls equivalent in its place, the template itself compares the list. The check overrides
    the comparison of fields where the template passes then. It never overrides a pattern that failed, nor a guard.
    Where no override is possible the judge is not asked, and a failure of embedder or judge is a warning.
    `embedding_check_performed` says whether there were texts to compare, and `embedding_similarity_score` is the lowest
    similarity among them.
    """

    category = Category.ENHANCEMENT
    requires = (
        ArtifactKeys.PARSED_ANSWER,
        ArtifactKeys.FIELD_VERIFICATION_RESULT,
        ArtifactKeys.REGEX_VERIFICATION_RESULTS,
    )
    reads = (ArtifactKeys.ANSWER, ArtifactKeys.RAW_LLM_RESPONSE)
    produces = (
        ArtifactKeys.EMBEDDING_CHECK_PERFORMED,
        ArtifactKeys.EMBEDDING_SIMILARITY_SCORE,
        ArtifactKeys.EMBEDDING_MODEL_USED,
        ArtifactKeys.EMBEDDING_OVERRIDE_APPLIED,
    )
    result_fields = produces
    revises = ("field_results", "field_scores", "verify_granular_result")
    features = (FEATURE,)
    included_when = in_mode("template_only", "template_and_rubric")
    before = ("DeepJudgmentAutoFail",)

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        if FEATURE not in config.features:
            idle = config.embedding_check_threshold != EMBEDDING_THRESHOLD
            what = "embedding_check_threshold has no effect: feature embedding_check is off (--with embedding_check)"
            return [Problem("", what, fatal=False)] if idle else []
        task, remedy = PromptTask.EMBEDDING_EQUIVALENCE, "leave the check out (--without embedding_check)"
        judges = unable_judges(app, config.parsing_models, task, remedy)
        return [*judges, *self._embedder_problems(config, app)]

    def _embedder_problems(self, config: VerificationConfig, app: Karenina) -> list[Problem]:
        name, model = config.embedding_check_embedder, config.embedding_check_model
        known = app.registry(EmbedderRegistry)
        if name not in known:
            try:
                known.load(name)
            except UnknownName as error:
                return [Problem("embedding_check_embedder", str(error))]
        if not config.parsing_models:
            return []
        try:
            embedder = embedder_of(app, name, model)
            problem = embedder.problem()
        except PluginError as error:
            return [Problem("embedding_check_embedder", str(error))]
        if problem:
            return [Problem("embedding_check_embedder", problem)]
        if config.budget_usd is None or embedder.reports_cost or not embedder.needs_provider:
            return []
        return [Problem("budget_usd", f"embedder {name}:{model}: {PRICE}")]

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """None where no text was wrong."""
        if FEATURE in config.features:
            embedder = f"{config.embedding_check_embedder}:{config.embedding_check_model}"
            yield PlannedCall(task=EMBEDDING, least=0, model=embedder, unless_decided=True)
            sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
            task = PromptTask.EMBEDDING_EQUIVALENCE
            yield PlannedCall(task=task, least=0, sends=sends, reads_answer=False, unless_decided=True)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        if not (allowed := super().should_run(context)):
            return allowed
        if not context.has_artifact(ArtifactKeys.PARSED_ANSWER):
            return Skip("there is no parsed answer")
        if own_strategy(context.get_artifact(ArtifactKeys.ANSWER, None)):
            return Skip("a judgment is compared, and no text")
        if context.verdict.field is not False:
            return Skip("no field was found to be wrong")
        if not context.has_artifact(ArtifactKeys.REGEX_VERIFICATION_RESULTS):
            return Skip("the template was not verified")
        guards = [effect.stage for effect in context.effects if effect.verdict is False and effect.outcome != "failed"]
        return Skip(f"{guards[0]} has decided already") if guards else True

    async def execute(self, context: VerificationContext) -> None:
        finding = await _examined(context) if FEATURE in context.config.features else Finding()
        for key, value in zip(map(str, self.produces), astuple(finding), strict=True):
            context.set_artifact_and_result(key, value)


async def _examined(context: VerificationContext) -> Finding:
    """Compare, ask, and override where that is due. What fails on the way is a warning."""
    wrong = Wrong.of(context)
    pairs = [pair for candidate in wrong.candidates for pair in candidate.pairs]
    if not pairs:
        context.note("nothing was compared: no wrong field holds a text in both its expected and its extracted value")
        return Finding()
    try:
        measured = await context.service(SIMILARITIES)([(pair.expected, pair.extracted) for pair in pairs])
    except FAILURES as error:
        context.warn(f"the embedding check failed: {one_line(error)}")
        return Finding(performed=True)
    scores = dict(zip(pairs, measured.scores, strict=True))
    lowest = min(scores[pair] for candidate in wrong.candidates for pair in candidate.matched(scores))
    finding = Finding(performed=True, similarity_score=lowest, model_used=measured.model)
    try:
        override = await _override(context, wrong, scores)
    except FAILURES as error:
        context.warn(f"the embedding check overrides nothing: {one_line(error)}")
        return finding
    if override is None:
        return finding
    patterns: Any = context.get_artifact(ArtifactKeys.REGEX_VERIFICATION_RESULTS)
    accepted, reason = override
    verdict = accepted.verdict
    # Where a pattern failed the answer stays wrong, and is called so.
    context.record(field=True, verdict=bool(patterns.get("success")), reason=reason, outcome="failed")
    context.warn(f"the embedding check overrode the comparison of fields: {reason}")
    revised: dict[str, Any] = {
        "field_results": dict(verdict.field_results),
        "field_scores": dict(verdict.field_scores),
        "verify_granular_result": None,
    }
    try:
        revised["verify_granular_result"] = await accepted.filled.granular()
    except TemplateError as error:  # partial credit is extra: the verdict is kept
        context.warn(f"verify_granular failed: {error}")
    for name, value in revised.items():
        if name in context.result_fields:
            context.revise_result_field(name, value)
    return evolve(finding, override_applied=True)


async def _override(
    context: VerificationContext, wrong: Wrong, scores: Mapping[Pair, float]
) -> tuple[Accepted, str] | None:
    """The template with the equivalent fields accepted, where it passes then, and the reason."""
    threshold = context.config.embedding_check_threshold
    close = [pair for c in wrong.candidates for pair in c.matched(scores) if scores[pair] >= threshold]
    names = await _settled(wrong, close)
    if not names:
        context.note("the judge was not asked: no wrong field would be right by texts that are similar enough")
        return None
    if not (await wrong.accepting(names)).verdict.result:
        context.note(f"the judge was not asked: the answer would not pass with {', '.join(names)} accepted either")
        return None
    judged = await opinions(context, [pair for pair in close if pair.field in names])
    same = [pair for pair in close if pair.key in judged and judged[pair.key].equivalent]
    if not (names := await _settled(wrong, same)):
        return None
    accepted = await wrong.accepting(names)
    reasons = {pair.key: f"similarity {scores[pair]:.2f}; {judged[pair.key].reasoning[:REASON_LIMIT]}" for pair in same}
    equal = "; ".join(f"{key} ({reason})" for key, reason in reasons.items())
    return (accepted, f"the same in other words: {equal}") if accepted.verdict.result else None


async def _settled(wrong: Wrong, same: Collection[Pair]) -> list[str]:
    """The fields that are right where these pairs mean the same."""
    own = [(candidate, [pair for pair in same if pair.field == candidate.name]) for candidate in wrong.candidates]
    return [candidate.name for candidate, pairs in own if await wrong.settled(candidate, pairs)]


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(EmbeddingCheck)
