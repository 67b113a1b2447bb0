"""What an agent does, as messages, with the limits that karenina keeps for it. How it is read is the adapter's work."""

from __future__ import annotations

import json
from collections import Counter

from attrs import define, field

from karenina_core.ports.values import AgentConfig, AgentResult, Limit
from karenina_core.values.message import (
    Block,
    Message,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
    one_result_each,
)

from ..ports.text import sanitize, sanitize_data
from ..secrets.incoming import removal_flags
from ..secrets.redaction import Secrets
from ..tools.agent_loop import TRUNCATED
from ..tools.tool_calls import shortened_answer

ALREADY_CUT = 200
"""Characters that an answer of karenina's own tools may have beyond the limit: the note that it was cut."""


@define(eq=False)
class Reply:
    """One reply of the model, which the agent hands over piece by piece."""

    blocks: list[Block] = field(factory=list)
    usage: UsageMetadata | None = None

    def message(self) -> Message:
        return Message("assistant", self.blocks, self.usage)


@define(eq=False)
class AgentRecord:
    """A session as far as it has come."""

    limits: AgentConfig
    secrets: Secrets = field(factory=Secrets)
    """Of its surroundings."""
    session_id: str | None = None
    actual_model: str | None = None
    flags: dict[str, None] = field(factory=dict)
    limit: Limit | None = None
    cut_off: bool = False
    """Whether the last reply was cut off."""
    _trace: list[Reply | Message] = field(factory=list)
    _replies: dict[str, Reply] = field(factory=dict)
    _calls: dict[str, ToolUseBlock] = field(factory=dict)
    """The calls that count, by id."""
    _pending: set[str] = field(factory=set)
    """Those of them that have no answer yet."""
    _excess: bool = False
    """Whether there was a call too many."""
    _repeated: Counter[str] = field(factory=Counter)

    # Taking what happens

    def reply(self, key: str) -> Reply | None:
        """The reply of this key, which begins here where it is a new one; None where no further one counts."""
        if key not in self._replies:
            if self._excess:
                self.limit = "tool_calls"
                return None
            self._replies[key] = Reply()
            self._trace.append(self._replies[key])
        return self._replies[key]

    def called(self, block: ToolUseBlock) -> None:
        """Count a call of a tool."""
        most = self.limits.max_tool_calls
        if most is not None and len(self._calls) >= most:
            self._excess = True
        else:
            self._calls[block.id] = block
            self._pending.add(block.id)

    def answered(self, block: ToolResultBlock) -> None:
        """Take the answer of a tool, once, and only of a call that counts."""
        if block.tool_use_id not in self._pending:
            return
        self._pending.discard(block.tool_use_id)
        self._trace.append(Message("tool", (block,)))
        call = self._calls[block.tool_use_id]
        self._repeated[json.dumps([call.name, call.input, block.content], sort_keys=True, default=str)] += 1

    def end_excess(self) -> None:
        """Where there was a call too many, end once those before have their answers."""
        if self._excess and not self._pending:
            self.limit = "tool_calls"

    def look_at_limits(self) -> None:
        """What programs do not keep themselves: looked at whenever all calls have their answers."""
        if self._pending or not self._repeated:
            return
        limits = self.limits
        if self._excess:
            self.limit = "tool_calls"
        elif limits.max_total_tokens is not None and self.tokens_so_far() >= limits.max_total_tokens:
            self.limit = "tokens"
        elif limits.max_repeated_calls is not None and max(self._repeated.values()) > limits.max_repeated_calls:
            self.limit = "repeated_calls"

    # Blocks

    def tool_use(self, id: str, name: str, given: object) -> ToolUseBlock:
        """A call of a tool, without secrets and with arguments that can be stored."""
        data: object
        try:
            removed: set[str] = set()
            data = self.secrets.data(sanitize_data(given), removed)
            self.flags |= dict.fromkeys(removal_flags(removed))
        except RecursionError:
            data = "[nested too deeply]"
        return ToolUseBlock(id, name, data if isinstance(data, dict) else {"arguments": data})

    def tool_result(self, id: str, text: str, *, is_error: bool) -> ToolResultBlock:
        return ToolResultBlock(id, shortened_answer(self.safe_text(text), ALREADY_CUT), is_error)

    def safe_text(self, text: str) -> str:
        """The text without secrets, safe to write; what was changed is in the flags."""
        text, flags = sanitize(self.clean(text))
        self.flags |= dict.fromkeys(flags)
        return text

    def clean(self, text: str) -> str:
        """The text without secrets, which the flags record."""
        removed: set[str] = set()
        text = self.secrets.text(text, removed)
        self.flags |= dict.fromkeys(removal_flags(removed))
        return text

    # Reading what happened

    def messages(self) -> list[Message]:
        """Texts and actions, one message for every tool result."""
        messages = (part.message() if isinstance(part, Reply) else part for part in self._trace)
        return [message for part in messages if part.content for message in one_result_each(part)]

    def text(self) -> str:
        """All texts of the model."""
        return "\n".join(message.text for message in self.messages() if message.text)

    def thinking(self) -> str | None:
        """All that the model thought."""
        blocks = (block for message in self.messages() for block in message.content)
        return "\n\n".join(block.thinking for block in blocks if isinstance(block, ThinkingBlock)) or None

    def final_text(self) -> str:
        """What the agent gives as its result apart from its messages."""
        return ""

    def spent(self) -> UsageMetadata:
        """The sum of what the replies reported."""
        known = [reply.usage for reply in self._replies.values() if reply.usage is not None]
        return sum(known[1:], known[0]) if known else UsageMetadata()

    def tokens_so_far(self) -> int:
        """Tokens that were certainly used."""
        return self.spent().total_tokens

    def usage(self) -> UsageMetadata:
        """What is known of the whole session."""
        return self.spent()

    @property
    def usage_unavailable(self) -> bool:
        return True

    def agent_result(self) -> AgentResult:
        trace = self.messages()
        last = trace[-1] if trace else None
        final = last.text if last is not None and last.role == "assistant" and not last.tool_calls else ""
        if not final and self.limit is None:
            final = self.final_text()
        return AgentResult(
            final_response=final,
            trace_messages=tuple(trace),
            usage=self.usage(),
            turns=len(self._replies),
            limit=self.limit,
            usage_unavailable=self.usage_unavailable,
            flags=(*self.flags, *((TRUNCATED,) if self.cut_off else ())),
            session_id=self.session_id,
            actual_model=self.actual_model,
        )
