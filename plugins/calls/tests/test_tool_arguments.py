"""The arguments of tool calls as a server sends them: what cannot be read is marked for each call by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from karenina_calls.ports.text import MOST_NESTED, is_nested_deeper
from karenina_calls.wire.openai_errors import json_from_wire
from karenina_calls.wire.openai_wire import messages_to_wire, reply_from_wire

from karenina_core.errors import PortError
from karenina_core.values.message import Message, ToolResultBlock


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def replied(*arguments: Any, finish: str = "tool_calls") -> Any:
    calls = [{"id": f"c{n}", "function": {"name": "look", "arguments": text}} for n, text in enumerate(arguments)]
    return reply_from_wire({"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": finish}]})


@pytest.mark.parametrize("lost", ["[1]", "{", '{"x": NaN}', '{"x": 1e999}', '{"x": -1e999}', nested(65), nested(900)])
def test_arguments_that_cannot_be_read_are_marked_beside_those_that_can(lost: str) -> None:
    reply = replied('{"n": 1}', lost, "{}")
    assert (reply.malformed_calls, reply.flags) == ((1,), ("invalid_tool_arguments",))
    assert [dict(call.input) for call in reply.tool_calls] == [{"n": 1}, {}, {}]


def test_arguments_within_the_bounds_are_read_as_they_are() -> None:
    reply = replied(nested(MOST_NESTED), "", '{"x": 1e308}', {"as": "data"}, None)
    assert (reply.malformed_calls, reply.flags) == ((), ())
    assert [dict(call.input) for call in reply.tool_calls] == [
        json.loads(nested(MOST_NESTED)),
        {},
        {"x": 1e308},
        {"as": "data"},
        {},
    ]


@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_a_call_that_was_cut_off_before_its_arguments_is_not_one_without_arguments(nothing: Any) -> None:
    assert replied("", nothing, finish="length").malformed_calls == (1,)
    assert replied("", nothing, finish="tool_calls").malformed_calls == ()
    assert replied("{}", finish="length").malformed_calls == ()


def test_data_that_is_nested_too_deeply_to_be_written_is_no_accident() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    assert is_nested_deeper(value)
    while isinstance(value, list):  # taken apart by hand: the interpreter itself would go as deep
        value = value[0]
    assert not is_nested_deeper({"a": [1, {"b": 2}]}, 3)
    assert is_nested_deeper({"a": [1, {"b": 2}]}, 2)


def test_infinite_numbers_are_refused_in_bodies_too() -> None:
    with pytest.raises(PortError, match="is not JSON"):
        json_from_wire(b'{"choices": [1e999]}')


def test_an_error_of_a_tool_is_marked_for_the_model_whatever_its_text() -> None:
    answered = Message("tool", (ToolResultBlock("a", "0 rows", is_error=True), ToolResultBlock("b", "0 rows")))
    assert [wire["content"] for wire in messages_to_wire([answered])] == ["[ERROR] 0 rows", "0 rows"]
