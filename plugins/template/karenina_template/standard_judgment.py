"""The standard judgment: one question to the judge, repaired where its reply does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karenina_judging.asking import ask_judge
from karenina_judging.judgment import Judgment
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall, size, template_size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import Question, VerificationConfig, VerificationContext, hookimpl
from karenina_core.errors import FillError, ParseError, one_line

from .prompts import extraction_prompt


class StandardJudgment:
    """Shows the judge the question, the response and the schema, and takes one JSON object back."""

    name = "standard"

    def calls(self, question: Question, config: VerificationConfig) -> Iterable[PlannedCall]:
        sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
        return [
            PlannedCall(task=PromptTask.PARSING, sends=sends, may_send=template_size(question), unless_captured=True)
        ]

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        if (kept := await captured(context, handle)) is not None:
            return kept
        schema, expected, texts = handle.schema(), handle.ground_truth(), extraction_prompt(context, handle, given)
        result = await ask_judge(context, PromptTask.PARSING, texts, schema, validate=handle.build, expected=expected)
        return Judgment(filled=result.parsed, channel=result.channel, repairs=result.repairs)


async def captured(context: VerificationContext, handle: TemplateHandle) -> Judgment | None:
    """What this judge has extracted from this very answer before; None where it is to be asked.

    Raises ParseError where the template does not take these fields any more, and the run was to ask no judge.
    """
    answer = context.cached_answer_data
    fields = answer.fields.get(str(context.task.parsing)) if answer is not None else None
    if answer is None or fields is None:
        return None
    try:
        judgment = Judgment(filled=await handle.build(fields))
    except FillError as error:
        what = f"the captured fields no longer fit the template: {one_line(error)}"
        if answer.fields_must_fit:
            raise ParseError(
                f"{what}; capture the answers without their fields, so that the judge is called"
            ) from error
        context.warn(f"{what}; the judge was asked")
        return None
    context.note("the fields were captured before; the judge was not asked")
    return judgment


@hookimpl
def karenina_register_strategies(registry: Any) -> None:
    registry.add(StandardJudgment)
