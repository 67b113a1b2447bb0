"""Replies and failures as plain data: what a journal or a recording gives back is what was put in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.ports.port_calls import LLMCall
from karenina_calls.records.requests import (
    EmbeddingRequest,
    SearchRequest,
    agent_from,
    agent_to,
    embeddings_from,
    embeddings_to,
    error_from,
    error_to,
    llm_from,
    llm_to,
    parse_from,
    parse_to,
    search_from,
    search_to,
)
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.search import SearchResult

from karenina_core import ModelConfig
from karenina_core.errors import ParseError, PortError, SearchError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import AgentResult, CallContext, LLMResponse, OutputFormat, ParsePortResult, Tool
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolUseBlock, UsageMetadata

TEXTS = st.text(max_size=8)
COUNTS = st.integers(0, 9)
BOOLEANS = st.booleans()
USAGES = st.builds(
    UsageMetadata, COUNTS, COUNTS, COUNTS, st.none() | st.floats(0, 9), st.none() | COUNTS, st.none() | COUNTS
)
CALLS = st.builds(ToolUseBlock, TEXTS, TEXTS, st.dictionaries(TEXTS, COUNTS | TEXTS, max_size=2))
BLOCKS = st.builds(TextBlock, TEXTS) | CALLS
MESSAGES = st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=2).map(tuple))
REPLIES = st.builds(
    LLMResponse,
    content=TEXTS,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    malformed_calls=st.lists(COUNTS, max_size=2).map(tuple),
    structured=st.none() | TEXTS,
    thinking=st.none() | TEXTS,
    thinking_blocks=st.lists(st.builds(ThinkingBlock, TEXTS, TEXTS), max_size=2).map(tuple),
    usage=USAGES,
    usage_unavailable=BOOLEANS,
    finish_reason=st.none() | TEXTS,
    actual_model=st.none() | TEXTS,
    is_partial=BOOLEANS,
    flags=st.lists(TEXTS, max_size=2).map(tuple),
    raw=st.none() | st.lists(MESSAGES, max_size=2).map(tuple),
)
JUDGMENTS = st.builds(
    ParsePortResult,
    data=st.dictionaries(TEXTS, COUNTS | TEXTS, max_size=2),
    usage=USAGES,
    usage_unavailable=BOOLEANS,
    channel=st.sampled_from([None, "json_schema", "tool_call"]),
    repairs=COUNTS,
    raw=TEXTS,
)
AGENTS = st.builds(
    AgentResult,
    final_response=TEXTS,
    raw_trace=TEXTS,
    trace_messages=st.lists(MESSAGES, max_size=2).map(tuple),
    usage=USAGES,
    turns=COUNTS,
    limit=st.sampled_from([None, "turns", "time"]),
    usage_unavailable=BOOLEANS,
    flags=st.lists(TEXTS, max_size=2).map(tuple),
    session_id=st.none() | TEXTS,
    actual_model=st.none() | TEXTS,
)
VECTORS = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=3).map(tuple)
EMBEDDED = st.builds(Embeddings, vectors=VECTORS, model=TEXTS, usage=USAGES, usage_unavailable=BOOLEANS)
FOUND = st.lists(
    st.builds(SearchResult, content=TEXTS, title=st.none() | TEXTS, url=st.none() | TEXTS), max_size=3
).map(tuple)


def kept(data: Any) -> Any:
    """What a line of JSON gives back."""
    return json.loads(json.dumps(data))


@given(REPLIES)
def test_a_reply_comes_back_with_its_messages(reply: LLMResponse) -> None:
    back = llm_from(kept(llm_to(reply)))
    assert back == reply
    assert back.raw == reply.raw


def test_of_what_an_adapter_hands_over_only_messages_are_kept() -> None:
    for raw in ((Message.user("a"), object()), [Message.user("a")], object(), "text"):
        assert llm_from(kept(llm_to(LLMResponse(content="a", raw=raw)))).raw is None


@given(JUDGMENTS)
def test_a_judgment_comes_back(result: ParsePortResult) -> None:
    assert parse_from(kept(parse_to(result))) == result


@given(AGENTS)
def test_the_work_of_an_agent_comes_back(result: AgentResult) -> None:
    assert agent_from(kept(agent_to(result))) == result


@given(EMBEDDED)
def test_vectors_come_back_with_every_digit(embeddings: Embeddings) -> None:
    assert embeddings_from(kept(embeddings_to(embeddings))) == embeddings


@pytest.mark.parametrize("vector", [("a",), (None,), 3, (10**400,)])
def test_vectors_of_something_else_are_a_bad_response(vector: Any) -> None:
    with pytest.raises(PortError) as caught:
        embeddings_to(Embeddings(vectors=(vector,), model="m"))
    assert caught.value.kind == "bad_response"


@given(FOUND)
def test_what_a_search_found_comes_back(found: tuple[SearchResult, ...]) -> None:
    assert search_from({"reply": kept(search_to(found))}) == found


def test_a_failed_search_comes_back_as_its_error() -> None:
    with pytest.raises(SearchError, match="no index"):
        search_from({"error": kept(error_to(SearchError("no index")))})


@given(TEXTS, st.sampled_from(["server", "auth", "bad_response"]), st.none() | st.integers(400, 599), st.none() | TEXTS)
def test_a_failed_call_comes_back_and_is_final(text: str, kind: Any, status: int | None, raw: str | None) -> None:
    back = error_from(kept(error_to(PortError(text, kind=kind, status=status, raw=raw))))
    assert (str(back), back.kind, back.status, back.raw) == (text, kind, status, raw)
    assert back.final
    assert back.evidence == {}


@given(AGENTS)
def test_a_failed_agent_comes_back_with_what_it_did(done: AgentResult) -> None:
    failed = PortError("lost", kind="timeout")
    failed.evidence = {"agent_result": done}
    back = error_from(kept(error_to(failed)))
    assert back.evidence == {"agent_result": done}


@given(TEXTS, TEXTS, st.none() | USAGES, BOOLEANS, BOOLEANS, st.sampled_from([None, "json_schema"]))
def test_a_failed_judgment_comes_back_with_what_it_cost(
    text: str, raw: str, usage: UsageMetadata | None, unknown: bool, cut_off: bool, channel: str | None
) -> None:
    failed = ParseError(text, raw_response=raw)
    failed.usage, failed.usage_unavailable, failed.cut_off, failed.channel = usage, unknown, cut_off, channel
    back = error_from(kept(error_to(failed)))
    assert isinstance(back, ParseError)
    assert (str(back), back.raw_response, back.raw, back.kind) == (text, raw, raw, "judge")
    assert (back.usage, back.usage_unavailable, back.cut_off, back.channel) == (usage, unknown, cut_off, channel)


def test_what_is_sent_is_all_that_is_read_and_its_recipient_is_named() -> None:
    tool = Tool(name="look", description="Looks.", input_schema={"type": "object"})
    schema = {"type": "object"}
    target = CallTarget.of_model("llm", ModelConfig(model_name="m", interface="i"))
    output = OutputFormat("json_schema", schema)
    asked = LLMCall(target, [Message.user("Why?")], output, None, [tool], CallContext("parsing")).request
    offered = [{"name": "look", "description": "Looks.", "input_schema": schema}]
    assert asked.sent == ((Message.user("Why?").to_dict(),), schema, offered)
    assert evolve(asked, parameters={}).sent[2] is None
    assert asked.recipient == "i:m"
    embedded = EmbeddingRequest("openai", "small", ("a", "b"))
    assert (embedded.recipient, embedded.sent) == ("openai:small", ("a", "b"))
    searched = SearchRequest("library", "BCL2")
    assert (searched.recipient, searched.sent) == ("library", ("BCL2",))
