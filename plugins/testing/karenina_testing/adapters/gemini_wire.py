"""Google's Gemini API for the scripted server: https://ai.google.dev/api/generate-content.

Its errors are those of Google's APIs (https://cloud.google.com/apis/design/errors); a request that its filter refuses
is no error there, but a reply without candidates that says so in `promptFeedback`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .replies import Reply, ServedRequest, Spoken
from .wires import Wire, event, words

CALL = re.compile(r"/models/(?P<model>[^/]+):(?P<method>generateContent|streamGenerateContent)$")
ERRORS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
STOPPED: Mapping[str, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
}
SIGNATURE = "c2lnbmVk"
ROLES: Mapping[str, str] = {"model": "assistant"}
SCHEMAS = ("responseJsonSchema", "responseSchema")


class GeminiGenerateContent(Wire):
    """`POST {url}/v1beta/models/{model}:generateContent`, with the key as `x-goog-api-key` or in the query.

    `:streamGenerateContent?alt=sse` is the same in a stream.
    """

    suffix = "/v1beta/models/{model}:generateContent"

    def serves(self, path: str) -> bool:
        return CALL.search(path) is not None

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        plain, _, query = path.partition("?")
        called = CALL.search(plain)
        assert called is not None
        given = dict(part.partition("=")[::2] for part in query.split("&"))
        wanted = body.get("generationConfig") or {}
        functions = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
        tools = {one["name"]: one.get("parametersJsonSchema") or one.get("parameters") or {} for one in functions}
        choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        forced = None
        if choice.get("mode") == "ANY" and tools:
            forced = (choice.get("allowedFunctionNames") or list(tools))[0]
        fields: dict[str, Any] = {}
        if forced is None and wanted.get("responseMimeType") == "application/json":
            schema = next((wanted[name] for name in SCHEMAS if wanted.get(name)), None)
            fields = {"channel": "json_object" if schema is None else "json_schema", "schema": schema}
        system = body.get("systemInstruction")
        return ServedRequest(
            body=body,
            model=called["model"],
            messages=[
                *([{"role": "system", "content": _text(system)}] if system else []),
                *(plain for content in body.get("contents") or () for plain in _plain(content)),
            ],
            tools=tools,
            tool_name=forced,
            stream=called["method"] == "streamGenerateContent",
            temperature=wanted.get("temperature"),
            key=headers.get("x-goog-api-key") or given.get("key"),
            **fields,
        )

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        return _response(reply, list(_parts(reply)), is_last=True)

    def events(self, request: ServedRequest, reply: Spoken) -> Iterable[bytes]:
        parts: list[dict[str, Any]] = []
        for part in _parts(reply):
            pieces = words(part["text"]) if "text" in part else []
            parts += [{**part, "text": piece} for piece in pieces] if pieces else [part]
        parts = parts or [{"text": ""}]
        for number, part in enumerate(parts, 1):
            yield event(_response(reply, [part], is_last=number == len(parts)))

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        if reply.code == "content_filter":
            return 200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        status = ERRORS.get(reply.status, "INTERNAL" if reply.status >= 500 else "FAILED_PRECONDITION")
        error: dict[str, Any] = {"code": reply.status, "message": reply.failure, "status": status}
        if isinstance(reply.retry_after, int | float):
            error["details"] = [{"@type": RETRY_INFO, "retryDelay": f"{reply.retry_after:g}s"}]
        return reply.status, {"error": error}

    def wait(self, retry_after: float | str) -> Mapping[str, str]:
        """None: the wait is in the body of the error."""
        return {}

    def nothing(self, request: ServedRequest) -> Mapping[str, Any]:
        return {"candidates": [], "modelVersion": request.model}


def _plain(content: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A message in the neutral form: every answer of a tool is one of its own."""
    texts, calls = [], []
    for part in content.get("parts") or ():
        if answered := part.get("functionResponse"):
            given = answered.get("response") or {}
            text = next((str(given[name]) for name in ("output", "result", "error") if name in given), None)
            named = answered.get("id") or answered["name"]
            yield {"role": "tool", "tool_call_id": named, "content": json.dumps(given) if text is None else text}
        elif called := part.get("functionCall"):
            function = {"name": called["name"], "arguments": json.dumps(called.get("args") or {})}
            calls.append({"id": called.get("id") or called["name"], "type": "function", "function": function})
        elif "text" in part and not part.get("thought"):
            texts.append(str(part["text"]))
    role = content.get("role") or "user"
    if texts or calls:
        more = {"tool_calls": calls} if calls else {}
        yield {"role": ROLES.get(role, role), "content": "".join(texts), **more}


def _text(content: Mapping[str, Any]) -> str:
    return "".join(str(part.get("text", "")) for part in content.get("parts") or ())


def _parts(reply: Spoken) -> Iterable[dict[str, Any]]:
    if reply.thinking is not None:
        yield {"text": reply.thinking, "thought": True}
    if reply.text is not None:
        yield {"text": reply.text}
    for number, call in enumerate(reply.calls):
        signed = {"thoughtSignature": SIGNATURE} if number == 0 else {}
        yield {"functionCall": {"id": call.id, "name": call.name, "args": call.input}, **signed}


def _response(reply: Spoken, parts: list[dict[str, Any]], *, is_last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if is_last:
        candidate["finishReason"] = STOPPED.get(reply.finish_reason, reply.finish_reason)
    body: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": reply.model,
        "responseId": f"response-{reply.number}",
    }
    if is_last and (used := reply.usage) is not None:
        counts = {
            "promptTokenCount": used.input_tokens,
            "candidatesTokenCount": used.output_tokens,
            "totalTokenCount": used.total_tokens,
        }
        if used.cache_read_tokens is not None:
            counts["cachedContentTokenCount"] = used.cache_read_tokens
        body["usageMetadata"] = counts
    return body
