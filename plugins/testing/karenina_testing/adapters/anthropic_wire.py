"""Anthropic's Messages API for the scripted server: https://platform.claude.com/docs/en/api/messages.

Its errors: https://platform.claude.com/docs/en/api/errors; its streams:
https://platform.claude.com/docs/en/build-with-claude/streaming.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from karenina_core.values.message import UsageMetadata

from .replies import Reply, ServedRequest, Spoken
from .wires import BEARER, Wire, event, words

ERRORS: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Any other is an `invalid_request_error` below 500 and an `api_error` from there."""
FILTERED = "Output blocked by content filtering policy"
"""What the provider says in place of the script's message where its filter refuses: there is no error type for it."""
STOPPED: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
SIGNATURE = "c2lnbmVk"


class AnthropicMessages(Wire):
    """`POST {url}/v1/messages`, with the key as `x-api-key`, or as `Authorization: Bearer` as gateways have it."""

    suffix = "/v1/messages"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        tools = {tool["name"]: dict(tool.get("input_schema") or {}) for tool in body.get("tools") or ()}
        choice = body.get("tool_choice") or {}
        forced = choice.get("name") if choice.get("type") == "tool" else None
        if choice.get("type") == "any" and tools:
            forced = next(iter(tools))
        fields: dict[str, Any] = {}
        wanted = (body.get("output_config") or {}).get("format") or {}
        if forced is None and wanted.get("type") == "json_schema":
            fields = {"channel": "json_schema", "schema": wanted.get("schema")}
        system = body.get("system")
        return ServedRequest(
            body=body,
            model=str(body.get("model", "")),
            messages=[
                *([{"role": "system", "content": _text(system)}] if system else []),
                *(plain for message in body.get("messages") or () for plain in _plain(message)),
            ],
            tools=tools,
            tool_name=forced,
            stream=body.get("stream") is True,
            temperature=body.get("temperature"),
            key=headers.get("x-api-key") or headers.get("authorization", "").removeprefix(BEARER) or None,
            **fields,
        )

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        message = {**_message(reply), "content": list(_blocks(reply)), "stop_reason": _stopped(reply)}
        if reply.usage is not None:
            message["usage"] = _usage(reply.usage)
        return message

    def events(self, request: ServedRequest, reply: Spoken) -> Iterable[bytes]:
        usage = {} if reply.usage is None else {"usage": {**_usage(reply.usage), "output_tokens": 1}}
        start = {**_message(reply), "content": [], "stop_reason": None, **usage}
        yield _event("message_start", message=start)
        yield _event("ping")
        for index, block in enumerate(_blocks(reply)):
            empty, deltas = _pieces(block)
            yield _event("content_block_start", index=index, content_block=empty)
            yield from (_event("content_block_delta", index=index, delta=delta) for delta in deltas)
            yield _event("content_block_stop", index=index)
        delta = {"stop_reason": _stopped(reply), "stop_sequence": None}
        final = {} if reply.usage is None else {"usage": {"output_tokens": reply.usage.output_tokens}}
        yield _event("message_delta", delta=delta, **final)
        yield _event("message_stop")

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        kind = ERRORS.get(reply.status, "api_error" if reply.status >= 500 else "invalid_request_error")
        message = FILTERED if reply.code == "content_filter" else reply.failure
        return reply.status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0"}

    def nothing(self, request: ServedRequest) -> Mapping[str, Any]:
        return {"id": "msg_0", "type": "message", "role": "assistant", "content": [], "stop_reason": None}


def _plain(message: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A message in the neutral form: every tool result is one of its own."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    rest = []
    calls = []
    for block in blocks:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _text(block.get("content"))}
        elif block["type"] == "tool_use":
            function = {"name": block["name"], "arguments": json.dumps(block["input"])}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif block["type"] == "text":
            rest.append(block)
    if rest or calls:
        yield {"role": message["role"], "content": _text(rest), **({"tool_calls": calls} if calls else {})}


def _text(content: Any) -> str:
    """A text, or that of a list of blocks. The blocks of one message are one text to the model."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(block.get("text", "")) for block in content)


def _message(reply: Spoken) -> dict[str, Any]:
    about = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant", "model": reply.model}
    return {**about, "stop_sequence": None}


def _blocks(reply: Spoken) -> Iterable[dict[str, Any]]:
    if reply.thinking is not None:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": SIGNATURE}
    if reply.text is not None:
        yield {"type": "text", "text": reply.text}
    for call in reply.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}


def _pieces(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as its stream begins, and what is added to it."""
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in words(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in words(block["text"])]
    pieces = words(json.dumps(block["input"]))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _stopped(reply: Spoken) -> str:
    return STOPPED.get(reply.finish_reason, reply.finish_reason)


def _usage(used: UsageMetadata) -> dict[str, int]:
    """`input_tokens` are those after the last breakpoint of the cache: neither read from it nor written to it."""
    read, written = used.cache_read_tokens or 0, used.cache_creation_tokens or 0
    return {
        "input_tokens": used.input_tokens - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": used.output_tokens,
    }


def _event(name: str, **data: Any) -> bytes:
    return event({"type": name, **data}, name)
