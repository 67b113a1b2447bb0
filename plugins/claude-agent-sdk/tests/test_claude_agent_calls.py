"""Single calls: a judge, and whoever is asked once."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from karenina_calls.ports.structured import StructuredParser, parse_with_repair

from karenina_core.errors import ParseError, PortError
from karenina_core.ports.values import LLMResponse, OutputFormat
from karenina_core.values.message import Message, UsageMetadata

ASK = (Message.system("Be exact."), Message.user("What is the target of venetoclax?"))
SCHEMA = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}


def ask(port: Any, **options: Any) -> LLMResponse:
    response: LLMResponse = asyncio.run(port.ainvoke(ASK, **options))
    return response


def test_a_text_is_asked_for_in_one_turn_without_tools(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(
        says.init(), says.reply(says.thinking("Hm."), says.text("BCL2.")), says.result("BCL2.", stop_reason="end_turn")
    )
    reply = ask(asked_model(program))
    assert (reply.content, reply.thinking, reply.finish_reason) == ("BCL2.", "Hm.", "end_turn")
    assert reply.usage == UsageMetadata(15, 40, 55, 0.25, 3, 2, "claude-x-1")
    assert reply.actual_model == "claude-x-1"
    assert (program.option("--tools"), program.option("--max-turns")) == ("", "1")
    assert program.option("--allowedTools") is None
    assert program.option("--permission-mode") == "dontAsk"
    assert program.option("--setting-sources") == ""
    assert program.environment["CLAUDE_CODE_MAX_RETRIES"] == "0", "karenina tries again itself"


def test_data_of_a_schema_comes_from_the_program(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(structured=[says.init(), says.result("", structured_output={"target": "BCL2\ud800"})])
    reply = ask(asked_model(program), output=OutputFormat("json_schema", SCHEMA))
    assert json.loads(reply.structured or "") == {"target": "BCL2\ufffd"}
    assert json.loads(program.option("--json-schema") or "") == SCHEMA
    assert program.option("--allowedTools") == "StructuredOutput"
    assert int(program.option("--max-turns") or 0) > 1, "the program hands the data over in a turn of its own"


def parsed(port: Any, repairs: int = 0) -> Any:
    parser = StructuredParser(port)
    return asyncio.run(parse_with_repair(parser, ASK, SCHEMA, max_repairs=repairs))


def test_a_judge_reads_data_through_kareninas_parser(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(structured=[says.result("", structured_output={"target": "BCL2"})])
    result = parsed(asked_model(program))
    assert (result.data, result.channel) == ({"target": "BCL2"}, "json_schema")


def test_data_that_comes_as_text_all_the_same_is_read(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(structured=[says.result('{"target": "BCL2"}')])
    assert parsed(asked_model(program)).data == {"target": "BCL2"}


def test_a_program_that_takes_no_schema_is_asked_for_text(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(
        says.result('{"target": "BCL2"}'), structured=[("stderr", "error: unknown option '--json-schema'"), ("exit", 1)]
    )
    result = parsed(asked_model(program))
    assert (result.data, result.channel) == ({"target": "BCL2"}, "text")
    assert len(program.noted("started")) == 2


def test_a_judge_is_shown_its_mistake(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(structured=[says.result("I think it is BCL2.")])
    with pytest.raises(ParseError):
        parsed(asked_model(program), repairs=1)
    assert len(program.asked) == 2
    assert "[assistant]\nI think it is BCL2." in program.asked[1]
    assert "cannot be used" in program.asked[1]


def test_data_that_the_program_gives_up_on_is_a_bad_response(scripted: Any, says: Any, asked_model: Any) -> None:
    given_up = says.result(None, subtype="error_max_structured_output_retries", is_error=True)
    with pytest.raises(PortError) as caught:
        ask(asked_model(scripted(structured=[given_up])), output=OutputFormat("json_schema", SCHEMA))
    assert caught.value.kind == "bad_response"


def test_an_empty_reply_is_a_bad_response(scripted: Any, says: Any, asked_model: Any) -> None:
    with pytest.raises(PortError, match="empty reply") as caught:
        ask(asked_model(scripted(says.result(""))))
    assert caught.value.kind == "bad_response"


def test_a_silent_program_is_given_up_after_the_time_for_a_request(
    scripted: Any, asked_model: Any, process_has_ended: Any
) -> None:
    program = scripted(("ignore", "SIGTERM"), ("sleep", 30))
    started = time.monotonic()
    with pytest.raises(PortError, match="within 1 s; request_timeout") as caught:
        ask(asked_model(program, request_timeout=1))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 15
    assert process_has_ended(program.noted("pid")[0])


def test_a_program_that_breaks_down_may_be_started_again(scripted: Any, asked_model: Any) -> None:
    with pytest.raises(PortError) as caught:
        ask(asked_model(scripted(("exit", 1))))
    assert caught.value.kind == "server"


def test_replies_without_numbers_have_an_unknown_usage(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(says.reply(says.text("x"), usage=None), says.result("x", usage=None, total_cost_usd=None))
    reply = ask(asked_model(program))
    assert reply.usage_unavailable
    assert reply.usage.cost_usd is None


def test_a_cost_of_nothing_is_unknown(scripted: Any, says: Any, asked_model: Any) -> None:
    assert ask(asked_model(scripted(says.result("x", total_cost_usd=0)))).usage.cost_usd is None


@pytest.mark.parametrize(("message", "kind"), [("API Error: Connection error.", "connection"), ("API Error", "server")])
def test_a_request_that_failed_may_be_tried_again(
    scripted: Any, says: Any, asked_model: Any, message: str, kind: str
) -> None:
    program = scripted(says.refusal("unknown", message), says.result(message, is_error=True))
    with pytest.raises(PortError) as caught:
        ask(asked_model(program))
    assert caught.value.kind == kind
