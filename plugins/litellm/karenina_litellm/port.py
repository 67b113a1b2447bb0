"""`LiteLLM`: one model behind litellm, and what litellm gives back as a reply of karenina."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, TypeVar

from attrs import evolve, field, frozen
from karenina_calls.ports.text import sanitize
from karenina_calls.secrets.known_secrets import secrets_among
from karenina_calls.wire.endpoints import DEFAULT_TIMEOUT, OWN_SETTINGS, max_response_bytes
from karenina_calls.wire.library_errors import known_secrets, port_error
from karenina_calls.wire.openai_wire import messages_to_wire, output_to_wire, reply_from_wire, tools_to_wire

from karenina_core.errors import ConfigError, PortError, Problem
from karenina_core.ports.values import (
    CallContext,
    LLMResponse,
    OutputFormat,
    PortCapabilities,
    StreamingLLMResponse,
    Tool,
)
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, ThinkingBlock

from . import library
from .listed_prices import listed_prices
from .routes import Route, problems, route

T = TypeVar("T")
BACKSTOP_SECONDS = 5.0
"""litellm's own time limit, which a dripping server resets with every byte, comes after that of this adapter."""
NO_KEY = "no-key"
"""Sent to a server of the user's choice for which no key is configured: litellm would send a key of the environment."""
UNKNOWN_PROVIDER = (
    "litellm knows no provider for {!r}: write the name as PROVIDER/NAME, such as openai/gpt-4.1-mini, or give the "
    "model its endpoint_base_url or another interface (on the command line --parsing-base-url and --parsing-interface, "
    "or --answering-... for one that answers)"
)
ONE_PLAIN_CALL = {"max_retries": 0, "num_retries": 0, "drop_params": False, "caching": False, "no-log": True}
"""One request per call, nothing left out of it, no cache, no callbacks."""


@frozen
class _Opened:
    """What a port has while it is open."""

    litellm: Any
    loop: asyncio.AbstractEventLoop
    client: Any
    secrets: tuple[str, ...] = field(repr=False)
    arguments: dict[str, Any] = field(repr=False)
    """Those of every call: the route and the key."""


