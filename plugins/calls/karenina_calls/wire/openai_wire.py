"""The JSON of the OpenAI chat completions protocol: messages and requests going out, replies coming back.

Adapters that speak this shape share it. Nothing here opens a connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard

from karenina_vocabulary.traces import ERROR

from karenina_core.errors import PortError
from karenina_core.ports.values import LLMResponse, OutputFormat, Tool
from karenina_core.values.message import Message, TextBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

from ..ports.text import clean, is_nested_deeper, sanitize, text_or_none, with_texts
from .openai_errors import STRICT_JSON, bad_reply, error_from_wire, raw_text
from .strict_schema import strict_schema

FUNCTION_NAME = re.compile(r"[^a-zA-Z0-9_-]")
CUT_SHORT = frozenset({"length", "content_filter"})


def messages_to_wire(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The `messages` field of a chat completions request.

    Thinking blocks are left out and each tool result becomes a message of its own. The protocol has no error flag for
    tool results: `[ERROR]` and a space precede those that are errors. Lone surrogates are replaced, because UTF-8
    cannot carry them.

    Raises PortError (`invalid_request`) for a tool message without a tool result.
    """
    return [wire for message in messages for wire in _message_to_wire(message)]


def _message_to_wire(message: Message) -> list[dict[str, Any]]:
    if [type(block) for block in message.content] == [TextBlock] and message.role != "tool":  # as most are
        return [{"role": message.role, "content": sanitize(message.text)[0]}]
    wires: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": block.tool_use_id,
            "content": sanitize(f"{ERROR if block.is_error else ''}{block.content}")[0],
        }
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    if message.role == "tool":
        if not wires:
            raise PortError("a tool message needs a tool result: use Message.tool_result", kind="invalid_request")
        return wires
    text, calls = sanitize(message.text)[0], message.tool_calls
    if message.role == "assistant" and calls:
        asked = [(call.id, call.name, sanitize(json.dumps(dict(call.input), ensure_ascii=False))[0]) for call in calls]
        made = [{"id": i, "type": "function", "function": {"name": n, "arguments": given}} for i, n, given in asked]
        return [*wires, {"role": "assistant", "content": text or None, "tool_calls": made}]
    if any(isinstance(block, TextBlock) for block in message.content) or not wires:
        wires.append({"role": message.role, "content": text})
    return wires


