"""What an agent reports of its session, in karenina's terms.

https://agentclientprotocol.com/protocol/prompt-turn and .../tool-calls
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, evolve, field
from karenina_calls.agents.record import AgentRecord, Reply
from karenina_calls.ports.text import sanitize_data
from karenina_calls.wire.openai_wire import count_of

from karenina_core.errors import PortError
from karenina_core.ports.values import Limit
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, UsageMetadata

from .tool_server import SERVER

LIMITS: Mapping[str, Limit] = {"max_turn_requests": "turns"}
"""Reasons to stop that are limits of the agent."""
CUT_OFF = "max_tokens"
DONE = ("completed", "failed")
PREFIXES = (f"mcp__{SERVER}__", f"{SERVER}__", f"{SERVER}/")
"""What agents put before the names of a server's tools."""


@define(eq=False)
class Record(AgentRecord):
    """A session as far as it has come."""

    stop_reason: str | None = None
    terminal: Callable[[str], str] = field(default=lambda number: "")
    """What the command in a terminal has printed."""
    _cost: float | None = None
    _used: int = 0
    _total: UsageMetadata | None = None
    _reply: Reply | None = None
    """The reply that is being handed over."""
    _message: str | None = None
    """The id of the message that is being handed over."""
    _growing: list[str] = field(factory=list)
    _is_thought: bool = False
    _known: dict[str, dict[str, Any]] = field(factory=dict)
    """What was reported of every call, by id."""
    _places: dict[str, tuple[Reply, int]] = field(factory=dict)
    """Where the block of every call is."""

    def take(self, update: Mapping[str, Any]) -> None:
        """Take one `session/update`. Raises PortError where something that belongs to it is missing."""
        if self.limit is not None:
            return
        kind = update.get("sessionUpdate")
        try:
            if kind in ("agent_message_chunk", "agent_thought_chunk"):
                self._grow(_content(update["content"]), update.get("messageId"), thought=kind == "agent_thought_chunk")
            elif kind in ("tool_call", "tool_call_update"):
                self._take_call(str(update["toolCallId"]), update)
            elif kind == "usage_update":
                self._take_usage(update)
        except (KeyError, TypeError, AttributeError) as error:
            raise PortError(f"a {kind} without what belongs to it: {error!r}", kind="bad_response") from error

    def end(self, result: Any) -> None:
        """Take the result of the prompt. Raises PortError where it is none."""
        if not isinstance(result, dict) or not isinstance(reason := result.get("stopReason"), str):
            raise PortError("the agent gave no reason why it stopped", kind="bad_response")
        self.stop_reason = reason
        self.cut_off = reason == CUT_OFF
        self.limit = self.limit or LIMITS.get(reason) or ("tool_calls" if self._excess else None)
        if isinstance(counts := result.get("usage"), dict):
            self._total = _usage(counts)

    def call(self, number: str, update: Mapping[str, Any]) -> dict[str, Any]:
        """All that is known of a call, with what is reported now."""
        return {**self._known.get(number, {}), **{name: value for name, value in update.items() if value is not None}}

    # Texts and calls

    def _turn(self) -> Reply | None:
        """The reply that something belongs to: a new one after the answers of all tools."""
        if self._reply is None or (self._trace and self._trace[-1] is not self._reply and not self._pending):
            self._flush()
            if len(self._replies) >= self.limits.max_turns:
                self.limit = "turns"
                return None
            self._reply = self.reply(f"reply {len(self._replies)}")
        return self._reply

    def _grow(self, text: str, message: str | None, *, thought: bool) -> None:
        if self._turn() is None:
            return
        if thought != self._is_thought or (message is not None and self._message not in (None, message)):
            self._flush()
        self._is_thought, self._message = thought, message or self._message
        self._growing.append(text)

    def _flush(self) -> None:
        """Make a block of the pieces of a text; only in the whole of it a secret can be seen."""
        text, self._growing = self.safe_text("".join(self._growing)), []
        if text and self._reply is not None:
            self._reply.blocks.append(ThinkingBlock(text) if self._is_thought else TextBlock(text))

    def _take_call(self, number: str, update: Mapping[str, Any]) -> None:
        known = self._known[number] = self.call(number, update)
        given = known.get("rawInput")
        block = self.tool_use(number, _name(known), _shown_input(known) if given is None else given)
        if number not in self._places:
            reply = self._turn()
            if reply is None:
                return
            self._flush()
            self._places[number] = reply, len(reply.blocks)
            reply.blocks.append(block)
            self.called(block)
            self.end_excess()
        else:
            reply, place = self._places[number]
            reply.blocks[place] = block
            if number in self._calls:
                self._calls[number] = block
        if known.get("status") in DONE and number in self._pending:
            self._flush()
            self.answered(self.tool_result(number, self._answer(known), is_error=known["status"] == "failed"))
            self.look_at_limits()

    def _answer(self, known: Mapping[str, Any]) -> str:
        parts = [self._part(part) for part in known.get("content") or ()]
        if text := "\n".join(part for part in parts if part):
            return text
        output = known.get("rawOutput")
        return output if isinstance(output, str) else "" if output is None else json.dumps(sanitize_data(output))

    def _part(self, part: Mapping[str, Any]) -> str:
        kind = part.get("type")
        if kind == "content":
            return _content(part["content"])
        if kind == "diff":
            return f"[{part['path']} is now]\n{part['newText']}"
        return self.terminal(str(part["terminalId"])) if kind == "terminal" else f"[{kind}]"

    # Usage

    def _take_usage(self, update: Mapping[str, Any]) -> None:
        self._used = max(self._used, count_of(update.get("used")) or 0)
        cost = update.get("cost") or {}
        if cost.get("currency") == "USD" and isinstance(amount := cost.get("amount"), int | float) and amount >= 0:
            self._cost = float(amount)
        limits = self.limits
        if limits.max_cost_usd is not None and (self._cost or 0) >= limits.max_cost_usd:
            self.limit = "cost"
        elif limits.max_total_tokens is not None and self._used >= limits.max_total_tokens:
            self.limit = "tokens"

    def tokens_so_far(self) -> int:
        """What is in the context was sent or received at least once."""
        return self._used

    def usage(self) -> UsageMetadata:
        return evolve(self._total or UsageMetadata(), cost_usd=self._cost or None, model=self.actual_model)

    @property
    def usage_unavailable(self) -> bool:
        return self._total is None

    def messages(self) -> list[Message]:
        self._flush()
        return super().messages()