class LiteLLM:
    """An `LLMPort` and `StreamingLLMPort` for one model.

    A port serves one event loop. It is opened by `aopen` or by its first call, and may be opened again after `aclose`.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._seconds = config.request_timeout or DEFAULT_TIMEOUT
        self._opened: _Opened | None = None

    @cached_property
    def _route(self) -> Route:
        return route(self._config)

    @cached_property
    def _limit(self) -> int:
        return max_response_bytes(self._config)

    @property
    def capabilities(self) -> PortCapabilities:
        """All channels are offered: what litellm's tables say about models that they do not list is wrong as a rule."""
        return PortCapabilities(
            supports_structured_output=True,
            supports_streaming=True,
            supports_tools=True,
            output_channels=("json_schema", "tool_call", "json_object", "text"),
            reports_cost=True,
            reports_thinking=True,
            reports_cached_tokens=True,
        )

    @property
    def token_prices(self) -> tuple[float, float] | None:
        """What litellm says that a token in and out costs; None where it lists no price of the model. Its list is read
        without importing it."""
        return listed_prices(self._route.model)

    async def aopen(self) -> None:
        """Import litellm and prepare connections.

        Raises ConfigError where the configuration cannot work, AdapterUnavailableError where litellm is missing or
        broken.
        """
        await self._open()

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        """One request. Raises PortError."""
        opened = await self._open()
        request = self._request(opened, messages, output, temperature)
        if tools:
            request |= {"tools": tools_to_wire(tools), "_skip_mcp_handler": True}
        deadline = opened.loop.time() + self._seconds
        response = await self._within(deadline, opened, opened.litellm.acompletion(**request))
        return reply(opened.litellm, response, request, self._limit, output)

    def astream(self, messages: Sequence[Message], *, call: CallContext | None = None) -> StreamingLLMResponse:
        """One request whose reply arrives in pieces. Iterating raises PortError."""
        return StreamingLLMResponse(self._pieces(messages))

    async def aclose(self) -> None:
        """Close the connections of this port. The last port to close also closes those that litellm shares."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if opened.client is not None:
            await opened.client.close()
        await library.leave(self, opened.litellm)

    async def _open(self) -> _Opened:
        loop = asyncio.get_running_loop()
        if self._opened is None:
            if found := list(problems(self._config)):
                raise ConfigError(found)
            litellm = await library.load()
            asked, named = self._route, self._config.extra_kwargs.get("custom_llm_provider")
            if not library.is_provided(litellm, asked.model, asked.base_url, named):
                where = "model_provider" if self._config.model_provider else "model_name"
                raise ConfigError([Problem(where, UNKNOWN_PROVIDER.format(asked.model))])
            self._opened = self._opened or self._prepared(litellm, loop)
        if self._opened.loop is not loop:
            raise PortError(f"{self._route} was opened in another event loop; make a port for each loop", kind="plugin")
        return self._opened

    def _prepared(self, litellm: Any, loop: asyncio.AbstractEventLoop) -> _Opened:
        arguments: dict[str, Any] = {"model": self._route.model}
        key = (self._config.api_key() or "").strip() or None
        secrets = known_secrets(key, *secrets_among(self._config.extra_kwargs))
        client, base = None, self._route.base_url
        if base:
            key = key or NO_KEY
            arguments["api_base"] = base
            if self._route.provider in ("openai", *litellm.openai_compatible_providers):
                client = arguments["client"] = library.endpoint_client(base, self._route.query, key)
        if key:
            arguments["api_key"] = key
        library.enter(self)
        return _Opened(litellm, loop, client, secrets, arguments)

    def _request(
        self,
        opened: _Opened,
        messages: Sequence[Message],
        output: OutputFormat | None = None,
        temperature: float | None = None,
    ) -> dict[str, Any]:
        config = self._config
        limits = {
            "temperature": config.temperature if temperature is None else temperature,
            "max_tokens": config.max_tokens,
        }
        wanted = output_to_wire(output)
        if "tools" in wanted:
            # litellm would look for tools that its own gateway serves, which needs packages that it does not install.
            wanted["_skip_mcp_handler"] = True
        return {
            **{name: deepcopy(value) for name, value in config.extra_kwargs.items() if name not in OWN_SETTINGS},
            **opened.arguments,
            **ONE_PLAIN_CALL,
            **{name: value for name, value in limits.items() if value is not None},
            **wanted,
            "messages": messages_with_thinking(messages, self._route.provider),
            "timeout": self._seconds + BACKSTOP_SECONDS,
        }

    async def _within(self, deadline: float, opened: _Opened, awaitable: Awaitable[T]) -> T:
        """Await something of litellm's. Raises PortError and nothing else."""
        before = sys.exception()
        try:
            async with asyncio.timeout_at(deadline):
                return await awaitable
        except TimeoutError:
            late = f"{self._route}: no complete reply within {self._seconds:g} s; request_timeout gives it longer"
            raise PortError(late, kind="timeout") from None
        except Exception as error:  # what litellm raises has no common base
            # Not chained: texts of the original may hold the key.
            raise port_error(error, where=str(self._route), secrets=opened.secrets, before=before) from None

    async def _pieces(self, messages: Sequence[Message]) -> AsyncIterator[str | LLMResponse]:
        opened = await self._open()
        request = {**self._request(opened, messages), "stream": True, "stream_options": {"include_usage": True}}
        deadline = opened.loop.time() + self._seconds
        stream: Any = await self._within(deadline, opened, opened.litellm.acompletion(**request))
        received = 0
        try:
            while (chunk := await self._within(deadline, opened, anext(stream, None))) is not None:
                delta = chunk.choices[0].delta if chunk.choices else None
                text = getattr(delta, "content", None)
                piece = text if isinstance(text, str) else ""
                received += len(piece.encode("utf-8", "replace"))
                if received > self._limit:
                    raise too_large(self._limit)
                if piece:
                    yield sanitize(piece)[0]
        finally:
            await stream.aclose()
        yield streamed_reply(opened.litellm, stream, request, self._limit)


PRICES = ("input_cost_per_token", "input_cost_per_second", "output_cost_per_token", "output_cost_per_second")
COUNTS = ("prompt_tokens", "completion_tokens")
SIGNING = frozenset({"anthropic", "azure_ai", "bedrock", "bedrock/converse", "vertex_ai"})
"""litellm's providers of Claude. Others may refuse a request with thinking in it."""
REDACTED = "redacted_thinking:"
"""In front of the signature of a block that only the provider can read; signatures are base64, which has no colon."""


