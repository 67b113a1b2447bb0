"""Messages: what is sent to a model and what comes back, in one shape for every provider."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import dropwhile, groupby
from typing import Any, Literal, get_args

from attrs import evolve, field, frozen

Role = Literal["system", "user", "assistant", "tool"]
KEYS = ("role", "content", "block_index", "tool_calls", "tool_result", "thinking", "usage_metadata", "blocks")
"""Of a message that is written as data, in either form."""
UNREAD = ("name", "annotations", "audio")
"""Keys of such messages that have no part in their content."""
REASONING = ("reasoning_content", "reasoning")


@frozen
class UsageMetadata:
    """Tokens of one or more calls. `cost_usd` is None where the price is unknown, never 0."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    model: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "cost_usd": self.cost_usd,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_creation_tokens": self.cache_creation_tokens,
            "model": self.model,
        }

    def __add__(self, other: UsageMetadata) -> UsageMetadata:
        return UsageMetadata(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            _sum(self.cost_usd, other.cost_usd, both=True),
            _sum(self.cache_read_tokens, other.cache_read_tokens),
            _sum(self.cache_creation_tokens, other.cache_creation_tokens),
            self.model if self.model == other.model else None,
        )


def _sum(a: Any, b: Any, *, both: bool = False) -> Any:
    """Add two numbers of which either may be unknown; `both`: an unknown part makes the sum unknown."""
    if a is None or b is None:
        return None if both or (a is None and b is None) else (a if b is None else b)
    return a + b


@frozen
class TextBlock:
    """Plain text."""

    text: str


@frozen
class ToolUseBlock:
    """A model asks for a tool."""

    id: str
    name: str
    input: Mapping[str, Any] = field(factory=dict)


@frozen
class ToolResultBlock:
    """What a tool answered."""

    tool_use_id: str
    content: str
    is_error: bool = False


@frozen
class ThinkingBlock:
    """Reasoning that the provider shows apart from the answer."""

    thinking: str
    signature: str | None = None


Block = TextBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock


def _blocks(value: Iterable[Block]) -> tuple[Block, ...]:
    return tuple(value)


@frozen
class Message:
    """One message: a role and a list of blocks."""

    role: Role
    content: tuple[Block, ...] = field(converter=_blocks)
    usage_metadata: UsageMetadata | None = None

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join([block.text for block in self.content if isinstance(block, TextBlock)])

    @property
    def tool_calls(self) -> tuple[ToolUseBlock, ...]:
        return tuple([block for block in self.content if isinstance(block, ToolUseBlock)])

    @classmethod
    def system(cls, text: str) -> Message:
        return cls("system", (TextBlock(text),))

    @classmethod
    def user(cls, text: str) -> Message:
        return cls("user", (TextBlock(text),))

    @classmethod
    def assistant(cls, text: str = "", tool_calls: Iterable[ToolUseBlock] = ()) -> Message:
        return cls("assistant", (*((TextBlock(text),) if text else ()), *tool_calls))

    @classmethod
    def tool_result(cls, tool_use_id: str, content: str, is_error: bool = False) -> Message:
        return cls("tool", (ToolResultBlock(tool_use_id, content, is_error),))

    def to_dict(self) -> dict[str, Any]:
        """A lossless JSON form: `{"role", "content": [{"type", ...}], "usage_metadata"?}`."""
        data: dict[str, Any] = {"role": self.role, "content": [_block_to_dict(block) for block in self.content]}
        if self.usage_metadata:
            data["usage_metadata"] = self.usage_metadata.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The inverse of `to_dict`; a plain string as content is one text block."""
        kinds: dict[str, type[Block]] = {
            "text": TextBlock,
            "tool_use": ToolUseBlock,
            "tool_result": ToolResultBlock,
            "thinking": ThinkingBlock,
        }
        content = data["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [kinds[b["type"]](**{k: v for k, v in b.items() if k != "type"}) for b in content]
        usage = data.get("usage_metadata")
        return cls(data["role"], blocks, UsageMetadata(**usage) if usage else None)


def _block_to_dict(block: Block) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, ThinkingBlock):
        return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
    answer = {"tool_use_id": block.tool_use_id, "content": block.content, "is_error": block.is_error}
    return {"type": "tool_result", **answer}


def one_result_each(message: Message) -> list[Message]:
    """The message in parts: every tool result is a message of the role `tool`, what is between stays together."""
    if not [block for block in message.content if isinstance(block, ToolResultBlock)]:
        return [message]
    parts: list[Message] = []
    for is_result, run in groupby(message.content, lambda block: isinstance(block, ToolResultBlock)):
        role: Role = "tool" if is_result else message.role
        parts += [Message(role, content) for content in ([(block,) for block in run] if is_result else [tuple(run)])]
    return [evolve(parts[0], usage_metadata=message.usage_metadata), *parts[1:]]


def trace_dicts(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The flat form that results store: one row a message, one message per tool result.

    Keys: `role`, `content` (text), `block_index`, and where present `tool_calls`, `tool_result`, `thinking`,
    `usage_metadata`; `blocks` (as in `Message.to_dict`) where those do not say everything, such as text after a tool
    call. The prompt is left out, see `without_prompt`.
    """
    return [_row(part, index) for index, part in enumerate(without_prompt(messages))]


