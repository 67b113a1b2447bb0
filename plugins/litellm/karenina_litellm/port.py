"""`LiteLLM`: one model behind litellm."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, TypeVar

from attrs import field, frozen
from karenina_calls.ports.text import sanitize
from karenina_calls.secrets.known_secrets import secrets_among
from karenina_calls.wire.endpoints import OWN_SETTINGS, max_response_bytes
from karenina_calls.wire.openai_wire import output_to_wire, tools_to_wire

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
from karenina_core.values.message import Message

from . import library
from .faults import known_secrets, port_error
from .replies import messages_with_thinking, reply, streamed_reply, too_large
from .routes import Route, problems, route

T = TypeVar("T")
DEFAULT_SECONDS = 120.0
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
        self._seconds = config.request_timeout or DEFAULT_SECONDS
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
            tells_cost=True,
        )

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
