"""AbstentionCheck: an answer that declines is called that, and not a wrong one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from attrs import define
from karenina_judging.asking import ask_judge, check_reply, closed_object, presented, unable_judges
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.planned_calls import PlannedCall, size, template_size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput, final_message, model_text

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    feature,
    hookimpl,
)
from karenina_core.errors import ContradictionError, FillError, ParseError, PortError, Problem, one_line, shortened

from .judge import examined, keep, occurs, stated

TASK = PromptTask.ABSTENTION_DETECTION
NO_ABSTENTION = """\
None of these is an abstention in itself:
- an answer with hedges, caveats or a stated lack of confidence;
- an answer to a part of the question;
- a report that a tool, a search or a file failed;
- a warning or a notice that stands beside an answer."""
SYSTEM = f"""\
You decide whether a response declines to answer a question. Whether what it says is correct is not your concern.

- "answer": a passage in which the response commits to an answer, or to a part of one. General background, related \
facts or advice where to look it up do not make an answer.
- "disclaimer": a passage in which the response says that it cannot, may not or will not answer this very question. A \
passage that answers is no disclaimer.
- The response abstains exactly where there is such a disclaimer and no answer.

{NO_ABSTENTION}

{UNTRUSTED_NOTE}"""
WITHOUT_QUOTATION = f"""\
You decide whether a response declines to answer a question. Whether what it says is correct is not your concern.

The response abstains where it says, in whatever words, that it cannot, may not or will not answer this very question, \
or evades it, and commits to no answer. General background, related facts or advice where to look it up do not make \
an answer.

{NO_ABSTENTION}

Write the reasoning down before you decide.

{UNTRUSTED_NOTE}"""
COMMITMENT = "The passage that answers the question or a part of it, word for word; null where there is none"
DISCLAIMER = "The passage that declines, word for word and without omissions; null where there is none"
DECISION = {
    "reasoning": {"type": "string", "description": "Whether the response commits to an answer"},
    "abstention_detected": {"type": "boolean", "description": "True where the response declines to answer"},
}
SCHEMA = closed_object(
    {
        "answer": {"type": ["string", "null"], "description": COMMITMENT},
        "disclaimer": {"type": ["string", "null"], "description": DISCLAIMER},
        **DECISION,
    }
)
DECISION_ALONE = closed_object(DECISION)
UNFOUNDED = (
    "abstention_detected is true, but the response does not hold the words in disclaimer as a passage of its own. Copy "
    "one passage of the response word for word, without omissions; a single word is too little unless it is the whole "
    "response. Where no passage declines to answer, reply with disclaimer null and abstention_detected false."
)
CONTRADICTION = (
    "abstention_detected is true, but you quote a passage in answer that answers the question: a response that answers "
    "does not abstain. Look again. If that passage is an answer, reply with abstention_detected false; if it is none, "
    "with answer null."
)
BESIDE_VALUES = (
    "abstention_detected is true, but asked for the values that the question is about, you took these from the "
    "response: {values}. A response that gives them as its answer does not decline, and the passage that gives them is "
    "no disclaimer. Look again: reply with disclaimer null and abstention_detected false where they are its answer."
)
MOST_CHECKS = 2
"""Calls that examine a refusal: one for the values of the answer, and one for the decision without a quotation."""
MOST_SHOWN = 500
"""Characters of values in a message."""
UNQUOTED_ABSTENTION = "unquoted_abstention"
"""The caveat of a result whose judge takes the answer for a refusal that it cannot quote."""
CONTRADICTORY_ABSTENTION = "contradictory_abstention"
"""The caveat of a result whose judge finds a refusal and an answer in the same response."""
OWN_WORDS = (
    "Only what the answering model itself wrote in this trace counts as the response. What tools, searches and files "
    "returned to it is not: a refusal in their output is none of the model's, and disclaimer never quotes it."
)


class AbstentionCheck(Stage):
    """Asks the judge whether the answer declines, and gives such an item the outcome `abstained`.

    A detection counts only with a quotation of what the answering model itself wrote in the judged text. A judge that
    gives none, imagined the words or took them from the output of a tool is shown the mistake, and at last asked
    without a quotation: a claim that it still makes decides nothing. So does one beside a passage that the judge itself
    calls an answer, or beside values of the template that it takes from the answer, made twice. `abstention_detected`
    is None then, and a warning and a caveat say why. A judge that fails decides nothing either.
    """

    category = Category.PRE_PARSE_CHECK
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.RECURSION_LIMIT_REACHED, ArtifactKeys.ANSWER)
    produces = (
        ArtifactKeys.ABSTENTION_CHECK_PERFORMED,
        ArtifactKeys.ABSTENTION_DETECTED,
        ArtifactKeys.ABSTENTION_OVERRIDE_APPLIED,
        ArtifactKeys.ABSTENTION_REASONING,
    )
    result_fields = produces
    extends = ("caveats",)
    included_when = feature("abstention")

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        return unable_judges(app, config.parsing_models, TASK, "leave the check out (--without abstention)")

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """One, and more where the judge finds a refusal: the values of the answer, and the decision without a quote."""
        sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
        return [
            PlannedCall(task=TASK, most=1 + MOST_CHECKS, sends=sends, may_send=template_size(question), decides=True)
        ]

    def should_run(self, context: VerificationContext) -> bool | Skip:
        if not (allowed := super().should_run(context)):
            return allowed
        if context.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, False):
            return Skip("the answering agent reached its limit")
        if not context.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE):
            return Skip("there is no answer")
        return True if context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).strip() else Skip("the answer is empty")

    async def execute(self, context: VerificationContext) -> None:
        given = examined(context)
        if given.error is not None:
            context.warn(f"the abstention check was not performed: {given.error}")
            keep(self, context, performed=False, detected=None)
            return
        user = presented(context.question_text, given)
        if given.used_full_trace:
            user = f"{user}\n\n{OWN_WORDS}"
        texts = _own_words(context, given)
        reader = _Reader(texts, partial(stated, context, user, texts[0]))
        try:
            asked = await ask_judge(context, TASK, (SYSTEM, user), SCHEMA, validate=reader.read, temperature=0.0)
            reply: Any = asked.parsed
        except PortError as error:
            if not isinstance(error, ParseError) or reader.unfounded is None:
                context.warn(f"the abstention check was not performed: {one_line(error)}")
                keep(self, context, performed=False, detected=False)
                return
            reply = await self._unquoted(context, user, reader.unfounded)
            doubt = UNQUOTED_ABSTENTION
        else:
            doubt = CONTRADICTORY_ABSTENTION if reader.answer_in(reply) else ""
        detected = _decided(context, reply, doubt, reader)
        reasoning = reply["reasoning"]
        keep(self, context, performed=True, detected=detected, override_applied=bool(detected), reasoning=reasoning)
        if detected:
            reason = f"the answer declines: {' '.join(reply['disclaimer'].split())!r}"
            context.record(verdict=False, reason=reason, outcome="abstained")

    async def _unquoted(self, context: VerificationContext, user: str, claim: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the judge says where no quotation is asked for; the claim where it keeps to it, or gives no reply."""
        try:
            texts = (WITHOUT_QUOTATION, user)
            asked = await ask_judge(context, TASK, texts, DECISION_ALONE, validate=_read_decision, temperature=0.0)
        except PortError as error:
            context.warn(f"the judge was asked again whether the answer declines, and gave no reply: {one_line(error)}")
            return claim
        reply: Any = asked.parsed
        return {**claim, "reasoning": reply["reasoning"]} if reply["abstention_detected"] else reply


