"""What a scripted server is asked and what it answers, in no protocol's words: requests, replies and faults."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import field, frozen

from karenina_core.values.message import ToolUseBlock, UsageMetadata

Channel = Literal["json_schema", "tool_call", "json_object", "text"]
Delivery = Literal[
    "whole", "reset", "truncated", "hang", "drip", "huge", "gzip_bomb", "stream_cut", "no_answer", "invalid_utf8"
]


def _messages(value: Iterable[Any]) -> list[dict[str, Any]]:
    return list(value)


@frozen(kw_only=True)
class ServedRequest:
    """One call of a model that was asked for. Its wire has read it; `body` is what was sent."""

    body: Mapping[str, Any]
    path: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    """By name in lower case."""
    number: int = 1
    """Which request of this server it is, counted from 1 in the order of arrival."""
    model: str = ""
    messages: list[dict[str, Any]] = field(factory=list, converter=_messages)
    """Each with a `role` (`system`, `user`, `assistant` or `tool`) and a `content`, a text or a list of parts with a
    `text`; with `tool_calls` and `tool_call_id` as in chat completions."""
    tools: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """The JSON Schema of every tool that the model is given, by name."""
    tool_name: str | None = None
    """The tool that the reply must call; None where it may choose."""
    channel: Channel = field()
    """How the request asks for structured output; `text` where it does not."""
    schema: Mapping[str, Any] | None = field()
    """The JSON Schema that the reply must fit, or None."""
    stream: bool = False
    temperature: float | None = None
    key: str | None = field(default=None, repr=False)
    """The key that was sent."""

    @channel.default
    def _channel(self) -> Channel:
        return "text" if self.tool_name is None else "tool_call"

    @schema.default
    def _schema(self) -> Mapping[str, Any] | None:
        return self.tools.get(self.tool_name) if self.tool_name is not None else None

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
    cache: tuple[int, int] | None = field(default=None, kw_only=True)
    """How many tokens of the prompt a cache has served, and how many it has taken in."""
    finish_reason: str | None = field(default=None, kw_only=True)
    """`stop`, `length`, `tool_calls` or `content_filter`, which the wire puts into its protocol's word; any other is
    sent as it is. `tool_calls` or `stop` by default."""
    model: str | None = field(default=None, kw_only=True)
    """The model that claims to have answered; the one that was asked for by default."""
    reasoning: str | None = field(default=None, kw_only=True)
    """What the model thought before it replied."""
    in_tool: bool = field(default=True, kw_only=True)
    """False: `content` is sent as text even where the request forces a tool call."""
    failure: str | None = field(default=None, kw_only=True)
    """The message of an error, for which the wire makes the body; everything about the model is ignored."""
    code: str | None = field(default=None, kw_only=True)
    """What kind of error it is beside its status. `content_filter`: the provider's filter has refused the request."""
    retry_after: float | str | None = field(default=None, kw_only=True)
    """Seconds, or a date, until the next attempt, with an error."""
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
        """An error with the protocol's body, or a proxy's page (`html`). `retry_after`: seconds or a date."""
        if not html:
            return cls(status=status, failure=message, code=code, retry_after=retry_after)
        headers = {"Content-Type": "text/html"}
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        page = f"<html><head><title>{status}</title></head><body><h1>{message}</h1></body></html>"
        return cls(status=status, headers=headers, body=page.encode())

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
        return cls(delivery="invalid_utf8")

    @classmethod
    def no_choices(cls) -> Reply:
        """Valid JSON of the protocol without a reply in it, such as an empty list of choices."""
        return cls(delivery="no_answer")

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


@frozen(kw_only=True)
class SpokenCall:
    """A tool call as the model writes it."""

    id: str
    name: str
    arguments: str
    """JSON, but for a script that says otherwise."""

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as data, for protocols that send them so; empty where they are no JSON object."""
        try:
            data = json.loads(self.arguments)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


@frozen(kw_only=True)
class Spoken:
    """A reply as a wire writes it: what the script has left open is decided."""

    number: int
    """That of the request, for ids."""
    model: str
    text: str | None
    calls: tuple[SpokenCall, ...]
    thinking: str | None
    finish_reason: str
    """`stop`, `length`, `tool_calls`, `content_filter`, or whatever the script says."""
    usage: UsageMetadata | None
    """Its `input_tokens` are those of the whole prompt, cached ones included. None: the server reports none."""


def spoken(request: ServedRequest, reply: Reply) -> Spoken:
    """What the model says to a request: content as text or as the forced tool call."""
    text = json.dumps(reply.content) if isinstance(reply.content, Mapping) else reply.content
    calls = [
        SpokenCall(id=call.id, name=call.name, arguments=json.dumps(dict(call.input))) for call in reply.tool_calls
    ]
    if (forced := request.tool_name) and reply.in_tool and text is not None and not calls:
        calls, text = [SpokenCall(id=f"call_{request.number}", name=forced, arguments=text)], None
    return Spoken(
        number=request.number,
        model=request.model if reply.model is None else reply.model,
        text=text,
        calls=tuple(calls),
        thinking=reply.reasoning,
        finish_reason=reply.finish_reason or ("tool_calls" if calls else "stop"),
        usage=_usage(request, reply, [text or "", *(call.arguments for call in calls)]),
    )


def _usage(request: ServedRequest, reply: Reply, texts: list[str]) -> UsageMetadata | None:
    if reply.usage is None:
        return None
    if reply.usage == "words":
        sent, received = len(request.text.split()), sum(len(text.split()) for text in texts)
    else:
        sent, received = reply.usage
    read, written = reply.cache or (None, None)
    return UsageMetadata(sent, received, sent + received, cache_read_tokens=read, cache_creation_tokens=written)
