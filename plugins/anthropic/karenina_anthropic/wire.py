"""The JSON of Anthropic's Messages API: requests going out, replies coming back. Nothing here opens a connection.

Documented at https://platform.claude.com/docs/en/api/messages. Breakpoints of the prompt cache:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_calls.ports.text import clean, is_nested_deeper, sanitize, text_or_none, with_texts
from karenina_calls.wire.openai_errors import CONTENT_FILTER, bad_reply, error_from_wire, raw_text
from karenina_calls.wire.openai_wire import count_of
from karenina_calls.wire.strict_schema import strict_schema

from karenina_core.errors import PortError
from karenina_core.ports import (
    LLMResponse,
    Message,
    OutputFormat,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
)

EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
ODD_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")
REDACTED = "redacted_thinking:"
"""In front of the signature of a block that only the provider can read; signatures are base64, which has no colon."""
STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Of errors that come without one, in a stream or in a batch: https://platform.claude.com/docs/en/api/errors."""
FINISHED: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons, in the words that karenina knows."""
CUT_SHORT = frozenset({"length", "content_filter", "pause_turn"})
UNSUPPORTED = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems")
"""Keywords that native structured output refuses; a description may say them."""


def messages_to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `system` and `messages`. Neighbours of one role are one message, as answers of tools have to be.

    Raises PortError (`invalid_request`) for a tool message without a tool result.
    """
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        blocks = [wire for block in _ordered(message) if (wire := _block(block)) is not None]
        if message.role == "tool" and not any(block["type"] == "tool_result" for block in blocks):
            raise PortError("a tool message needs a tool result: use Message.tool_result", kind="invalid_request")
        role = "user" if message.role == "tool" else message.role
        if role == "system":
            system += blocks
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks or role == "user":
            turns.append({"role": role, "content": blocks})
    return {**({"system": system} if system else {}), "messages": turns}


def _ordered(message: Message) -> list[Any]:
    """The blocks as the provider wants them: first what was thought, or what tools answered."""
    return sorted(message.content, key=lambda block: not isinstance(block, ThinkingBlock | ToolResultBlock))


def _block(block: Any) -> dict[str, Any] | None:
    """None for what the provider refuses: empty text, and thinking that it has not signed."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": sanitize(text)[0]} if text else None
        case ToolUseBlock(identifier, name, given):
            data = with_texts(given, lambda text: sanitize(text)[0])
            return {"type": "tool_use", "id": _identifier(identifier), "name": name, "input": data}
        case ToolResultBlock(identifier, content, is_error):
            content = sanitize(content)[0]
            wire = {"type": "tool_result", "tool_use_id": _identifier(identifier), "content": content}
            return {**wire, "is_error": True} if is_error else wire
        case ThinkingBlock(_, str(signature)) if signature.startswith(REDACTED):
            return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
        case ThinkingBlock(thinking, str(signature)):
            return {"type": "thinking", "thinking": thinking, "signature": signature}
    return None


def _identifier(given: str) -> str:
    return ODD_IN_ID.sub("_", given) or "call"


def tools_to_wire(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The `tools` field of a request."""
    empty = {"type": "object", "properties": {}}
    return [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "input_schema": dict(tool.input_schema) or empty,
        }
        for tool in tools
    ]


def output_to_wire(output: OutputFormat | None) -> dict[str, Any]:
    """The fields of a request that ask for this output: `output_config`, or one tool that must be called."""
    if output is None or output.channel not in ("json_schema", "tool_call"):
        return {}
    if output.channel == "json_schema":
        schema = _without_unsupported(strict_schema(output.schema)[0])
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    name = _tool_name(output)
    tool = {"name": name, "description": "Give the answer.", "input_schema": dict(output.schema)}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": name, "disable_parallel_tool_use": True}}


def _without_unsupported(schema: Any, *, is_schema: bool = True) -> Any:
    """The schema with bounds as words in descriptions. Names of properties are no keywords."""
    if isinstance(schema, list):
        return [_without_unsupported(item, is_schema=is_schema) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        key: _without_unsupported(value, is_schema=not (is_schema and key in ("properties", "$defs", "definitions")))
        for key, value in schema.items()
        if not (is_schema and key in UNSUPPORTED)
    }
    if is_schema and (bounds := [f"{key}: {schema[key]}" for key in UNSUPPORTED if key in schema]):
        about = [schema["description"]] if schema.get("description") else []
        kept["description"] = " ".join([*about, f"({', '.join(bounds)})"])
    return kept


def _tool_name(output: OutputFormat) -> str:
    return ODD_IN_ID.sub("_", output.name)[:64] or "answer"


def with_breakpoints(body: dict[str, Any]) -> dict[str, Any]:
    """The request with the breakpoints of the prompt cache, at most two of the four that there may be.

    They end what other requests begin with, too: the tools and the instructions; and the first text of a user message
    that has several, or, while tools are at work, the conversation so far. A message of one text has none: to write it
    into the cache costs more than to send it, and nobody would read it.
    """
    if body.get("system"):
        body = {**body, "system": _marked(body["system"])}
    elif body.get("tools"):
        body = {**body, "tools": _marked(body["tools"])}
    turns = list(body["messages"])
    if any(block["type"] == "tool_result" for turn in turns for block in turn["content"]):
        turns[-1] = {**turns[-1], "content": _marked(turns[-1]["content"])}
    else:
        for at, turn in enumerate(turns):
            texts = [block["type"] == "text" for block in turn["content"]]
            if turn["role"] == "user" and texts[:2] == [True, True]:
                first, *more = turn["content"]
                turns[at] = {**turn, "content": [*_marked([first]), *more]}
                break
    return {**body, "messages": turns}