def without_prompt(messages: Iterable[Message]) -> list[Message]:
    """The trace of a conversation, one message per tool result: without system messages, and without what the user says
    before the model's first message. What the user says later is part of it.
    """
    parts = [part for message in messages for part in one_result_each(message) if part.role != "system"]
    return list(dropwhile(lambda part: part.role == "user", parts))


def read_messages(value: Iterable[Any]) -> tuple[Message, ...]:
    """Messages, what `to_dict` and `trace_dicts` make of them, or those of chat completions (see `trace_row`).

    A text as `content` is one block.

    Raises ValueError that says which message cannot be read, or that none of them is the model's.
    """
    found: list[Message] = []
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, Message):
            try:
                entry = _read(entry)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                form = '{"role": "assistant", "content": "text"}'
                raise ValueError(f"message {number} cannot be read ({error}); write it like {form}") from None
        found.append(entry)
    if not any(message.role == "assistant" for message in found):
        raise ValueError("there is no message of the model (role assistant)")
    return tuple(found)


def _read(entry: Any) -> Message:
    if not isinstance(entry, Mapping):
        raise TypeError(f"expected an object, got {entry!r:.80}")
    entry = trace_row(entry)
    if unknown := [str(key) for key in entry if key not in KEYS]:
        raise ValueError(f"unknown keys {', '.join(unknown)}")
    if entry.get("role") not in get_args(Role):
        raise ValueError(f"its role is one of {', '.join(get_args(Role))}, not {entry.get('role')!r}")
    if not isinstance(entry.get("content", entry.get("blocks")), str | list | tuple):
        raise TypeError("its content is a text or a list of blocks")
    return _message(entry)


def trace_messages(rows: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The inverse of `trace_dicts`, block for block; rows in the form of `Message.to_dict` are read too."""
    return [_message(row) for row in rows]


def _row(message: Message, index: int) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": message.text, "block_index": index}
    usage = {"usage_metadata": message.usage_metadata.to_dict()} if message.usage_metadata else {}
    if row["content"] and [type(block) for block in message.content] == [TextBlock]:  # as most are: it says everything
        return {**row, **usage}
    if calls := message.tool_calls:
        row["tool_calls"] = [{"id": call.id, "name": call.name, "input": dict(call.input)} for call in calls]
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            row["content"] = block.content
            row["tool_result"] = {"tool_use_id": block.tool_use_id, "is_error": block.is_error}
    if thoughts := [block for block in message.content if isinstance(block, ThinkingBlock)]:
        text = "\n\n".join(block.thinking for block in thoughts)
        row["thinking"] = {"thinking": text, "signature": thoughts[0].signature}
    row |= usage
    if _message(row) != message:
        row["blocks"] = message.to_dict()["content"]
    return row


def _message(row: Mapping[str, Any]) -> Message:
    content = row.get("blocks", row.get("content"))
    if not isinstance(content, str | None):
        return Message.from_dict({**row, "content": content})
    content, blocks = content or "", list[Block]()
    if (result := row.get("tool_result")) is not None:
        blocks.append(ToolResultBlock(result["tool_use_id"], content, result.get("is_error", False)))
    else:
        if thought := row.get("thinking"):
            blocks.append(ThinkingBlock(thought["thinking"], thought.get("signature")))
        if content:
            blocks.append(TextBlock(content))
        calls = row.get("tool_calls") or ()
        blocks += (ToolUseBlock(call["id"], call["name"], call.get("input") or {}) for call in calls)
    usage = row.get("usage_metadata")
    return Message(row["role"], blocks, UsageMetadata(**usage) if usage else None)


def trace_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A message as `trace_dicts` writes it; one in that form stays as it is. Null means a key that is not there.

    `tool_calls` with a `function`, `tool_call_id`, the role `developer`, `refusal` and what was thought are read; so is
    a missing text beside tool calls. Raises ValueError and TypeError.
    """
    row = {key: value for key, value in entry.items() if value is not None and key not in UNREAD}
    if row.get("role") == "developer":
        row["role"] = "system"
    if (thought := [row.pop(key) for key in REASONING if key in row]) and thought[0]:
        row["thinking"] = {"thinking": thought[0]}
    refusal = row.pop("refusal", "")
    if refusal and not row.get("content"):
        row["content"] = refusal
    if "tool_call_id" in row:
        row["tool_result"] = {"tool_use_id": row.pop("tool_call_id"), "is_error": False}
    if row.get("tool_calls"):
        row["tool_calls"] = [_call(call) for call in row["tool_calls"]]
        row.setdefault("content", "")
    parts = row.get("content")
    if isinstance(parts, list | tuple) and row.keys() & {"tool_calls", "tool_result", "thinking"}:
        row["content"] = "\n".join(_text(part) for part in parts)
    return row


def _call(call: Any) -> Mapping[str, Any]:
    """Arguments that are no JSON object are kept as they were written, under `arguments`."""
    if not isinstance(call, Mapping):
        raise TypeError(f"a tool call is an object, not {call!r:.80}")
    function = call.get("function")
    if function is None:
        return call
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or "id" not in call:
        raise ValueError('a tool call is {"id", "function": {"name", "arguments"}}')
    given = function.get("arguments") or {}
    try:
        read = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        read = None
    read = read if isinstance(read, Mapping) else {"arguments": given}
    return {"id": call["id"], "name": function["name"], "input": read}


def _text(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        raise ValueError("beside tool calls and answers of tools, content is a text or a list of texts")
    return str(part["text"])
