"""`ManualPort`: gives the recorded answer of a question, and the recorded fields of its judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karenina_calls.models.pydantic_replies import ParsesModels
from karenina_calls.ports.text import sanitize, with_texts
from karenina_calls.records.manual import keys_of
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import ParseError, PortError, did_you_mean, plural, shortened
from karenina_core.ports.values import CallContext, LLMResponse, OutputFormat, ParsePortResult, PortCapabilities
from karenina_core.values.config import ManualAnswer, ModelConfig
from karenina_core.values.message import Message, UsageMetadata

MODEL = "manual"
NOTHING_SPENT = UsageMetadata(cost_usd=0.0, model=MODEL)
LONGEST_TEXT = 80  # characters: a line


class ManualPort(ParsesModels):
    """An `LLMPort` and a `ParserPort`. It finds its answers by the `CallContext` alone; messages are not read.

    All replicates of a question get the same answer.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._answers: Mapping[str, ManualAnswer] = config.manual_traces or {}

    @property
    def capabilities(self) -> PortCapabilities:
        return PortCapabilities(reports_cost=True)

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """The recorded answer. Where messages were recorded with it, they are the response's `raw`, as a tuple.

        Raises PortError (`invalid_request`) where there is none for this question, or where a judgment is asked for.
        """
        call = _only(call, PromptTask.GENERATION)
        answer = self._recorded(call)
        text, flags = sanitize(answer.answer)
        return LLMResponse(
            content=text,
            usage=NOTHING_SPENT,
            finish_reason="stop",
            actual_model=MODEL,
            flags=flags,
            raw=answer.messages or None,
        )

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        """The recorded fields. Whether they fit the schema is for the caller to see.

        Raises ParseError where none were recorded with the answer, and PortError like `ainvoke`.
        """
        call = _only(call, PromptTask.PARSING)
        answer = self._recorded(call)
        if answer.fields is None:
            raise ParseError(
                f"no fields were recorded with the answer to {_named(call)}: "
                'write {"answer": "...", "fields": {...}} in the file, or name a judge model (--parsing-model)'
            )
        return ParsePortResult(data=with_texts(answer.fields, lambda text: sanitize(text)[0]), usage=NOTHING_SPENT)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _recorded(self, call: CallContext) -> ManualAnswer:
        if keys := keys_of(call.question_id, call.question_text, self._answers):
            return self._answers[keys[0]]
        raise PortError(
            f"no answer was recorded for {_named(call)}{did_you_mean(call.question_id, self._answers)}; "
            f"the file has {plural(len(self._answers), 'answer')}. A key is a question's id, its exact text, or the "
            "MD5 of its text as 32 hexadecimal digits",
            kind="invalid_request",
        )


def _only(call: CallContext | None, task: PromptTask) -> CallContext:
    """The context of a call for this task; tasks of other packages pass, karenina's other tasks are refused."""
    if call is None:
        raise PortError("recorded answers are found by the question, and this call names none", kind="invalid_request")
    if call.task != task and call.task in set(PromptTask):
        raise PortError(
            f"recorded answers cannot serve the task {call.task!r}; name a judge model (--parsing-model)",
            kind="invalid_request",
        )
    return call


def _named(call: CallContext) -> str:
    text = shortened(" ".join(call.question_text.split()), LONGEST_TEXT)
    return f"question {call.question_id!r} ({text})" if text else f"question {call.question_id!r}"
