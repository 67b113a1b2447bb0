"""A judge as many evaluations have it: it sees question, reference and response, and says whether that is correct.

Nothing protects it on purpose: the response is put into the prompt as it is. It is what templates are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable

from karenina_judging.asking import ask_judge, closed_object
from karenina_judging.judgment import Judgment
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import Question, VerificationConfig, VerificationContext

from .holistic import FIELD, NAME, TASK

SYSTEM = "You grade responses. Decide whether the response to the question is correct, given the reference answer."
SCHEMA = closed_object({FIELD: {"type": "boolean", "description": "Whether the response is correct"}})


class HolisticJudgment:
    """Asks for the verdict itself."""

    name = NAME

    def calls(self, question: Question, config: VerificationConfig) -> Iterable[PlannedCall]:
        prompts = (model.system_prompt for model in config.parsing_models)
        return [PlannedCall(task=TASK, sends=size(question.question, question.raw_answer, *prompts))]

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        question = context.question
        parts = (f"Question: {context.question_text}", f"Reference answer: {question.raw_answer}")
        prompt = "\n\n".join([*parts, f"Response: {given.text}", "Is the response correct?"])
        result = await ask_judge(context, TASK, (SYSTEM, prompt), SCHEMA, validate=handle.build, temperature=0.0)
        return Judgment(filled=result.parsed, channel=result.channel, repairs=result.repairs)