def _decided(context: VerificationContext, reply: Mapping[str, Any], doubt: str, reader: _Reader) -> bool | None:
    """What the judge says; None, with a warning and a caveat, for a claim that cannot be believed."""
    if not reply["abstention_detected"] or not doubt:
        return bool(reply["abstention_detected"])
    why = (
        f"and {reader.answer_in(reply)}"
        if doubt == CONTRADICTORY_ABSTENTION
        else "but the answering model's own text does not hold the words that it quotes "
        f"({reply['disclaimer']!r:.200}), or they are too few to show anything"
    )
    context.warn(f"the judge takes the answer for an abstention, {why}; whether it declines is not decided")
    context.extend_result_field("caveats", [doubt])
    return None


@define
class _Reader:
    """Reads the judge's replies about an answer, and remembers claims that cannot be believed."""

    texts: tuple[str, ...]
    look: Callable[[], Awaitable[Mapping[str, Any]]]
    """Finds the values by which the answer answers. It asks the judge, so it is called for a claim alone, and once."""
    values: Mapping[str, Any] | None = None
    unfounded: Mapping[str, Any] | None = None
    """The last claim that no text bears out."""
    contradicted: bool = False
    """Whether the judge was shown a contradiction; it is shown one once."""

    def finds_answer(self, data: Mapping[str, Any]) -> bool:
        """Whether the passage that the judge calls the answer, of whatever length, occurs in the text."""
        return any(occurs(data["answer"] or "", text, least=0) for text in self.texts)

    def answer_in(self, data: Mapping[str, Any]) -> str:
        """What shows that the response answers, in words; empty where nothing does."""
        if self.finds_answer(data):
            return f"quotes a passage that answers ({data['answer']!r:.200})"
        return f"takes values from it that answer the question ({self._shown()})" if self.values else ""

    def _shown(self) -> str:
        return shortened(json.dumps(self.values, ensure_ascii=False), MOST_SHOWN)

    async def read(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply itself. Raises FillError, in words for the judge, where it cannot be used."""
        check_reply(data, SCHEMA)
        if not data["abstention_detected"]:
            return data
        answers = self.finds_answer(data)
        if not answers and not any(occurs(data["disclaimer"] or "", text) for text in self.texts):
            self.unfounded = data
            raise FillError(UNFOUNDED)
        if self.values is None and not answers:
            self.values = await self.look()
        if (answers or self.values) and not self.contradicted:
            self.contradicted = True
            raise ContradictionError(CONTRADICTION if answers else BESIDE_VALUES.format(values=self._shown()))
        return data


async def _read_decision(data: Mapping[str, Any]) -> Mapping[str, Any]:
    check_reply(data, DECISION_ALONE)
    return data


def _own_words(context: VerificationContext, given: EvaluationInput) -> tuple[str, ...]:
    """What a refusal may be quoted from: of a trace, what the answering model wrote, and its final message alone."""
    if not given.used_full_trace:
        return (given.text,)
    rows = context.get_result_field("trace_messages", ())
    final, _ = final_message(rows, given.text)
    return (model_text(rows, given.text), final)


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(AbstentionCheck)
