"""Does the final message alone give the template's values, or does an agent have to look for them?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen
from karenina_judging.asking import check_reply, closed_object
from karenina_judging.judgment import Judgment
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core import VerificationContext
from karenina_core.errors import RETRYABLE, FillError, ParseError, PortError

from .agents import with_own

__all__ = ["MALFORMED", "decide"]

MALFORMED = "parse_decision_malformed"
"""The caveat of results whose decision could not be read."""
LONGEST_REASONING = 2000
LOST = re.compile(
    r"""\W* (?: API\s?Connection\s?Error\W+ | API\s?Error\W+ (?:\d{3}\W+)? )
    (?: connection | connect(?:ing)? | network | unable | failed | could | cannot )\b
    (?: \W+ (?: to | not | be | was | has | been | the | API | server | peer | host | connection | connect | error
      | established | refused | reset | closed | lost | aborted | timed | out | by | with | ECONN[A-Z]+ )\b )* \W*
    | \W* API\ connection\ error \W*""",
    re.IGNORECASE | re.VERBOSE,
)
"""A message that is nothing but the error of a connection to an API."""
SYSTEM = f"""\
You are shown the final message of an agent that worked on a question, and the JSON Schema of a record. Decide whether \
this message alone gives what the record asks for. If it does not, another agent will search for it.

- reasoning: go through the fields, and say for each whether the message gives a value. Do not repeat the values.
- sufficient: true where the message gives a value for every field, or says that there is none. A value that the \
message only announces, such as one that it says is in a file, is not given.
- answer: where it is sufficient, the record, with the values as the message gives them; otherwise null.

Do not work anything out and correct nothing. Whether the values are right is not your concern.

{UNTRUSTED_NOTE}"""


@frozen(kw_only=True)
class Decision:
    """What was decided, and the filled template where no agent is needed."""

    kind: Literal["direct", "escalated", "answer_error_null"]
    reasoning: str
    judgment: Judgment | None = None
    note: str = ""
    """What the agent is shown of it."""
    given: EvaluationInput | None = None
    """What was read."""
    malformed: bool = False


async def decide(context: VerificationContext, handle: TemplateHandle) -> Decision:
    """Ask the judge once. It is shown the question, the final message and the schema.

    A reply that cannot be used and a judge that cannot be reached for now are decisions for an agent. Raises PortError
    where the judge cannot be reached at all.
    """
    rows = context.get_result_field("trace_messages", [])
    given = evaluation_input(rows, context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE), full_trace=False)
    if given.error is not None:
        return _escalated(reason := f"there is no final message: {given.error}", note=reason)
    if LOST.fullmatch(given.text) and (nothing := await _nothing(handle)) is not None:
        reasoning = "the final message is only the error of a connection to an API"
        return Decision(kind="answer_error_null", reasoning=reasoning, judgment=nothing, given=given)
    try:
        return await _asked(context, handle, given)
    except ParseError as error:
        return _escalated(f"the decision could not be read: {error}", malformed=True)
    except PortError as error:
        if error.kind not in RETRYABLE:
            raise
        return _escalated(f"the judge could not be asked: {error}")


def _escalated(reasoning: str, *, note: str = "", malformed: bool = False) -> Decision:
    return Decision(kind="escalated", reasoning=reasoning[:LONGEST_REASONING], note=note, malformed=malformed)


async def _nothing(handle: TemplateHandle) -> Judgment | None:
    """The template without any value; None where it cannot be filled in so."""
    try:
        return Judgment(filled=await handle.build({field.name: None for field in handle.fields()}))
    except FillError:
        return None


async def _asked(context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Decision:
    model, task = context.parsing, PromptTask.AGENTIC_PARSING_DECISION
    record = handle.schema()
    own = {key: value for key, value in record.items() if key != "$defs"}
    decision = closed_object(
        {
            "reasoning": {"type": "string", "description": "Field by field, whether the message gives a value"},
            "sufficient": {"type": "boolean", "description": "Whether the message alone is enough"},
            "answer": {"anyOf": [own, {"type": "null"}], "description": "The record; null where it is not enough"},
        }
    )
    schema = {**decision, "$defs": record["$defs"]} if "$defs" in record else decision
    user = (
        f"Question:\n{context.question_text}\n\nThe final message:\n{untrusted(given.text, 'final message')}\n\n"
        f"The JSON Schema of the record:\n{json.dumps(handle.schema(), ensure_ascii=False)}"
    )
    shape = {"json_schema": schema, "format_instructions": ""}
    messages = model.prompt(task, with_own(model, SYSTEM), user, shape)
    result = await model.parse(task, messages, schema, validate=_read, temperature=0.0, max_repairs=0)
    reasoning, answer = result.parsed
    if answer is None:
        return _escalated(reasoning, note=reasoning)
    try:
        filled = await handle.build(answer)
    except FillError as error:
        return _escalated(f"{reasoning} (The answer that was given does not fit the template: {error})", note=reasoning)
    judgment = Judgment(filled=filled, channel=result.channel, repairs=result.repairs)
    return Decision(kind="direct", reasoning=reasoning, judgment=judgment, given=given)


async def _read(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """The reasoning, and the record where the message is enough. Raises FillError where that is not to be seen."""
    known = {"reasoning": {"type": "string"}, "sufficient": {"type": "boolean"}}
    check_reply(data, closed_object(known))
    answer = data.get("answer")
    if not data["sufficient"]:
        return data["reasoning"][:LONGEST_REASONING], None
    if not isinstance(answer, Mapping):
        raise FillError("sufficient is true, and there is no answer")
    return data["reasoning"][:LONGEST_REASONING], answer
