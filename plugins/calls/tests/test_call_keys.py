"""What makes two calls the same call is written down by hand, because that is quick. It says what the fields say."""

from __future__ import annotations

import hashlib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve, fields
from karenina_calls.ports.port_calls import AgentCall, LLMCall, ParserCall
from karenina_calls.records.requests import EmbeddingRequest, Request, SearchRequest, llm_to

from karenina_core import ModelConfig
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import AgentConfig, CallContext, LLMResponse, OutputFormat, Tool
from karenina_core.values.identity import ModelIdentity, TaskIdentity, canonical_json
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

MODEL = ModelConfig(
    model_name="m", interface="i", model_provider="p", id="mine", mcp_urls_dict={"b": "https://b", "a": "https://a"}
)
TARGET = CallTarget.of_model("llm", MODEL)
CALL = ToolUseBlock("1", "look", {"at": [1, {"x": None}]})
USAGE = UsageMetadata(1, 2, 3, 0.5, 4, 5, "m-1")
MESSAGES = [
    Message.system("Be brief."),
    Message.user("é\ud800?"),
    Message("assistant", (ThinkingBlock("hm", "s"), TextBlock("a"), CALL), USAGE),
    Message("tool", (ToolResultBlock("1", "seen", True),)),
]
TOOL = Tool(name="look", description="Looks.", input_schema={"type": "object", "properties": {}})
CONTEXT = CallContext("parsing", "q", "?", 3, 0.5)
SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "null"}}}
REQUESTS = [
    LLMCall(TARGET, MESSAGES, OutputFormat("json_schema", SCHEMA), 0.1, [TOOL], CONTEXT).request,
    LLMCall(CallTarget.of_model("llm", ModelConfig(model_name="m", interface="i")), MESSAGES[:1]).request,
    ParserCall(TARGET, MESSAGES, SCHEMA, CONTEXT).request,
    AgentCall(TARGET, MESSAGES, [TOOL], None, AgentConfig(system_prompt="s"), CONTEXT).request,
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.kind)
def test_the_key_is_the_digest_of_all_fields(request_: Request) -> None:
    facts = asdict(request_)
    assert request_.key == hashlib.sha256(canonical_json(facts).encode("ascii")).hexdigest()
    written = f"{request_.key}\n2\nq1\ncode"
    assert request_.key_of("q1", "2", "code") == hashlib.sha256(written.encode("ascii")).hexdigest()
    each = product(("q1", "q2"), ("1", "2"), ("", "code", "other code"))
    assert len({request_.key_of(*facts) for facts in each}) == 12


AGENT = AgentConfig(
    max_turns=3, max_tool_calls=3, max_total_tokens=3, max_cost_usd=3.0, max_repeated_calls=3, timeout=3
)
CHANGED = {**{limit.name: 4 for limit in fields(AgentConfig)}, "system_prompt": "s", "extra": {"a": 1}}


@pytest.mark.parametrize("name", sorted(CHANGED.keys() - {"workspace_path"}))
def test_every_limit_of_an_agent_is_part_of_its_call(name: str) -> None:
    first, other = (
        AgentCall(TARGET, MESSAGES, [TOOL], None, config, CONTEXT).request
        for config in (AGENT, evolve(AGENT, **{name: CHANGED[name]}))
    )
    assert first.key != other.key
    assert first.key == AgentCall(TARGET, MESSAGES, [TOOL], None, evolve(AGENT), CONTEXT).request.key


@pytest.mark.parametrize(
    "offered",
    [
        [],
        [TOOL, evolve(TOOL, name="other")],
        [evolve(TOOL, description="Looks twice.")],
        [evolve(TOOL, input_schema={"type": "object"})],
    ],
)
def test_other_tools_make_another_call(offered: list[Tool]) -> None:
    """Such as those of another filter, or with other descriptions; of models that are asked turn by turn too."""
    assert (
        AgentCall(TARGET, MESSAGES, offered, None, AGENT, CONTEXT).request.key
        != AgentCall(TARGET, MESSAGES, [TOOL], None, AGENT, CONTEXT).request.key
    )
    asked = (LLMCall(TARGET, MESSAGES, tools=tools, context=CONTEXT).request for tools in ([TOOL], offered))
    assert next(asked).key != next(asked).key


def test_the_folder_of_an_agent_is_no_part_of_its_call(tmp_path: Path) -> None:
    asked = [
        AgentCall(
            TARGET, [Message.user(f"Look into {path}.")], config=evolve(AGENT, workspace_path=path), context=CONTEXT
        ).request
        for path in (tmp_path / "a", tmp_path / "b")
    ]
    assert asked[0].key == asked[1].key


@pytest.mark.parametrize("kept", [EmbeddingRequest("e", "m", ("a",)), SearchRequest("s", "a")], ids=lambda r: r.kind)
def test_the_code_that_serves_a_service_is_part_of_what_its_replies_are_found_by(kept: Any) -> None:
    assert len({kept.key_of("q1", "1", code) for code in ("", "code", "other code")}) == 3
    assert kept.key_of("q1", "1", "code") == kept.key_of("q2", "2", "code")


@pytest.mark.parametrize("value", [USAGE, UsageMetadata(), MODEL.identity, ModelIdentity("i", "m")], ids=repr)
def test_values_tell_all_of_their_fields(value: Any) -> None:
    assert value.to_dict() == asdict(value)
    assert list(value.to_dict()) == list(asdict(value))


def test_messages_tell_all_of_their_blocks() -> None:
    for message in MESSAGES:
        written = message.to_dict()
        assert [{k: v for k, v in block.items() if k != "type"} for block in written["content"]] == [
            asdict(block) for block in message.content
        ]
        assert Message.from_dict(written) == message


def test_the_id_of_a_result_is_the_digest_of_its_task() -> None:
    task = TaskIdentity("q", "t", MODEL.identity, ModelIdentity("i", "m"), 2)
    parts = {**asdict(task), "run_name": "r", **dict.fromkeys(("scenario_id", "scenario_node", "scenario_turn"))}
    assert task.result_id("r") == hashlib.sha256(canonical_json(parts).encode("ascii")).hexdigest()[:16]
    assert task.result_id("other") != task.result_id("r")


def test_replies_tell_all_of_their_fields_but_the_raw_one() -> None:
    reply = LLMResponse(
        content="c",
        tool_calls=(CALL,),
        thinking_blocks=(ThinkingBlock("t"),),
        usage=USAGE,
        flags=("nul",),
        raw=object(),
    )
    assert llm_to(reply) == asdict(reply, filter=lambda attribute, _: attribute.name != "raw")