def tools_to_wire(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The `tools` field of a chat completions request."""
    empty = {"type": "object", "properties": {}}
    return [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": dict(t.input_schema) or empty},
        }
        for t in tools
    ]


def output_to_wire(output: OutputFormat | None) -> dict[str, Any]:
    """The fields of a chat completions request that ask for this output; none for `text` and for None.

    `json_schema` sets `strict` where the schema has a strict form; otherwise it goes as it is, `strict` false.
    """
    if output is None or output.channel == "text":
        return {}
    if output.channel == "json_object":
        return {"response_format": {"type": "json_object"}}
    name = _function_name(output)
    if output.channel == "tool_call":
        function = {"name": name, "description": "Give the answer.", "parameters": dict(output.schema)}
        choice = {"type": "function", "function": {"name": name}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    schema, strict = _strict(json.dumps(output.schema))
    wanted = {"name": name, "schema": schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


@lru_cache(maxsize=256)
def _strict(schema: str) -> tuple[Mapping[str, Any], bool]:
    """`strict_schema` of a text: every judgment of a question asks with the same schema, and nothing changes it."""
    return strict_schema(json.loads(schema))


def _function_name(output: OutputFormat) -> str:
    return FUNCTION_NAME.sub("_", output.name)[:64] or "answer"


def reply_from_wire(body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
    """The reply in the body of a chat completions response.

    `output` is what was asked for: with the channel `tool_call` the arguments of the call are also given as
    `structured`, as they came. Flags, beside those of `sanitize`: `refusal` (the content is the model's refusal),
    `invalid_tool_arguments` (the arguments of some tool call are no JSON object, nested too deeply, or cut off before
    they began; its `input` is empty, and `malformed_calls` says which it is).

    A model that stops by itself without a text gives an empty one.

    Raises PortError: `content_filter` where the provider withheld the text, `bad_response` for a body without a usable
    reply, or the kind of the error that the body reports.
    """
    if "choices" not in body and body.get("error"):
        raise error_from_wire(None, body)
    choice = _first_choice(body)
    message = choice["message"]
    finish = text_or_none(choice.get("finish_reason"))
    flags: dict[str, None] = {}
    calls, arguments = _tool_calls(message, body, flags)
    lost = [place for place, text in enumerate(arguments) if _input(text, {}) is None]
    if finish in CUT_SHORT and arguments and not arguments[-1].strip():  # elsewhere no text at all is readable
        lost.append(len(arguments) - 1)
    if lost:
        flags["invalid_tool_arguments"] = None
    content = _content(message, flags)
    if finish == "content_filter" and not content and not calls:
        raise PortError("the provider's content filter withheld the reply", kind="content_filter", raw=raw_text(body))
    if content is None and not calls and finish != "stop":  # a model that ends without a text has given no reply
        hint = "; all tokens may have gone into reasoning, raise max_tokens" if finish == "length" else ""
        raise bad_reply(f"the reply has neither text nor a tool call (finish_reason {finish!r}){hint}", body)
    thinking = message.get("reasoning_content") or message.get("reasoning")
    model = text_or_none(body.get("model"))
    usage = _usage(body.get("usage"), model)
    return LLMResponse(
        content=clean(content or "", flags),
        tool_calls=calls,
        malformed_calls=lost,
        structured=_structured(calls, arguments, output, flags),
        thinking=clean(thinking, flags) if isinstance(thinking, str) and thinking else None,
        usage=usage or UsageMetadata(model=model),
        usage_unavailable=usage is None,
        finish_reason=finish,
        actual_model=model,
        is_partial=finish in CUT_SHORT,
        flags=tuple(flags),
        raw=body,
    )


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise bad_reply("the reply has no choices", body)
    choice = choices[0]
    if not is_table(choice) or not is_table(choice.get("message")):
        raise bad_reply("the first choice of the reply has no message", body)
    return choice


def _content(message: Mapping[str, Any], flags: dict[str, None]) -> str | None:
    """The text of a message, whose content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(text for text in texts if isinstance(text, str)) if texts else None
    if isinstance(content, str):
        if content or not message.get("refusal"):
            return content
    elif content is not None:
        raise bad_reply(f"the content of the reply is a {type(content).__name__}, not text", message)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        flags["refusal"] = None
        return refusal
    return None


def _tool_calls(
    message: Mapping[str, Any], body: Mapping[str, Any], flags: dict[str, None]
) -> tuple[tuple[ToolUseBlock, ...], tuple[str, ...]]:
    """The tool calls of a message, and the arguments of each as they came."""
    calls, texts = [], []
    wires = message.get("tool_calls") or []
    if not isinstance(wires, list):
        raise bad_reply("the tool calls of the reply are not a list", body)
    for number, call in enumerate(wires):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise bad_reply("a tool call of the reply has no function name", body)
        given = function.get("arguments")
        text = given if isinstance(given, str) else _as_text(given)
        identifier = clean(str(call.get("id") or f"call_{number}"), flags)
        calls.append(ToolUseBlock(identifier, clean(function["name"], flags), _input(text, flags) or {}))
        texts.append(text)
    return tuple(calls), tuple(texts)


def _as_text(arguments: Any) -> str:
    """Arguments that some servers send as data; no JSON where they are too much for the JSON module."""
    try:
        return "" if arguments is None else json.dumps(arguments)
    except RecursionError:
        return "["


def _input(text: str, flags: dict[str, None]) -> dict[str, Any] | None:
    """The arguments of a call; None where they cannot be read."""
    try:
        data = STRICT_JSON.decode(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or is_nested_deeper(data):
        return None
    cleaned: dict[str, Any] = with_texts(data, lambda part: clean(part, flags))
    return cleaned


def _structured(
    calls: Sequence[ToolUseBlock], arguments: Sequence[str], output: OutputFormat | None, flags: dict[str, None]
) -> str | None:
    if output is None or output.channel != "tool_call" or not calls:
        return None
    named = [text for call, text in zip(calls, arguments, strict=True) if call.name == _function_name(output)]
    return clean((named or arguments)[0], flags)


def _usage(usage: Any, model: str | None) -> UsageMetadata | None:
    if not is_table(usage):
        return None
    sent, received = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    if sent is None and received is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = count_of(details.get("cached_tokens")) if is_table(details) else None
    total = count_of(usage.get("total_tokens"))
    return UsageMetadata(
        input_tokens=sent or 0,
        output_tokens=received or 0,
        total_tokens=(sent or 0) + (received or 0) if total is None else total,
        cache_read_tokens=cached,
        cache_creation_tokens=count_of(usage.get("cache_creation_input_tokens")),
        model=model,
    )


def count_of(value: Any) -> int | None:
    """A number of tokens or calls as a provider reports it; None for anything else."""
    is_whole = type(value) is int or (isinstance(value, int) and not isinstance(value, bool))
    return value if is_whole and value >= 0 else None


def is_table(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is a mapping; to ask about an abstract class takes long."""
    return type(value) is dict or (value is not None and isinstance(value, Mapping))