def reply(
    litellm: Any, response: Any, request: Mapping[str, Any], limit: int, output: OutputFormat | None = None
) -> LLMResponse:
    """The reply in a `litellm.ModelResponse`, of at most `limit` bytes of text.

    Raises PortError: `too_large` (litellm has read the whole body by then), `bad_response` where there is neither text
    nor a tool call, `content_filter` where the provider withheld the text.
    """
    body = response.model_dump(warnings=False)
    if _text_bytes(body) > limit:
        raise too_large(limit)
    usage = body.get("usage") or {}
    if not any(usage.get(count) for count in COUNTS):  # litellm's form of a reply without any usage
        body["usage"] = None
    answer = evolve(reply_from_wire(body, output), thinking_blocks=thinking_blocks(body))
    if answer.usage_unavailable:
        return answer
    return evolve(answer, usage=evolve(answer.usage, cost_usd=_cost(litellm, response, request, answer.actual_model)))


def streamed_reply(litellm: Any, stream: Any, request: Mapping[str, Any], limit: int) -> LLMResponse:
    """The reply that a finished `litellm.CustomStreamWrapper` gave in pieces.

    litellm ends a stream that broke off like one that is complete; the difference is that no finish reason arrived.

    Raises PortError like `reply`, and `connection` for a stream that broke off.
    """
    if not stream.chunks:
        raise PortError("the server sent no stream", kind="bad_response")
    if not (stream.received_finish_reason or stream.intermittent_finish_reason):
        raise PortError("the stream ended before the reply was complete", kind="connection")
    try:
        whole = litellm.stream_chunk_builder(stream.chunks)
    except litellm.APIError as error:
        raise PortError(f"the streamed reply cannot be put together: {error}", kind="bad_response") from error
    if not any(getattr(chunk, "usage", None) for chunk in stream.chunks):
        whole.usage = None  # litellm counts tokens of its own where the server reports none
    whole.model = (getattr(whole, "_hidden_params", None) or {}).get("provider_response_model") or whole.model
    return reply(litellm, whole, request, limit)


def too_large(limit: int) -> PortError:
    """The error for a reply with more than `limit` bytes of text."""
    message = f"the reply has more than {limit} bytes of text; allow more with extra_kwargs max_response_bytes"
    return PortError(message, kind="too_large")


def _text_bytes(body: Mapping[str, Any]) -> int:
    """Bytes of text in the first choice, tool arguments and reasoning included."""
    choices = body.get("choices") or [{}]
    message = choices[0].get("message") or {}
    texts = [message.get("content"), message.get("reasoning_content")]
    texts += [(call.get("function") or {}).get("arguments") for call in message.get("tool_calls") or ()]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))


def _cost(litellm: Any, response: Any, request: Mapping[str, Any], actual: str | None) -> float | None:
    """US dollars, or None where litellm knows no price.

    litellm says 0 for models that it knows by a naming pattern only; that counts where a price of 0 is written down.
    """
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    if not isinstance(cost, int | float) or cost < 0:
        return None
    if cost or any(name in request for name in PRICES):
        return float(cost)
    asked = str(request["model"])
    provider, _, name = asked.partition("/")
    entries = (litellm.model_cost.get(key) or {} for key in (asked, name, actual, f"{provider}/{actual}"))
    return 0.0 if any(price in entry for entry in entries for price in PRICES) else None


def thinking_blocks(body: Mapping[str, Any]) -> tuple[ThinkingBlock, ...]:
    """The signed thinking in a reply of litellm; empty where nothing is signed."""
    message = ((body.get("choices") or [{}])[0] or {}).get("message") or {}
    found = []
    for block in message.get("thinking_blocks") or ():
        if isinstance(block, Mapping) and block.get("type") == "redacted_thinking":
            found.append(ThinkingBlock("", f"{REDACTED}{block.get('data') or ''}"))
        elif isinstance(block, Mapping) and isinstance(signature := block.get("signature"), str) and signature:
            found.append(ThinkingBlock(sanitize(str(block.get("thinking") or ""))[0], signature))
    return tuple(found)


def messages_with_thinking(messages: Sequence[Message], provider: str | None) -> list[dict[str, Any]]:
    """The `messages` of a request, with what was thought where the provider has signed it and wants it back."""
    if provider not in SIGNING:
        return messages_to_wire(messages)
    wires = []
    for message in messages:
        signed = [block for block in message.content if isinstance(block, ThinkingBlock) and block.signature]
        for wire in messages_to_wire([message]):
            kept = {"thinking_blocks": list(map(_to_wire, signed))} if signed and wire["role"] == "assistant" else {}
            wires.append({**wire, **kept})
    return wires


def _to_wire(block: ThinkingBlock) -> dict[str, Any]:
    signature = block.signature or ""
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": block.thinking, "signature": signature}
