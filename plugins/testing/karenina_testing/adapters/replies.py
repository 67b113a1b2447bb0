"""What a scripted server is asked and what it answers: requests, replies and faults of chat completions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from attrs import field, frozen

from karenina_core.values.message import ToolUseBlock

Channel = Literal["json_schema", "tool_call", "json_object", "text"]
Delivery = Literal["whole", "reset", "truncated", "hang", "drip", "huge", "gzip_bomb", "stream_cut"]
WORDS = re.compile(r"\s*\S+\s*|\s+")


@frozen
class ServedRequest:
    """One chat completion that was asked for."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: Mapping[str, Any]
    number: int = 1
    """Which request of this server it is, counted from 1 in the order of arrival."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", ()))

    @property
    def text(self) -> str:
        """The text of all messages, joined by newlines."""
        texts = []
        for message in self.messages:
            content = message.get("content")
            if isinstance(content, list):
                texts += [str(part.get("text", "")) for part in content if isinstance(part, Mapping)]
            else:
                texts.append(content if isinstance(content, str) else "")
        return "\n".join(texts)

    @property
    def channel(self) -> Channel:
        """How the request asks for structured output; `text` where it does not."""
        if self.body.get("tools") and self.body.get("tool_choice") not in (None, "auto", "none"):
            return "tool_call"
        kind = (self.body.get("response_format") or {}).get("type")
        return kind if kind in ("json_schema", "json_object") else "text"

    @property
    def tool_name(self) -> str | None:
        """The tool that the reply must call: the one named by `tool_choice`, else the first."""
        if self.channel != "tool_call":
            return None
        choice = self.body["tool_choice"]
        named = choice.get("function", {}).get("name") if isinstance(choice, Mapping) else None
        return str(named or self.body["tools"][0]["function"]["name"])

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the reply must fit, or None."""
        if self.channel == "json_schema":
            wanted = self.body["response_format"].get("json_schema", {}).get("schema")
            return wanted if isinstance(wanted, Mapping) else None
        for tool in self.body.get("tools") or ():
            if tool["function"]["name"] == self.tool_name:
                return dict(tool["function"].get("parameters", {}))
        return None

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True


@frozen
class Reply:
    """One answer of a scripted server: a good one by default, a fault by one of the class methods.

    NUL, lone surrogates (`"\\ud800"`) and the like may stand in `content`; they travel as JSON escapes.
    """

    content: str | Mapping[str, Any] | None = None
    """What the model says; a mapping is sent as JSON. It becomes the arguments where the request forces a tool call."""
    tool_calls: tuple[ToolUseBlock, ...] = field(default=(), converter=tuple[ToolUseBlock, ...], kw_only=True)
    status: int = field(default=200, kw_only=True)
    headers: Mapping[str, str] = field(factory=dict, kw_only=True)
    """Added to the response's own, or instead of them."""
    latency: float = field(default=0.0, kw_only=True)
    """Seconds between the request's last byte and the response's first."""
    usage: tuple[int, int] | Literal["words"] | None = field(default="words", kw_only=True)
    """Tokens of the prompt and of the reply; `words` counts words instead, None reports nothing."""
    finish_reason: str | None = field(default=None, kw_only=True)
    """`tool_calls` or `stop` by default."""
    model: str | None = field(default=None, kw_only=True)
    """The model that claims to have answered; the one that was asked for by default."""
    reasoning: str | None = field(default=None, kw_only=True)
    """Sent as `reasoning_content`."""
    in_tool: bool = field(default=True, kw_only=True)
    """False: `content` is sent as text even where the request forces a tool call."""
    body: bytes | None = field(default=None, kw_only=True)
    """These bytes are the whole body of the response; everything about the model is ignored."""
    delivery: Delivery = field(default="whole", kw_only=True)
    """How the body is sent; see the class methods."""
    amount: float = field(default=0.0, kw_only=True)
    """Seconds or megabytes, as the delivery needs it."""

    @classmethod
    def error(
        cls,
        status: int,
        message: str = "the server says no",
        *,
        retry_after: float | str | None = None,
        html: bool = False,
        code: str | None = None,
    ) -> Reply:
        """An error status with its JSON body, or a proxy's page (`html`). `retry_after`: seconds or a date."""
        headers = {"Content-Type": "text/html"} if html else {}
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        page = f"<html><head><title>{status}</title></head><body><h1>{message}</h1></body></html>"
        error = json.dumps({"error": {"message": message, "type": "scripted_error", "param": None, "code": code}})
        return cls(status=status, headers=headers, body=(page if html else error).encode())

    @classmethod
    def empty(cls) -> Reply:
        """Status 200 and no body."""
        return cls(body=b"")

    @classmethod
    def garbage(cls) -> Reply:
        """Status 200 and a body that is not JSON."""
        return cls(body=b'{"choices": [{"message": {"content": "Par')

    @classmethod
    def invalid_utf8(cls) -> Reply:
        """A reply that would be JSON if it were UTF-8."""
        return cls(body=b'{"choices": [{"message": {"role": "assistant", "content": "caf\xe9 \xff\xfe"}}]}')

    @classmethod
    def no_choices(cls) -> Reply:
        """Valid JSON of the protocol, with an empty list of choices."""
        return cls(body=b'{"id": "chatcmpl-0", "object": "chat.completion", "choices": []}')

    @classmethod
    def wrong_content_type(cls) -> Reply:
        """Status 200 and a web page, as of a login portal."""
        return cls(headers={"Content-Type": "text/html"}, body=b"<html><body><h1>Please log in</h1></body></html>")

    @classmethod
    def reset(cls) -> Reply:
        """The connection is reset (TCP RST) once the request has been read."""
        return cls(delivery="reset")

    @classmethod
    def truncated(cls, content: str = "This reply ends too early.") -> Reply:
        """The connection is closed after half of the body that `Content-Length` announced."""
        return cls(content, delivery="truncated")

    @classmethod
    def hang(cls, seconds: float) -> Reply:
        """Nothing is sent for that long; then the connection is closed. For a late answer use `latency`."""
        return cls(delivery="hang", amount=seconds)

    @classmethod
    def drip(cls, seconds: float, content: str = "slow") -> Reply:
        """A valid reply, byte by byte, with that many seconds before each byte of the body."""
        return cls(content, delivery="drip", amount=seconds)

    @classmethod
    def huge(cls, megabytes: float) -> Reply:
        """A valid reply whose text has that many megabytes (10**6 bytes). It is never held in memory as a whole."""
        return cls(delivery="huge", amount=megabytes)

    @classmethod
    def gzip_bomb(cls, megabytes: float) -> Reply:
        """Like `huge`, sent with `Content-Encoding: gzip`: about a thousandth of that travels."""
        return cls(delivery="gzip_bomb", amount=megabytes)

    @classmethod
    def stream_cut(cls, content: str = "This reply will be cut in the middle of it.") -> Reply:
        """A streamed reply whose connection closes after half of its events; without a stream, like `truncated`."""
        return cls(content, delivery="stream_cut")


