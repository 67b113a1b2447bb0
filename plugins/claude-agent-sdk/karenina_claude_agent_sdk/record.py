"""What happened in a session, in karenina's terms (messages, usage, limits), and the tools that it was offered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import define, evolve
from karenina_calls.agents.offered import OfferedCalls, schema_of
from karenina_calls.agents.record import AgentRecord
from karenina_calls.tools.tool_calls import MOST_CHARACTERS
from karenina_calls.wire.openai_wire import count_of

from karenina_core.errors import PortError
from karenina_core.ports.values import Limit, Tool
from karenina_core.values.message import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

SERVER = "karenina"
PREFIX = f"mcp__{SERVER}__"


def full_name(tool: Tool) -> str:
    """What the program calls a tool of the server."""
    return f"{PREFIX}{tool.name}"


def own_name(name: str) -> str:
    """What karenina calls a tool that the program calls so."""
    return name.removeprefix(PREFIX)


def offered(sdk: Any, tools: Sequence[Tool], most_calls: int | None) -> Any:
    """The server, as the SDK's configuration of it. A call after `most_calls` is not run."""
    calls = OfferedCalls(tools, most_calls)

    def handler(tool: Tool) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]:
        async def handle(given: Mapping[str, Any]) -> dict[str, Any]:
            outcome = await calls.run(tool.name, given)
            return {"content": [{"type": "text", "text": outcome.content}], "is_error": outcome.is_error}

        return handle

    inline = sdk.ToolAnnotations(maxResultSizeChars=2 * MOST_CHARACTERS)  # else long answers are put into files
    made = []
    for tool in tools:
        made.append(sdk.tool(tool.name, tool.description, schema_of(tool), annotations=inline)(handler(tool)))
    return sdk.create_sdk_mcp_server(name=SERVER, tools=made)


LIMITS: Mapping[str, Limit] = {"error_max_turns": "turns", "error_max_budget_usd": "cost"}
"""Subtypes of a result that say which limit the program has kept."""
NO_MODEL = "<synthetic>"
"""The model of messages that the program writes itself, to report an error."""


@define(eq=False)
class Record(AgentRecord):
    """A session as far as it has come. `take` its messages one by one until it says that this was the last."""

    result: Any = None
    """The SDK's ResultMessage, once there is one."""
    refusal: str | None = None
    """The kind of error that the program reported in place of a reply, in the SDK's word."""
    refusal_text: str = ""
    resets_at: float | None = None
    """When requests are taken again, in seconds since 1970; None where none was turned away."""

    # Taking messages

    def take(self, message: Any) -> bool:
        """Take one message of the SDK. Returns whether it is the last that counts.

        Raises PortError where the program goes to work without the tools that it was offered.
        """
        kind = type(message).__name__
        if kind == "ResultMessage":
            self.result = message
            self.session_id = message.session_id or self.session_id
            self.cut_off = message.stop_reason == "max_tokens"
            self.limit = LIMITS.get(message.subtype) or ("tool_calls" if self._excess else None)
            return True
        if getattr(message, "parent_tool_use_id", None) is not None:
            return False  # the work of another agent, whose report is the answer of a tool
        if kind == "AssistantMessage":
            self._take_reply(message)
        elif kind == "UserMessage" and isinstance(message.content, list):
            for block in map(self._block, message.content):
                if isinstance(block, ToolResultBlock):
                    self.answered(block)
            self.look_at_limits()
        elif kind == "SystemMessage" and message.subtype == "init":
            self.session_id = message.data.get("session_id") or self.session_id
            for server in message.data.get("mcp_servers") or ():
                if isinstance(server, dict) and (server.get("name"), server.get("status")) == (SERVER, "failed"):
                    raise PortError("the program could not reach the tools that it was offered", kind="plugin")
        elif kind == "RateLimitEvent" and message.rate_limit_info.status == "rejected":
            self.resets_at = message.rate_limit_info.resets_at
        return self.limit is not None

    def _take_reply(self, message: Any) -> None:
        if message.error or message.model == NO_MODEL:
            self.refusal = message.error or "unknown"
            self.refusal_text = "\n".join(block.text for block in message.content if hasattr(block, "text"))
            return
        reply = self.reply(message.message_id or f"reply {len(self._replies)}")
        if reply is None:
            return
        self.actual_model = message.model or self.actual_model
        if message.usage:
            reply.usage = evolve(_usage(message.usage), model=message.model)
        for block in map(self._block, message.content):
            if block is not None:
                reply.blocks.append(block)
            if isinstance(block, ToolUseBlock):
                self.called(block)
        self.end_excess()

    # Blocks

    def _block(self, block: Any) -> Block | None:
        """A block of the SDK as one of karenina's; None for what carries nothing."""
        kind = type(block).__name__
        if kind == "TextBlock":
            return TextBlock(self.safe_text(block.text)) if block.text else None
        if kind == "ThinkingBlock":
            return ThinkingBlock(self.safe_text(block.thinking), block.signature or None) if block.thinking else None
        if kind in ("ToolUseBlock", "ServerToolUseBlock"):
            return self.tool_use(block.id, own_name(block.name), block.input)
        if kind in ("ToolResultBlock", "ServerToolResultBlock"):
            is_error = bool(getattr(block, "is_error", False))
            return self.tool_result(block.tool_use_id, _answer(block.content), is_error=is_error)
        return None

    # Reading what happened

    def final_text(self) -> str:
        """The text of the result."""
        text = getattr(self.result, "result", None)
        return self.safe_text(text) if isinstance(text, str) else ""

    def usage(self) -> UsageMetadata:
        """That of the result; while there is none, the sum of what the replies reported."""
        if self.result is None or not self.result.usage:
            return self.spent()
        cost = self.result.total_cost_usd
        return evolve(_usage(self.result.usage), cost_usd=cost or None, model=self.actual_model)

    @property
    def usage_unavailable(self) -> bool:
        return self.result is None or not self.result.usage


def _answer(content: Any) -> str:
    """The content of a tool's answer as text; what is no text is named."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
    parts = (block if isinstance(block, dict) else {"type": str(block)} for block in content)
    return "\n".join(str(part["text"]) if "text" in part else f"[{part.get('type', 'unknown')}]" for part in parts)


def _usage(counts: Mapping[str, Any]) -> UsageMetadata:
    """The provider's counts. Its `input_tokens` are those that no cache served; karenina's are all of them."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, given, read, created = (count_of(counts.get(name)) for name in names)
    taken, given = (sent or 0) + (read or 0) + (created or 0), given or 0
    return UsageMetadata(taken, given, taken + given, cache_read_tokens=read, cache_creation_tokens=created)
