"""DeepJudgmentRubricAutoFail: an answer of which a trait finds nothing to quote does not pass."""

from __future__ import annotations

from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import Category, Skip, Stage, VerificationContext, hookimpl
from karenina_core.errors import ParseError
from karenina_core.pipeline.stage import with_other_traits

from .auto_fail import unsupported


class DeepJudgmentRubricAutoFail(Stage):
    """Fails the verdict when a trait that was judged deeply is left without a quotation from the answer.

    Where the judge gave nothing but invented ones, `deep_judgment_on_invented` may make the item an error instead.
    """

    category = Category.RUBRIC
    calls = ()
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.ABSTENTION_DETECTED,)
    included_when = with_other_traits("agentic")
    settings = ("deep_judgment_on_invented",)
    after = (
        *("VerifyTemplate", "EmbeddingCheck", "DeepJudgmentAutoFail"),
        *("RubricEvaluation", "AgenticRubricEvaluation"),
    )

    def should_run(self, context: VerificationContext) -> bool | Skip:
        if not (allowed := super().should_run(context)):
            return allowed
        if not context.get_result_field("deep_judgment_rubric_performed", False):
            return Skip("no trait was judged deeply")
        if context.get_artifact(ArtifactKeys.ABSTENTION_DETECTED, None):
            return Skip("the model abstained")
        if not context.get_result_field("traits_without_valid_excerpts", ()):
            return Skip("no trait was found to lack an excerpt")
        return True

    def execute(self, context: VerificationContext) -> None:
        missing = context.get_result_field("traits_without_valid_excerpts")
        metadata = context.get_result_field("trait_metadata", {})
        made_up = [name for name in missing if metadata.get(name, {}).get("excerpt_validation_failed")]
        if made_up and context.config.deep_judgment_on_invented == "error":
            raise ParseError(unsupported((), made_up))
        context.record(verdict=False, reason=unsupported(missing, made_up))


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(DeepJudgmentRubricAutoFail)
