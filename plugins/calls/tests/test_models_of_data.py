"""Replies of judges as instances of pydantic models."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from karenina_calls.ports.structured import StructuredParser
from karenina_replay.manual.port import ManualPort
from pydantic import BaseModel

from karenina_core.errors import ParseError, PortError
from karenina_core.ports import CallContext, Message, ParserPort
from karenina_core.prompts import PromptTask
from karenina_core.testing import ScriptedLLM
from karenina_core.values.config import ModelConfig

ASKED = [Message.user("It binds BCL2. Which protein?")]


class Target(BaseModel):
    protein: str
    certainty: Literal["high", "low"] = "high"


def test_the_schema_of_the_model_is_asked_for_and_the_reply_is_one_of_it() -> None:
    llm = ScriptedLLM({"protein": "BCL2"}, channels=("json_schema",))
    port = StructuredParser(llm)
    assert isinstance(port, ParserPort)
    assert asyncio.run(port.aparse_to_pydantic(ASKED, Target)) == Target(protein="BCL2")
    (call,) = llm.calls
    assert call.output is not None
    assert call.output.schema == Target.model_json_schema()


@pytest.mark.parametrize("reply", [{}, {"protein": "BCL2", "certainty": "middling"}])
def test_a_reply_that_does_not_fit_is_reported_and_not_repaired(reply: Any) -> None:
    llm = ScriptedLLM(reply, {"protein": "BCL2"})
    with pytest.raises(ParseError, match="the reply is no Target"):
        asyncio.run(StructuredParser(llm).aparse_to_pydantic(ASKED, Target))
    assert len(llm.calls) == 1


def test_a_call_that_fails_raises_what_the_port_raises() -> None:
    failing = ScriptedLLM(lambda call: PortError("gone", kind="connection"))
    with pytest.raises(PortError, match="gone"):
        StructuredParser(failing).parse_to_pydantic(ASKED, Target)


def test_callers_that_are_not_asynchronous_share_one_event_loop_for_a_port() -> None:
    loops = []

    def reply(call: Any) -> Any:
        loops.append((asyncio.get_running_loop(), threading.current_thread()))
        return {"protein": "BCL2"}

    port = StructuredParser(ScriptedLLM(reply))

    async def within_another_loop() -> Target:
        return port.parse_to_pydantic(ASKED, Target)

    found = [port.parse_to_pydantic(ASKED, Target), asyncio.run(within_another_loop())]
    assert found == [Target(protein="BCL2")] * 2
    assert loops[0] == loops[1]
    assert loops[0][1] is not threading.current_thread()


def test_recorded_fields_are_given_in_the_same_way() -> None:
    answers = {"q": {"answer": "BCL2", "fields": {"protein": "BCL2"}}}
    port = ManualPort(ModelConfig(interface="manual", manual_traces=answers))
    call = CallContext(PromptTask.PARSING, "q", "Which?")
    assert port.parse_to_pydantic(ASKED, Target, call=call) == Target(protein="BCL2")