class _Rendered(NamedTuple):
    """A reply as the model says it: content as text or as the forced tool call."""

    text: str | None
    calls: list[dict[str, Any]]
    finish_reason: str


def payload(request: ServedRequest, reply: Reply) -> tuple[str, bytes]:
    """The content type and the whole body of a response."""
    if reply.body is not None:
        return "application/json", reply.body
    if request.stream:
        return "text/event-stream", b"".join(stream_events(request, reply))
    rendered = _rendered(request, reply)
    message: dict[str, Any] = {"role": "assistant", "content": rendered.text}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if rendered.calls:
        message["tool_calls"] = rendered.calls
    choice = {"index": 0, "message": message, "finish_reason": rendered.finish_reason}
    body = {**_frame(request, reply, "chat.completion"), "choices": [choice]}
    if (usage := _usage(request, reply, rendered)) is not None:
        body["usage"] = usage
    return "application/json", json.dumps(body).encode()


def stream_events(request: ServedRequest, reply: Reply) -> list[bytes]:
    """The events of a streamed reply: one per word, then the finish reason, the usage where asked for, and `[DONE]`."""
    rendered = _rendered(request, reply)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in WORDS.findall(reply.reasoning or "")]
    deltas += [{"content": piece} for piece in WORDS.findall(rendered.text or "")]
    for index, call in enumerate(rendered.calls):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {"name": name, "arguments": ""}}]})
        pieces = WORDS.findall(arguments)
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": rendered.finish_reason})
    frame = _frame(request, reply, "chat.completion.chunk")
    events: list[dict[str, Any]] = [{**frame, "choices": [choice]} for choice in choices]
    usage = _usage(request, reply, rendered)
    if usage is not None and (request.body.get("stream_options") or {}).get("include_usage"):
        events.append({**frame, "choices": [], "usage": usage})
    return [*(f"data: {json.dumps(event)}\n\n".encode() for event in events), b"data: [DONE]\n\n"]


def _rendered(request: ServedRequest, reply: Reply) -> _Rendered:
    text = json.dumps(reply.content) if isinstance(reply.content, Mapping) else reply.content
    calls = [_tool_call(call.id, call.name, json.dumps(dict(call.input))) for call in reply.tool_calls]
    if (forced := request.tool_name) and reply.in_tool and text is not None and not calls:
        calls, text = [_tool_call(f"call_{request.number}", forced, text)], None
    return _Rendered(text, calls, reply.finish_reason or ("tool_calls" if calls else "stop"))


def _tool_call(identifier: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def _frame(request: ServedRequest, reply: Reply, kind: str) -> dict[str, Any]:
    model = reply.model if reply.model is not None else request.model
    return {"id": f"chatcmpl-{request.number}", "object": kind, "created": int(time.time()), "model": model}


def _usage(request: ServedRequest, reply: Reply, rendered: _Rendered) -> dict[str, int] | None:
    if reply.usage is None:
        return None
    if reply.usage == "words":
        texts = [rendered.text or "", *(call["function"]["arguments"] for call in rendered.calls)]
        sent, received = len(request.text.split()), sum(len(text.split()) for text in texts)
    else:
        sent, received = reply.usage
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
