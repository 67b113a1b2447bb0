"""An agent that thinks: what the provider signed goes back to it with the answers of the tools."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from karenina_calls.tools.agent_loop import run_agent_loop
from karenina_litellm.port import LiteLLM, messages_with_thinking

from karenina_core.ports import AgentConfig, AgentResult, Tool, ToolOutcome
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolUseBlock

SIGNED = {"type": "thinking", "thinking": "I have to look.", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "aGlkZGVu"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "the map"}}


@contextmanager
def anthropic(*contents: Any) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """A server of the messages protocol that replies these contents in turn: its address, and what it was sent."""
    seen: list[Mapping[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = contents[len(seen) - 1]
            reply = {
                "id": f"msg_{len(seen)}",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": content,
                "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
                "usage": {"input_tokens": 5, "output_tokens": 5},
            }
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def work(url: str) -> AgentResult:
    async def look(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("there is nothing", is_error=True)

    async def run() -> AgentResult:
        port = LiteLLM(
            ModelConfig(
                model_name="claude-sonnet-4-5",
                model_provider="anthropic",
                endpoint_base_url=url,
                endpoint_api_key="k",
                max_tokens=4000,
                temperature=None,
                extra_kwargs={"thinking": {"type": "enabled", "budget_tokens": 1024}},
            )
        )
        try:
            tool = Tool(name="look", description="Look.", input_schema={"type": "object"}, run=look)
            return await run_agent_loop(
                lambda messages, tools: port.ainvoke(messages, tools=tools),
                [Message.user("Where is it?")],
                [tool],
                AgentConfig(),
            )
        finally:
            await port.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("thoughts", [[SIGNED], [SIGNED, HIDDEN]])
def test_thinking_goes_back_to_the_provider_as_it_was_signed(thoughts: list[dict[str, str]]) -> None:
    with anthropic([*thoughts, CALL], [{"type": "text", "text": "Nowhere."}]) as (url, seen):
        result = work(url)
    assert result.final_response == "Nowhere."
    first, second = seen
    assert first["thinking"] == second["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    answer = next(message for message in second["messages"] if message["role"] == "assistant")
    sent = [block for block in answer["content"] if "thinking" in block["type"]]
    assert sent == thoughts
    assert [block["type"] for block in answer["content"]][-1] == "tool_use"
    result_block = second["messages"][-1]["content"][0]
    assert (result_block["tool_use_id"], "[ERROR] there is nothing" in json.dumps(result_block)) == ("toolu_1", True)
    kept = [block for block in result.trace_messages[0].content if isinstance(block, ThinkingBlock)]
    assert (kept[0].thinking, kept[0].signature, len(kept)) == ("I have to look.", "c2lnbmVk", len(thoughts))


def test_only_providers_that_sign_are_sent_what_was_thought() -> None:
    message = Message("assistant", (ThinkingBlock("hm", "c2ln"), ThinkingBlock("unsigned"), TextBlock("a")))
    called = Message("assistant", (ThinkingBlock("unsigned"), ToolUseBlock("c", "look", {})))
    for provider in ("openai", "mistral", None):
        assert all("thinking_blocks" not in wire for wire in messages_with_thinking([message, called], provider))
    first, second = messages_with_thinking([message, called], "anthropic")
    assert first["thinking_blocks"] == [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
    assert "thinking_blocks" not in second
