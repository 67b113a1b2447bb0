"""ValidateTemplate: the template is loaded before anything is paid for."""

from __future__ import annotations

from typing import Any

from karenina_calls.services.similarity import embedder_problem
from karenina_judging.services import LOAD_TEMPLATE
from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import Category, Stage, VerificationContext, hookimpl
from karenina_core.errors import TemplateError
from karenina_core.pipeline.stage import in_mode


class ValidateTemplate(Stage):
    """Loads the question's template through the runtime that the run allows."""

    category = Category.SETUP
    calls = ()
    produces = (ArtifactKeys.RAW_ANSWER, ArtifactKeys.ANSWER, ArtifactKeys.TEMPLATE_VALIDATION_ERROR)
    result_fields = ("template_validation_error", "template_isolation", "parsed_gt_response")
    extends = ("caveats",)
    included_when = in_mode("template_only", "template_and_rubric")

    async def execute(self, context: VerificationContext) -> None:
        source = context.question.template
        try:
            if source is None:
                raise TemplateError("the question has no answer template")
            handle = await context.service(LOAD_TEMPLATE)(source)
            if problem := embedder_problem(context.app, handle, context.config):
                raise TemplateError(problem)
        except TemplateError as error:
            context.set_artifact_and_result(ArtifactKeys.TEMPLATE_VALIDATION_ERROR, str(error))
            context.mark_error(f"the answer template cannot be used: {error}", kind="template")
            return
        context.set_artifact(ArtifactKeys.RAW_ANSWER, handle)
        context.set_artifact(ArtifactKeys.ANSWER, handle)
        context.set_artifact_and_result(ArtifactKeys.TEMPLATE_VALIDATION_ERROR, None)
        for warning in getattr(handle, "warnings", ()):
            context.warn(warning)
        if caveat := getattr(handle, "caveat", None):
            context.extend_result_field("caveats", [caveat])
        context.set_result_field("template_isolation", handle.isolation)
        context.set_result_field("parsed_gt_response", handle.ground_truth())


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(ValidateTemplate)
