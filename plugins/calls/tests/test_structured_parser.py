"""Data from a judge: the strongest channel that works is kept, and mistakes are shown and corrected, so often."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.structured import StructuredParser, json_objects, parse_with_repair
from karenina_calls.wire.openai_errors import error_from_wire

from karenina_core.errors import ContradictionError, FillError, ParseError, PortError, TemplateError
from karenina_core.ports.values import LLMResponse, ParsePortResult
from karenina_core.testing import ScriptedCall, ScriptedLLM
from karenina_core.values.message import Message, UsageMetadata

SCHEMA = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
ASKED = [Message.system("You extract."), Message.user("Which target?")]
ALL = ("json_schema", "tool_call", "json_object", "text")
GOOD = {"target": "BCL2"}


def refused(status: int = 400) -> PortError:
    return PortError("not supported", kind="invalid_request", status=status)


def parse(parser: StructuredParser, messages: Any = ASKED) -> ParsePortResult:
    return asyncio.run(parser.aparse(messages, SCHEMA))


def channels(llm: ScriptedLLM) -> list[str]:
    return [call.output.channel for call in llm.calls if call.output]


# Channels


@given(st.integers(0, 3), st.sampled_from([400, 415, 422, 501]))
@settings(deadline=None)
def test_a_refused_channel_is_given_up_for_the_next_and_not_asked_for_again(refusals: int, status: int) -> None:
    def script(call: ScriptedCall) -> Any:
        assert call.output is not None
        return refused(status) if ALL.index(call.output.channel) < refusals else GOOD

    llm = ScriptedLLM(script, channels=ALL)
    parser = StructuredParser(llm)
    for _ in range(2):
        result = parse(parser)
        assert (result.data, result.channel) == (GOOD, ALL[refusals])
    assert channels(llm) == [*ALL[: refusals + 1], ALL[refusals]]


def test_only_what_the_model_claims_is_tried() -> None:
    llm = ScriptedLLM(refused(), GOOD, channels=["json_object", "text"])
    assert parse(StructuredParser(llm)).channel == "text"
    assert channels(llm) == ["json_object", "text"]


def test_when_every_channel_is_refused_the_refusal_of_the_weakest_is_reported() -> None:
    """Whichever others are known to be refused already, it is asked: so it does not depend on what was asked before."""
    first, last = refused(), refused(422)
    llm = ScriptedLLM(first, last, channels=["json_object", "text"])
    with pytest.raises(PortError) as caught:
        parse(StructuredParser(llm))
    assert caught.value is last


def test_nothing_is_concluded_from_one_schema_for_another() -> None:
    def script(call: ScriptedCall) -> Any:
        assert call.output is not None
        odd = "odd" in call.output.schema["properties"]
        return refused() if odd and call.output.channel == "json_schema" else GOOD

    llm = ScriptedLLM(script, channels=ALL)
    parser = StructuredParser(llm)
    odd = {"type": "object", "properties": {"odd": {"type": "string"}}}
    for schema, channel in ((odd, "tool_call"), (SCHEMA, "json_schema"), (odd, "tool_call")):
        assert asyncio.run(parser.aparse(ASKED, schema)).channel == channel
    assert channels(llm) == ["json_schema", "tool_call", "json_schema", "tool_call"]
    assert [call.output.refused for call in llm.calls if call.output] == [(), ("json_schema",), (), ("json_schema",)]


REFUSING = st.sets(st.tuples(st.sampled_from(ALL), st.integers(0, 3)))
ORDERS = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@given(REFUSING, ORDERS, ORDERS, st.booleans())
@settings(deadline=None)
def test_what_is_refused_decides_alone_on_which_channel_a_call_ends(
    refusing: set[tuple[str, int]], one: list[int], other: list[int], at_once: bool
) -> None:
    """Whatever was asked before it, or is asked at the same time."""

    def script(call: ScriptedCall) -> Any:
        assert call.output is not None
        number = call.output.schema["maxProperties"]
        return refused() if (call.output.channel, number) in refusing else GOOD

    async def ended(parser: StructuredParser, number: int) -> str | None:
        try:
            return (await parser.aparse(ASKED, {**SCHEMA, "maxProperties": number})).channel
        except PortError:
            return None

    async def in_order(order: list[int]) -> list[str | None]:
        parser = StructuredParser(ScriptedLLM(script, channels=ALL))
        if at_once:
            return await asyncio.gather(*(ended(parser, number) for number in order))
        return [await ended(parser, number) for number in order]

    for order in (one, other):
        wanted = [next((c for c in ALL if (c, number) not in refusing), None) for number in order]
        assert asyncio.run(in_order(order)) == wanted


@pytest.mark.parametrize(
    "error",
    [
        PortError("slow down", kind="rate_limited", status=429),
        PortError("who are you", kind="auth", status=401),
        PortError("gone", kind="invalid_request", status=404),
        PortError("no status", kind="invalid_request"),
    ],
)
def test_other_failures_change_no_channel(error: PortError) -> None:
    llm = ScriptedLLM(error, GOOD, channels=ALL)
    parser = StructuredParser(llm)
    with pytest.raises(PortError) as caught:
        parse(parser)
    assert caught.value is error
    assert parse(parser).channel == "json_schema"


OVERFLOWS = {
    "llama.cpp": {"code": 400, "message": "the request exceeds", "type": "exceed_context_size_error", "n_ctx": 512},
    "OpenAI": {"message": "too many tokens", "type": "invalid_request_error", "code": "context_length_exceeded"},
    "vLLM": {"message": "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens"},
    "Ollama": {"message": "the input length exceeds the context length"},
    "Anthropic": {"message": "prompt is too long: 213462 tokens > 200000 maximum"},
    "litellm": {"message": "litellm.ContextWindowExceededError: litellm.BadRequestError: too long"},
    "Gemini": {"message": "The input token count (40000) exceeds the maximum number of tokens allowed (32768)."},
    "Bedrock": {"message": "Input is too long for requested model."},
    "TGI": {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens"},
    "llama.cpp, of old": {"message": "the request exceeds the available context size. try increasing it"},
}


@pytest.mark.parametrize("correction", OVERFLOWS.values(), ids=OVERFLOWS)
def test_a_request_that_is_longer_than_the_context_is_asked_once_and_changes_no_channel(correction: Any) -> None:
    llm = ScriptedLLM(error_from_wire(400, {"error": correction}), GOOD, channels=ALL)
    parser = StructuredParser(llm)
    with pytest.raises(PortError) as caught:
        parse(parser)
    assert (caught.value.kind, channels(llm)) == ("invalid_request", ["json_schema"])
    assert parse(parser).channel == "json_schema"


@pytest.mark.parametrize("correction", ["response_format is not supported", "the context of this schema is unknown"])
def test_other_refusals_are_no_overflow(correction: str) -> None:
    llm = ScriptedLLM(error_from_wire(400, {"error": {"message": correction}}), GOOD, channels=ALL)
    assert parse(StructuredParser(llm)).channel == "tool_call"


def test_a_correction_that_is_too_long_says_what_was_to_be_corrected() -> None:
    overflow = error_from_wire(400, {"error": OVERFLOWS["OpenAI"]})
    llm = ScriptedLLM("It is " + "very " * 100, overflow, channels=ALL)
    with pytest.raises(PortError, match=r"too many tokens; .*the reply holds no JSON object") as caught:
        asyncio.run(parse_with_repair(StructuredParser(llm), ASKED, SCHEMA))
    assert (caught.value.kind, caught.value.repairs) == ("invalid_request", 1)


def test_a_server_that_ignores_the_tool_has_replied_in_words() -> None:
    llm = ScriptedLLM(LLMResponse(content=json.dumps(GOOD)), channels=["tool_call", "text"])
    result = parse(StructuredParser(llm))
    assert (result.data, result.channel) == (GOOD, "text")


def test_a_model_without_channels_is_asked_in_words() -> None:
    assert parse(StructuredParser(ScriptedLLM(GOOD, channels=[]))).channel == "text"


@pytest.mark.parametrize("messages", [ASKED, ASKED[1:], []])
def test_a_prompt_says_what_the_reply_has_to_be_before_the_answer_where_it_is_enforced_and_else_behind_it(
    messages: list[Message],
) -> None:
    for channel in ALL:
        llm = ScriptedLLM(GOOD, channels=[channel])
        parse(StructuredParser(llm), messages)
        call = llm.calls[0]
        at = 0 if channel in ("json_schema", "tool_call") else -1
        wanted = "calling the tool." if channel == "tool_call" else ":\n- target (string)"
        assert call.messages[at].text.endswith(wanted)
        assert call.text.count(wanted) == 1
        assert "properties" not in call.text
        assert all(message.text in call.text for message in messages)
        assert [m.role for m in call.messages] == ([m.role for m in messages] or ["user"])


@pytest.mark.parametrize("channel", ["json_schema", "json_object", "text"])
def test_a_schema_that_no_list_can_say_is_shown_itself(channel: Any) -> None:
    free = {**SCHEMA, "additionalProperties": True}
    more = {"type": "object", "properties": {"by_name": free}}
    llm = ScriptedLLM({"by_name": GOOD}, channels=[channel])
    asyncio.run(StructuredParser(llm).aparse(ASKED, more))
    assert llm.calls[0].messages[0 if channel == "json_schema" else -1].text.endswith(f":\n{json.dumps(more)}")


def test_in_a_correction_the_prompt_stays_as_it_was() -> None:
    llm = ScriptedLLM("no idea", GOOD, channels=["text"])
    asyncio.run(parse_with_repair(StructuredParser(llm), ASKED, SCHEMA))
    first, second = llm.calls
    assert second.messages[: len(ASKED)] == first.messages
    assert [message.role for message in second.messages[len(ASKED) :]] == ["assistant", "user"]


def test_a_structured_reply_is_read_from_its_own_place() -> None:
    llm = ScriptedLLM(LLMResponse(content="Here you are.", structured=json.dumps(GOOD)))
    result = parse(StructuredParser(llm))
    assert (result.data, result.raw) == (GOOD, json.dumps(GOOD))


def test_a_useless_reply_says_what_it_cost() -> None:
    llm = ScriptedLLM("no idea", channels=["json_object"], usage=UsageMetadata(7, 3, 10))
    with pytest.raises(ParseError) as caught:
        parse(StructuredParser(llm))
    assert (caught.value.usage, caught.value.channel) == (UsageMetadata(7, 3, 10), "json_object")
    assert caught.value.raw_response == "no idea"


def test_closing_the_parser_closes_the_model() -> None:
    llm = ScriptedLLM()
    asyncio.run(StructuredParser(llm).aclose())
    assert llm.closed == 1


# Repair


async def named(data: Mapping[str, Any]) -> str:
    if "target" not in data:
        raise FillError("only unknown keys; expected 'target'")
    if not isinstance(data["target"], str):
        raise FillError(f"target: expected a text, got {data['target']!r}")
    return str(data["target"])


def repaired(llm: ScriptedLLM, max_repairs: int = 2) -> ParsePortResult:
    return asyncio.run(parse_with_repair(StructuredParser(llm), ASKED, SCHEMA, validate=named, max_repairs=max_repairs))


def test_a_good_reply_needs_no_repair() -> None:
    result = repaired(ScriptedLLM(GOOD))
    assert (result.parsed, result.repairs, result.usage) == ("BCL2", 0, UsageMetadata(10, 5, 15))


BAD: list[tuple[Any, str]] = [
    ("BCL2", "holds no JSON object"),
    ('{"target": "A"} or {"target": "B"}', "several different JSON objects"),
    ({"protein": "BCL2"}, "only unknown keys; expected 'target'"),
    ({"target": 3}, "target: expected a text, got 3"),
]


@pytest.mark.parametrize(("reply", "problem"), BAD)
def test_the_judge_is_shown_its_reply_and_what_is_wrong_with_it(reply: Any, problem: str) -> None:
    llm = ScriptedLLM(reply, GOOD)
    result = repaired(llm)
    assert (result.parsed, result.repairs) == ("BCL2", 1)
    shown = llm.calls[1].messages
    assert [message.role for message in shown] == ["system", "user", "assistant", "user"]
    assert shown[2].text == (reply if isinstance(reply, str) else json.dumps(reply))
    assert problem in shown[3].text
    assert "Do not invent values" in shown[3].text


ALWAYS_ANOTHER = st.lists(st.sampled_from([reply for reply, _ in BAD]), max_size=5).filter(
    lambda replies: all(one != other for one, other in pairwise(replies))
)


@given(ALWAYS_ANOTHER, st.integers(0, 4))
@settings(deadline=None)
def test_repairs_are_bounded_and_every_reply_is_paid_for(replies: list[Any], max_repairs: int) -> None:
    llm = ScriptedLLM(*replies, GOOD, usage=UsageMetadata(10, 5, 15, 0.01))
    asked = min(len(replies), max_repairs) + 1
    if len(replies) > max_repairs:
        with pytest.raises(ParseError) as caught:
            repaired(llm, max_repairs)
        repairs, usage = caught.value.repairs, caught.value.usage
    else:
        result = repaired(llm, max_repairs)
        repairs, usage = result.repairs, result.usage
    assert repairs == asked - 1
    assert len(llm.calls) == asked
    assert isinstance(usage, UsageMetadata)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10 * asked, 5 * asked, 15 * asked)
    assert usage.cost_usd == pytest.approx(0.01 * asked)


@pytest.mark.parametrize("max_repairs", [0, 1, 2])
@pytest.mark.parametrize("useless", [True, False])
def test_the_question_about_a_contradiction_uses_no_repair_and_is_one(max_repairs: int, useless: bool) -> None:
    async def contradictory(data: Mapping[str, Any]) -> None:
        raise ContradictionError(f"{data['target']} cannot be")

    llm = ScriptedLLM(lambda call: "Hm." if useless and len(llm.calls) > 1 else {"target": f"A{len(llm.calls)}"})
    asking = parse_with_repair(StructuredParser(llm), ASKED, SCHEMA, validate=contradictory, max_repairs=max_repairs)
    with pytest.raises(ParseError) as caught:
        asyncio.run(asking)
    # The same useless reply twice ends it sooner.
    assert len(llm.calls) == (min(max_repairs + 2, 3) if useless else max_repairs + 2)
    assert caught.value.repairs == len(llm.calls) - 1
    assert "A1 cannot be" in llm.calls[1].text


def test_only_the_last_mistake_is_shown() -> None:
    llm = ScriptedLLM("first", "second", GOOD)
    repaired(llm)
    assert "first" not in llm.calls[2].text
    assert "second" in llm.calls[2].text


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_an_empty_reply_is_repaired_like_any_other(empty: str) -> None:
    llm = ScriptedLLM(empty, GOOD)
    result = repaired(llm)
    assert (result.parsed, result.repairs) == ("BCL2", 1)
    assert [message.role for message in llm.calls[1].messages] == ["system", "user", "assistant", "user"]
    assert all(message.text.strip() for message in llm.calls[1].messages)


@pytest.mark.parametrize("reply", ["", *(reply for reply, _ in BAD)])
def test_a_judge_that_gives_the_same_reply_again_is_not_asked_once_more(reply: Any) -> None:
    llm = ScriptedLLM(lambda call: reply, usage=UsageMetadata(10, 5, 15))
    with pytest.raises(ParseError, match="the judge gave the same reply again") as caught:
        repaired(llm, 7)
    assert (len(llm.calls), caught.value.repairs, caught.value.usage) == (2, 1, UsageMetadata(20, 10, 30))


def test_no_request_is_sent_twice_where_long_replies_differ_beyond_what_is_shown() -> None:
    texts = iter(range(10))
    llm = ScriptedLLM(lambda call: LLMResponse(content="x" * 5000 + str(next(texts)), is_partial=True))
    with pytest.raises(ParseError, match="same reply again"):
        repaired(llm, 7)
    sent = [call.messages for call in llm.calls]
    assert len(sent) == len(set(sent)) == 2


@pytest.mark.parametrize(
    ("usage", "finish", "cause"),
    [
        (UsageMetadata(10, 512, 522), "length", r"cut off after 512 tokens \(the server's own limit\)"),
        (UsageMetadata(), "length", r"cut off \(the server's own limit\)"),
        (UsageMetadata(10, 9, 19), "content_filter", r"cut off after 9 tokens \(content_filter\)"),
    ],
)
def test_a_reply_that_was_cut_off_is_called_that_and_only_its_head_is_shown(
    usage: UsageMetadata, finish: str, cause: str
) -> None:
    text = '{"target": "warfarin' + ", protein Z" * 200
    cut = LLMResponse(content=text, usage=usage, finish_reason=finish, is_partial=True)
    with pytest.raises(ParseError, match=cause) as caught:
        parse(StructuredParser(ScriptedLLM(cut)))
    assert (caught.value.raw_response, caught.value.cut_off) == (text, True)
    llm = ScriptedLLM(cut, GOOD)
    assert repaired(llm).parsed == "BCL2"
    shown, correction = llm.calls[1].messages[2:]
    assert shown.text.startswith(text[:400])
    assert len(shown.text) < 600
    assert "reply with a shorter one" in correction.text


def test_a_whole_object_in_a_reply_that_was_cut_off_counts() -> None:
    reply = LLMResponse(content=f"{json.dumps(GOOD)}\nThis is because", is_partial=True)
    assert repaired(ScriptedLLM(reply)).parsed == "BCL2"


def test_the_correction_names_the_expected_keys() -> None:
    llm = ScriptedLLM("no JSON", GOOD)
    repaired(llm)
    assert 'Its keys are: "target".' in llm.calls[1].messages[-1].text
    many = {"type": "object", "properties": {f"field_{number}": {} for number in range(70)}}
    llm = ScriptedLLM("no JSON", {"field_1": 1})
    asyncio.run(parse_with_repair(StructuredParser(llm), ASKED, many))
    correction = llm.calls[1].messages[-1].text
    assert '"field_49" and 20 more' in correction
    assert "field_50" not in correction


def test_a_reply_with_only_unknown_keys_ends_as_an_error_of_the_judge() -> None:
    llm = ScriptedLLM(*({"protein": name} for name in ("BCL2", "ABL1")))
    with pytest.raises(ParseError, match="does not fit: only unknown keys") as caught:
        repaired(llm, 1)
    assert (caught.value.kind, caught.value.repairs, len(llm.calls)) == ("judge", 1, 2)


def test_recorded_data_that_does_not_fit_is_not_asked_for_again() -> None:
    class Recorded(StructuredParser):
        async def aparse(self, *_: Any, **__: Any) -> ParsePortResult:
            return ParsePortResult(data={"protein": "BCL2"})

    with pytest.raises(ParseError, match="only unknown keys") as caught:
        asyncio.run(parse_with_repair(Recorded(ScriptedLLM()), ASKED, SCHEMA, validate=named))
    assert caught.value.repairs == 0


@pytest.mark.parametrize("error", [PortError("down", kind="server"), TemplateError("its own code failed")])
def test_other_failures_are_not_repaired(error: Exception) -> None:
    async def fails(data: Mapping[str, Any]) -> None:
        raise error

    llm = ScriptedLLM(lambda call: GOOD)
    with pytest.raises(type(error)):
        asyncio.run(parse_with_repair(StructuredParser(llm), ASKED, SCHEMA, validate=fails))
    assert len(llm.calls) == 1


@pytest.mark.parametrize("made", [0, 1, 2])
def test_a_call_that_fails_says_how_many_corrections_came_before_it(made: int) -> None:
    llm = ScriptedLLM(*["no JSON", "still none"][:made], PortError("down", kind="server"))
    with pytest.raises(PortError, match="down") as caught:
        repaired(llm)
    assert (caught.value.repairs, len(llm.calls)) == (made, made + 1)


def test_a_very_long_reply_is_not_sent_back_in_full() -> None:
    llm = ScriptedLLM("x" * 100_000, GOOD)
    repaired(llm)
    assert len(llm.calls[1].text) < 30_000


def test_all_objects_of_a_text_are_found_in_their_order_or_none_where_the_last_could_be_missed() -> None:
    assert json_objects('{"a": {"b": 1}} {not one} {"a": "}"}\n```json\n{}\n``` {"cut": 1') == [
        {"a": {"b": 1}},
        {"a": "}"},
        {},
    ]
    assert json_objects("no object") == []
    assert json_objects('{"a": 1} {"b": 1, "b": 2}') == []
    many = '{"a": 1} ' * 5000
    assert len(json_objects(many)) == 5000
    assert json_objects("{x} " * 10_001 + '{"a": 1}') == []
    assert json_objects(" " * 1_000_000 + '{"a": 1}') == []