def _marked(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The last block that may have a breakpoint has one."""
    marked = [dict(block) for block in blocks]
    for block in reversed(marked):
        if block.get("type") not in ("thinking", "redacted_thinking"):
            block |= EPHEMERAL
            break
    return marked


def error_of(status: int | None, body: Any, *, where: str = "", retry_after: float | None = None) -> PortError:
    """The error that the server reports: by the status, or by the type of an error that comes without one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    about = error if isinstance(error, Mapping) else {}
    found = error_from_wire(status or STATUSES.get(str(about.get("type"))), body, where=where, retry_after=retry_after)
    if found.kind == "invalid_request" and CONTENT_FILTER.search(str(about.get("message"))):
        found.kind = "content_filter"  # there is no type of error for it
    return found


def reply_from_wire(body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
    """The reply in a response body.

    `output` is what was asked for: with the channel `tool_call` the arguments of the call are also given as
    `structured`. Flags, beside those of `sanitize`: `refusal` (the provider has ended the reply), and
    `invalid_tool_arguments` (see `malformed_calls`).

    Raises PortError: `content_filter` where the provider withheld the text, `bad_response` for a body without a usable
    reply, or the kind of the error that the body reports.
    """
    if body.get("type") == "error":
        raise error_of(None, body)
    content = body.get("content")
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise bad_reply("the reply has no content", body)
    flags: dict[str, None] = {}
    stop, model = text_or_none(body.get("stop_reason")), text_or_none(body.get("model"))
    finish = FINISHED.get(stop or "", stop)
    calls, lost = _tool_calls(content, body, flags)
    if finish in CUT_SHORT and content and content[-1].get("type") == "tool_use":
        lost = sorted({*lost, len(calls) - 1})
    texts = [block["text"] for block in content if block.get("type") == "text" and isinstance(block.get("text"), str)]
    text = clean("".join(texts), flags)
    if finish == "content_filter":
        if not text and not calls:
            raise PortError("the provider withheld the reply", kind="content_filter", raw=raw_text(body))
        flags["refusal"] = None
    if not texts and not calls and finish != "stop":  # a model that ends without a text has given no reply
        hint = "; all tokens may have gone into thinking, raise max_tokens" if finish == "length" else ""
        raise bad_reply(f"the reply has neither text nor a tool call (stop_reason {stop!r}){hint}", body)
    if lost:
        flags["invalid_tool_arguments"] = None
    thoughts = tuple(_thoughts(content, flags))
    usage = _usage(body.get("usage"), model)
    return LLMResponse(
        content=text,
        tool_calls=calls,
        malformed_calls=lost,
        structured=_structured(calls, output),
        thinking="\n\n".join(block.thinking for block in thoughts if block.thinking) or None,
        thinking_blocks=tuple(block for block in thoughts if block.signature),
        usage=usage or UsageMetadata(model=model),
        usage_unavailable=usage is None,
        finish_reason=finish,
        actual_model=model,
        is_partial=finish in CUT_SHORT,
        flags=tuple(flags),
        raw=body,
    )


def _tool_calls(
    content: Sequence[Mapping[str, Any]], body: Mapping[str, Any], flags: dict[str, None]
) -> tuple[tuple[ToolUseBlock, ...], list[int]]:
    """The tool calls of a reply, and the places of those whose arguments cannot be read."""
    calls: list[ToolUseBlock] = []
    lost: list[int] = []
    for block in content:
        if block.get("type") != "tool_use":
            continue
        if not isinstance(name := block.get("name"), str):
            raise bad_reply("a tool call of the reply has no name", body)
        given = block.get("input")
        if not isinstance(given, Mapping) or is_nested_deeper(given):
            lost.append(len(calls))
            given = {}
        data = with_texts(given, lambda text: clean(text, flags))
        identifier = clean(str(block.get("id") or f"call_{len(calls)}"), flags)
        calls.append(ToolUseBlock(identifier, clean(name, flags), data))
    return tuple(calls), lost


def _thoughts(content: Sequence[Mapping[str, Any]], flags: dict[str, None]) -> Iterator[ThinkingBlock]:
    for block in content:
        if block.get("type") == "redacted_thinking":
            yield ThinkingBlock("", f"{REDACTED}{block.get('data') or ''}")
        elif block.get("type") == "thinking":
            signature = block.get("signature")
            signed = signature if isinstance(signature, str) and signature else None
            yield ThinkingBlock(clean(str(block.get("thinking") or ""), flags), signed)


def _structured(calls: Sequence[ToolUseBlock], output: OutputFormat | None) -> str | None:
    if output is None or output.channel != "tool_call" or not calls:
        return None
    named = [call for call in calls if call.name == _tool_name(output)]
    return json.dumps((named or calls)[0].input, ensure_ascii=False)


def _usage(usage: Any, model: str | None) -> UsageMetadata | None:
    """The provider's `input_tokens` are those that the cache has neither served nor taken in; karenina's are all."""
    if not isinstance(usage, Mapping):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = (count_of(usage.get(name)) for name in names)
    if sent is None and received is None:
        return None
    taken, given = (sent or 0) + (read or 0) + (written or 0), received or 0
    return UsageMetadata(
        taken, given, taken + given, cache_read_tokens=read, cache_creation_tokens=written, model=model
    )