def _name(known: Mapping[str, Any]) -> str:
    """What a tool is called: newer agents say it, of others the kind is known, or a title for people."""
    kind = known.get("kind")
    name = str(known.get("name") or (kind if kind not in (None, "other") else known.get("title")) or "tool")
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)


def _shown_input(known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the arguments of a call whose arguments the agent does not show."""
    paths = [place["path"] for place in known.get("locations") or ()]
    return {"title": str(known.get("title", "")), **({"paths": paths} if paths else {})}


def _content(block: Mapping[str, Any]) -> str:
    """A block of content as text; what is no text is named, https://agentclientprotocol.com/protocol/content."""
    if block["type"] == "text":
        return str(block["text"])
    resource = block.get("resource") or block
    return str(resource["text"]) if "text" in resource else f"[{block['type']} {resource.get('uri') or ''}]"


def _usage(counts: Mapping[str, Any]) -> UsageMetadata:
    """The counts of a whole prompt. Whether those of caches and thoughts are within the others is left open by the
    protocol (https://agentclientprotocol.com/rfds/end-turn-token-usage); the total says it."""
    names = ("inputTokens", "outputTokens", "totalTokens", "cachedReadTokens", "cachedWriteTokens")
    sent, given, total, read, written = (count_of(counts.get(name)) for name in names)
    sent, given = sent or 0, given or 0
    cached = (read or 0) + (written or 0)
    total = max(total or 0, sent + given)
    sent += cached if total >= sent + given + cached else 0
    return UsageMetadata(sent, total - sent, total, cache_read_tokens=read, cache_creation_tokens=written)
