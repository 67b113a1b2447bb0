"""Protocols of models as a scripted server speaks them, each a value: how a request is read and how a reply is written.

`ChatCompletions` is that of OpenAI (https://platform.openai.com/docs/api-reference/chat).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .replies import Reply, ServedRequest, Spoken

WORDS = re.compile(r"\s*\S+\s*|\s+")
BEARER = "Bearer "


class Wire:
    """A protocol in which models are asked by `POST` with a JSON object, and reply with one.

    A protocol has `suffix`, `read` and `write` of its own; the rest has defaults. What `read` raises is answered with
    status 500 and raised again at the end of the server's `with` block.
    """

    base = ""
    """The path of a base URL, such as `/v1`: the URL of the server ends in it."""
    suffix = "/"
    """How the paths of requests end. Whatever stands before it is served, too."""

    def serves(self, path: str) -> bool:
        """Whether calls are made at this path, which has no query."""
        return path.endswith(self.suffix)

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        """What is asked. `headers` are by name in lower case."""
        raise NotImplementedError(f"{type(self).__name__} needs a read method")

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        """The body of a reply."""
        raise NotImplementedError(f"{type(self).__name__} needs a write method")

    def events(self, request: ServedRequest, reply: Spoken) -> Iterable[bytes]:
        """The pieces of a streamed reply (`text/event-stream`), for requests that `read` gives `stream=True`."""
        yield event(self.write(request, reply))

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of an error, by the reply's `status`, `failure`, `code` and `retry_after`."""
        return reply.status, {"error": {"message": reply.failure, "code": reply.code}}

    def wait(self, retry_after: float | str) -> Mapping[str, str]:
        """The headers that ask the client to wait."""
        return {"Retry-After": str(retry_after)}

    def nothing(self, request: ServedRequest) -> Mapping[str, Any]:
        """A body that is a reply of the protocol and has no answer in it."""
        return {}


class ChatCompletions(Wire):
    """`POST {url}/chat/completions`, with the key as `Authorization: Bearer`."""

    base = "/v1"
    suffix = "/chat/completions"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        functions = [tool["function"] for tool in body.get("tools") or ()]
        choice = body.get("tool_choice")
        forced = None
        if functions and choice not in (None, "auto", "none"):
            named = choice.get("function", {}).get("name") if isinstance(choice, Mapping) else None
            forced = str(named or functions[0]["name"])
        fields: dict[str, Any] = {}
        wanted = body.get("response_format") or {}
        if forced is None and wanted.get("type") in ("json_schema", "json_object"):
            fields["channel"] = wanted["type"]
            schema = (wanted.get("json_schema") or {}).get("schema")
            fields["schema"] = schema if isinstance(schema, Mapping) else None
        authorization = headers.get("authorization", "")
        return ServedRequest(
            body=body,
            model=str(body.get("model", "")),
            messages=body.get("messages", ()),
            tools={function["name"]: dict(function.get("parameters", {})) for function in functions},
            tool_name=forced,
            stream=body.get("stream") is True,
            temperature=body.get("temperature"),
            key=authorization.removeprefix(BEARER) if authorization.startswith(BEARER) else None,
            **fields,
        )

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.thinking is not None:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = _tool_calls(reply)
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
        body = {**_frame(reply, "chat.completion"), "choices": [choice]}
        return body if reply.usage is None else {**body, "usage": _usage(reply)}

    def events(self, request: ServedRequest, reply: Spoken) -> Iterable[bytes]:
        """One per word, then the finish reason, the usage where asked for, and `[DONE]`."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in words(reply.thinking)]
        deltas += [{"content": piece} for piece in words(reply.text)]
        for index, call in enumerate(_tool_calls(reply)):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            deltas.append({"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]})
            pieces = words(arguments)
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": reply.finish_reason})
        frame = _frame(reply, "chat.completion.chunk")
        yield from (event({**frame, "choices": [choice]}) for choice in choices)
        if reply.usage is not None and (request.body.get("stream_options") or {}).get("include_usage"):
            yield event({**frame, "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        error = {"message": reply.failure, "type": "scripted_error", "param": None, "code": reply.code}
        return reply.status, {"error": error}

    def nothing(self, request: ServedRequest) -> Mapping[str, Any]:
        return {"id": "chatcmpl-0", "object": "chat.completion", "choices": []}


def words(text: str | None) -> list[str]:
    """A text in the pieces in which it is streamed."""
    return WORDS.findall(text or "")


def event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """A server-sent event."""
    first = "" if name is None else f"event: {name}\n"
    return f"{first}data: {json.dumps(data)}\n\n".encode()


def _tool_calls(reply: Spoken) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]


def _frame(reply: Spoken, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": int(time.time()), "model": reply.model}


def _usage(reply: Spoken) -> dict[str, Any]:
    assert reply.usage is not None
    used = reply.usage
    counts: dict[str, Any] = {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.total_tokens,
    }
    if used.cache_read_tokens is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": used.cache_read_tokens}
    return counts
