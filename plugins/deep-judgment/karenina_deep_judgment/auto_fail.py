"""DeepJudgmentAutoFail: what nothing in the answer speaks for does not pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from karenina_calls.services.shared import search_tool_of
from karenina_judging.asking import unable_judges
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.kinds import StrategyRegistry
from karenina_vocabulary.tasks import PromptTask

from karenina_core import Category, Karenina, Skip, Stage, VerificationConfig, VerificationContext, feature, hookimpl
from karenina_core.errors import KareninaError, Problem
from karenina_core.pipeline.stage import in_mode

STRATEGY = "deep_judgment"
BEYOND = "values_beyond_excerpts"


class DeepJudgmentAutoFail(Stage):
    """Fails the verdict when an attribute has no quotation that occurs in the answer, or a value that must be in its
    quotations and is not."""

    category = Category.ENHANCEMENT
    calls = ()
    requires = (
        ArtifactKeys.DEEP_JUDGMENT_PERFORMED,
        ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS,
        ArtifactKeys.VERIFY_RESULT,
        ArtifactKeys.FIELD_VERIFICATION_RESULT,
    )
    reads = (ArtifactKeys.ABSTENTION_DETECTED,)
    included_when = in_mode("template_only", "template_and_rubric") & feature("deep_judgment")
    after = ("EmbeddingCheck",)
    settings = (
        "deep_judgment_reasoning_only",
        "deep_judgment_max_excerpts_per_attribute",
        "deep_judgment_fuzzy_match_threshold",
        "deep_judgment_excerpt_retry_attempts",
        "deep_judgment_on_invented",
        "deep_judgment_bind_values",
        "deep_judgment_search_enabled",
        "deep_judgment_search_tool",
    )

    def should_run(self, context: VerificationContext) -> bool | Skip:
        if not (allowed := super().should_run(context)):
            return allowed
        if not context.get_artifact(ArtifactKeys.DEEP_JUDGMENT_PERFORMED, False):
            return Skip("deep judgment was not performed")
        if context.config.deep_judgment_mode == "reasoning_only":
            return Skip("the mode reasoning_only looks for no excerpts")
        if context.get_artifact(ArtifactKeys.ABSTENTION_DETECTED, None):
            return Skip("the model abstained")
        if context.get_artifact(ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS, []):
            return True
        return True if context.get_result_field(BEYOND, ()) else Skip("every attribute has an excerpt")

    def execute(self, context: VerificationContext) -> None:
        missing = context.get_artifact(ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS)
        made_up = context.get_result_field("attributes_with_invented_excerpts", ())
        reasons = [unsupported(missing, made_up)] if missing else []
        if beyond := context.get_result_field(BEYOND, ()):
            reasons.append(f"a value that is in none of its excerpts: {', '.join(beyond)}")
        context.record(field=False, verdict=False, reason="; ".join(reasons))

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        if not config.deep_judgment_enabled:
            return
        if STRATEGY not in app.registry(StrategyRegistry):
            remedy = "install karenina-deep-judgment, or do not block its plugin deep-judgment"
            yield Problem(
                "deep_judgment_enabled", f"no plugin provides the strategy {STRATEGY!r}; {remedy}.{app.inactive()}"
            )
        full = config.deep_judgment_mode == "full"
        task = PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION if full else PromptTask.DJ_TEMPLATE_REASONING_ONLY
        yield from unable_judges(app, config.parsing_models, task, "use --without deep_judgment")
        if full and config.deep_judgment_search_enabled:
            try:
                tool = search_tool_of(app, config.deep_judgment_search_tool)
                problem = tool.problem() if config.parsing_models else None  # a plan asks for no key
            except (KareninaError, TypeError) as error:
                problem = str(error)
            if problem:
                yield Problem("deep_judgment_search_tool", problem)


def unsupported(missing: Sequence[str], made_up: Collection[str]) -> str:
    """Why the names in `missing` count as unsupported. Of `made_up` the judge gave quotations that are not there."""
    silent = [name for name in missing if name not in made_up]
    reasons = [f"without an excerpt: {', '.join(silent)}"] if silent else []
    return "; ".join([*reasons, *([f"only invented quotations: {', '.join(made_up)}"] if made_up else [])])


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(DeepJudgmentAutoFail)
