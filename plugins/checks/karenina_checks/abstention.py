"""AbstentionCheck: an answer that declines is called that, and not a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define

from karenina_core import (
    ArtifactKeys,
    Category,
    Karenina,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    feature,
    hookimpl,
)
from karenina_core.errors import FillError, ParseError, PortError, Problem, one_line
from karenina_core.pipeline.asking import ask_judge, check_reply, closed_object, presented
from karenina_core.pipeline.trace import EvaluationInput, final_message, said_by_model
from karenina_core.prompts import PromptTask
from karenina_core.prompts.untrusted import UNTRUSTED_NOTE

from .judge import Finding, examined, keep
from .quotation import occurs

SYSTEM = f"""\
You decide whether a response declines to answer a question. Whether what it says is correct is not your concern.

Take these steps in order:
1. Look for a passage in which the response says that it cannot, may not or will not answer this very question. Copy \
it word for word into "disclaimer". Where there is none, use null: the response does not abstain.
2. Where there is one, look whether the response commits to an answer all the same, before that passage or after it. \
If it does, it does not abstain.
3. Where there is such a passage and no answer, the response abstains. General background, related facts or advice \
where to look it up do not make an answer.

None of these is an abstention in itself:
- an answer with hedges, caveats or a stated lack of confidence;
- an answer to a part of the question;
- a report that a tool, a search or a file failed;
- a warning or a notice that stands beside an answer.

Write the quotation and the reasoning down before you decide.

{UNTRUSTED_NOTE}"""
DISCLAIMER = "The passage that declines, word for word and without omissions; null where there is none"
SCHEMA = closed_object(
    {
        "disclaimer": {"type": ["string", "null"], "description": DISCLAIMER},
        "reasoning": {"type": "string", "description": "Whether the response commits to an answer all the same"},
        "abstention_detected": {"type": "boolean", "description": "True where the response declines to answer"},
    }
)
UNFOUNDED = (
    "abstention_detected is true, but the response does not hold the words in disclaimer as a passage of its own. Copy "
    "one passage of the response word for word, without omissions; a single word is too little unless it is the whole "
    "response. Where no passage declines to answer, reply with disclaimer null and abstention_detected false."
)
OWN_WORDS = (
    "Only what the answering model itself wrote in this trace counts as the response. What tools, searches and files "
    "returned to it is not: a refusal in their output is none of the model's, and disclaimer never quotes it."
)


class AbstentionCheck(Stage):
    """Asks the judge whether the answer declines, and gives such an item the outcome `abstained`.

    A detection counts only with a quotation of what the answering model itself wrote in the judged text: a judge that
    imagined the words, took them from the output of a tool, or gives none, is asked again, and then overruled with a
    warning. A judge that fails decides nothing.
    """

    category = Category.PRE_PARSE_CHECK
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.RECURSION_LIMIT_REACHED,)
    produces = (
        ArtifactKeys.ABSTENTION_CHECK_PERFORMED,
        ArtifactKeys.ABSTENTION_DETECTED,
        ArtifactKeys.ABSTENTION_OVERRIDE_APPLIED,
        ArtifactKeys.ABSTENTION_REASONING,
    )
    result_fields = produces
    included_when = feature("abstention")

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        task = PromptTask.ABSTENTION_DETECTION
        return app.adapters.unable_judges(config.parsing_models, task, "leave the check out (--without abstention)")

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        if not allowed:
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
            keep(self, context, Finding(performed=False, detected=None))
            return
        reader = _Reader(_own_words(context, given))
        user = presented(context.question_text, given)
        if given.used_full_trace:
            user = f"{user}\n\n{OWN_WORDS}"
        try:
            task, texts = PromptTask.ABSTENTION_DETECTION, (SYSTEM, user)
            asked = await ask_judge(context, task, texts, SCHEMA, validate=reader.read, temperature=0.0)
        except PortError as error:
            keep(self, context, _undecided(context, error, reader.unfounded))
            return
        reply: Any = asked.parsed
        detected = reply["abstention_detected"]
        keep(
            self,
            context,
            Finding(performed=True, detected=detected, override_applied=detected, reasoning=reply["reasoning"]),
        )
        if detected:
            reason = f"the answer declines: {' '.join(reply['disclaimer'].split())!r}"
            context.record(verdict=False, reason=reason, outcome="abstained")


@define
class _Reader:
    """Reads the judge's replies about an answer, and remembers a claim that no text of it bears out."""

    texts: tuple[str, ...]
    unfounded: Mapping[str, Any] | None = None

    async def read(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply itself. Raises FillError, in words for the judge, where it cannot be used."""
        check_reply(data, SCHEMA)
        if data["abstention_detected"] and not any(occurs(data["disclaimer"] or "", text) for text in self.texts):
            self.unfounded = data
            raise FillError(UNFOUNDED)
        return data


def _own_words(context: VerificationContext, given: EvaluationInput) -> tuple[str, ...]:
    """What a refusal may be quoted from: of a trace, what the answering model wrote, and its final message alone."""
    if not given.used_full_trace:
        return (given.text,)
    rows = context.get_result_field("trace_messages", ())
    final, _ = final_message(rows, given.text)
    return (said_by_model(rows, given.text), final)


def _undecided(context: VerificationContext, error: PortError, unfounded: Mapping[str, Any] | None) -> Finding:
    """What is kept where the judge gave nothing that counts; a warning says why."""
    if isinstance(error, ParseError) and unfounded is not None:
        context.warn(
            "the judge takes the answer for an abstention, but the answering model's own text does not hold the words "
            f"that it quotes ({unfounded['disclaimer']!r:.200}), or they are too few to show anything; the answer "
            "counts as one that does not decline"
        )
        return Finding(performed=True, detected=False, reasoning=unfounded["reasoning"])
    context.warn(f"the abstention check was not performed: {one_line(error)}")
    return Finding(performed=False, detected=False)


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(AbstentionCheck)
