"""The judgment against a reference answer: the judge sees it, and says how the response relates to it.

It is a weaker kind than a template, where the judge extracts values without knowing the right ones and code compares:
here the judge itself decides what matters, and is drawn towards what it was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karenina_judging.asking import ask_judge, check_reply, closed_object, presented
from karenina_judging.judgment import Judgment
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.handle import FilledTemplate, TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import Question, VerificationConfig, VerificationContext
from karenina_core.errors import FillError

from ..standard_judgment import captured
from .runtime import FIELD, NAME, OPTIONS, TASK

SYSTEM = f"""\
You compare a response that another model gave to a question with the reference answer of an expert. Go by the \
reference answer, also where you would answer otherwise.

Write the reasoning down first: which facts of the reference answer the question asks for, and what the response \
finally says about each of them. Then decide:
- agrees: it says all of these facts, in whatever words. What it adds does not matter, unless it contradicts them.
- contradicts: it says something else about at least one of them, or takes back what it said.
- incomplete: what it says agrees, but at least one of these facts is missing.
- unanswered: it says nothing about them, or declines to answer.
Length, style and confidence do not count.

{UNTRUSTED_NOTE}"""
SCHEMA = closed_object(
    {
        "reasoning": {"type": "string", "description": "Which facts count, and what the response says about each"},
        FIELD: {"type": "string", "enum": list(OPTIONS), "description": "How the response relates to them"},
    }
)


class ReferenceJudgment:
    """Shows the judge the question, the reference answer, the notes on it, and the response."""

    name = NAME

    def calls(self, question: Question, config: VerificationConfig) -> Iterable[PlannedCall]:
        prompts = (model.system_prompt for model in config.parsing_models)
        sends = size(question.question, question.raw_answer, question.answer_notes, *prompts)
        return [PlannedCall(task=TASK, sends=sends, unless_captured=True)]

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        if (kept := await captured(context, handle)) is not None:
            return kept
        question = context.question
        parts = [presented(context.question_text, given), f"Reference answer:\n{_shown(question.raw_answer)}"]
        if question.answer_notes:
            parts.append(f"Notes on the reference answer:\n{_shown(question.answer_notes)}")
        texts = (SYSTEM, "\n\n".join([*parts, "How does the response relate to the reference answer?"]))
        reasoning = ""

        async def read(data: Mapping[str, Any]) -> FilledTemplate:
            nonlocal reasoning
            check_reply(data, SCHEMA)
            if data[FIELD] not in OPTIONS:
                raise FillError(f"{FIELD} must be one of {', '.join(OPTIONS)}, not {data[FIELD]!r:.80}")
            reasoning = " ".join(data["reasoning"].split())
            return await handle.build({FIELD: data[FIELD]})

        result = await ask_judge(context, TASK, texts, SCHEMA, validate=read, temperature=0.0)
        context.note(f"judged against the reference answer: {reasoning:.500}")
        filled: Any = result.parsed
        return Judgment(filled=filled, channel=result.channel, repairs=result.repairs)


def _shown(text: str) -> str:
    return untrusted(text, "reference")
