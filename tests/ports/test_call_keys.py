"""What makes two calls the same call is written down by hand, because that is quick. It says what the fields say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from attrs import asdict

from karenina_core import ModelConfig
from karenina_core.model.identity import ModelIdentity, TaskIdentity, canonical_json
from karenina_core.model.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata
from karenina_core.ports.calls import Request, llm_to
from karenina_core.ports.values import AgentConfig, CallContext, LLMResponse, OutputFormat, Tool

MODEL = ModelConfig(
    model_name="m", interface="i", model_provider="p", id="mine", mcp_urls_dict={"b": "https://b", "a": "https://a"}
)
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
    Request.of_llm(MODEL, MESSAGES, OutputFormat("json_schema", SCHEMA), 0.1, CONTEXT, [TOOL]),
    Request.of_llm(ModelConfig(model_name="m", interface="i"), MESSAGES[:1], None, None, None),
    Request.of_parser(MODEL, MESSAGES, SCHEMA, CONTEXT),
    Request.of_agent(MODEL, MESSAGES, [TOOL], AgentConfig(system_prompt="s"), CONTEXT),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.kind)
def test_the_key_is_the_digest_of_all_fields(request_: Request) -> None:
    facts = asdict(request_)
    assert request_.key == hashlib.sha256(canonical_json(facts).encode("ascii")).hexdigest()
    told = f"{request_.key}\n2\nq1"
    assert request_.key_of("q1", "2") == hashlib.sha256(told.encode("ascii")).hexdigest()
    assert len({request_.key_of(question, version) for question in ("q1", "q2") for version in ("1", "2")}) == 4


@pytest.mark.parametrize("value", [USAGE, UsageMetadata(), MODEL.identity, ModelIdentity("i", "m")], ids=repr)
def test_values_tell_all_of_their_fields(value: Any) -> None:
    assert value.to_dict() == asdict(value)
    assert list(value.to_dict()) == list(asdict(value))


def test_messages_tell_all_of_their_blocks() -> None:
    for message in MESSAGES:
        told = message.to_dict()
        assert [{k: v for k, v in block.items() if k != "type"} for block in told["content"]] == [
            asdict(block) for block in message.content
        ]
        assert Message.from_dict(told) == message


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
