"""VerifyTemplate: code decides whether the extracted facts are right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karenina_judging.services import SIMILARITIES
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.planned_calls import PlannedCall
from karenina_vocabulary.tasks import EMBEDDING
from karenina_vocabulary.traces import model_text

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
from karenina_core.errors import TemplateError
from karenina_core.pipeline.stage import in_mode

from .language.primitives.text import SemanticMatch

UNSTABLE = "unstable_template"


class VerifyTemplate(Stage):
    """Runs `verify`, the template's patterns and its partial credit. The verdict is fields AND patterns."""

    category = Category.TEMPLATE
    requires = (ArtifactKeys.PARSED_ANSWER, ArtifactKeys.RAW_LLM_RESPONSE)
    reads = (ArtifactKeys.ANSWER, ArtifactKeys.RECURSION_LIMIT_REACHED, ArtifactKeys.ABSTENTION_DETECTED)
    produces = (
        ArtifactKeys.FIELD_VERIFICATION_RESULT,
        ArtifactKeys.REGEX_VERIFICATION_RESULTS,
        ArtifactKeys.REGEX_EXTRACTION_RESULTS,
        ArtifactKeys.VERIFY_RESULT,
        ArtifactKeys.VERIFY_GRANULAR_RESULT,
    )
    result_fields = (
        *("template_verification_performed", "field_verification_error", "verify_granular_result"),
        *("field_results", "field_scores", "composition_strategy"),
        *("regex_validations_performed", "regex_validation_results", "regex_validation_details"),
        *("regex_overall_success", "regex_extraction_results"),
    )
    extends = ("caveats",)
    included_when = in_mode("template_only", "template_and_rubric")

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """At most one of the embedder for each field that is compared by meaning: equal texts need none."""
        source = question.template
        if source is not None and (most := source.text.count(SemanticMatch.__name__)):
            embedder = f"{config.embedding_check_embedder}:{config.embedding_check_model}"
            yield PlannedCall(task=EMBEDDING, least=0, most=most, model=embedder, unless_decided=True)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        if not allowed:
            return allowed
        if context.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, False):
            return Skip("the answering agent reached its limit")
        if context.get_artifact(ArtifactKeys.ABSTENTION_DETECTED, None):
            return Skip("the model abstained")
        if context.verdict.verdict is False and context.verdict.decided_by is not None:
            return Skip(f"{context.verdict.decided_by.stage} has decided already")
        return True if context.has_artifact(ArtifactKeys.PARSED_ANSWER) else Skip("there is no parsed answer")

    async def execute(self, context: VerificationContext) -> None:
        filled = context.get_artifact(ArtifactKeys.PARSED_ANSWER)
        trace = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        try:
            found = await _similarities(context, filled)
            said = model_text(context.get_result_field("trace_messages", ()), trace)
            fields = await filled.verify(trace, said=said, similarities=found)
            regex = await filled.regex(trace)
        except TemplateError as error:
            context.set_result_field("field_verification_error", str(error))
            raise
        context.set_result_field("template_verification_performed", True)
        context.set_result_field("field_results", fields.field_results)
        context.set_result_field("field_scores", fields.field_scores)
        context.set_result_field("composition_strategy", fields.composition_strategy)
        for remark in fields.remarks:
            context.warn(remark)
        unstable = {"verify()": fields.stable, "verify_regex() or self.regex": regex.stable}
        if names := [name for name, stable in unstable.items() if not stable]:
            context.extend_result_field("caveats", [UNSTABLE])
            what = "gave another result when it was run again on the same values"
            context.warn(f"the template is unstable: {', '.join(names)} {what}")
        context.set_result_field("regex_validations_performed", regex.performed)
        if regex.performed:
            context.set_result_field("regex_validation_results", regex.results)
            context.set_result_field("regex_validation_details", regex.details)
            context.set_result_field("regex_overall_success", regex.success)
        context.set_artifact(
            ArtifactKeys.REGEX_VERIFICATION_RESULTS, {"success": regex.success, "results": dict(regex.results)}
        )
        context.set_artifact_and_result(ArtifactKeys.REGEX_EXTRACTION_RESULTS, dict(regex.extractions))
        credit: float | None = None
        try:
            credit = await filled.granular()
        except TemplateError as error:  # partial credit is extra: without it there is still a verdict
            context.warn(f"verify_granular failed: {error}")
        context.set_artifact_and_result(ArtifactKeys.VERIFY_GRANULAR_RESULT, credit)
        failed = {
            "wrong": [name for name, passed in fields.field_results.items() if passed is False],
            "not found": [name for name, passed in fields.field_results.items() if passed is None],
            "patterns failed": [name for name, passed in regex.results.items() if not passed],
        }
        reason = "; ".join(f"{what}: {', '.join(names)}" for what, names in failed.items() if names)
        context.record(field=fields.result, verdict=fields.result and regex.success, reason=reason)


async def _similarities(context: VerificationContext, filled: Any) -> dict[str, float]:
    """Per semantic field with a text: how similar it is to the expected text. Equal texts need no embedder."""
    handle = context.get_artifact(ArtifactKeys.ANSWER, None)
    semantic = [field.name for field in handle.fields() if field.semantic] if handle else []
    if not semantic:
        return {}
    values, expected = filled.values(), handle.ground_truth()
    found: dict[str, float] = {}
    for name in semantic:
        value, wanted = values.get(name), expected.get(name)
        if isinstance(value, str) and isinstance(wanted, str):
            found[name] = 1.0
            if value.strip() != wanted.strip():
                found[name] = (await context.service(SIMILARITIES)([(wanted, value)])).scores[0]
    return found


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(VerifyTemplate)
