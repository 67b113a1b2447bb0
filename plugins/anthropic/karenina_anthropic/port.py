"""The adapter: calls of the Messages API over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from karenina_calls.wire.endpoints import Endpoint
from karenina_calls.wire.http import HttpPort

from karenina_core.errors import PortError
from karenina_core.ports import (
    CallContext,
    LLMResponse,
    Message,
    OutputFormat,
    PortCapabilities,
    StreamingLLMResponse,
    Tool,
)

from .settings import CACHING, endpoint_of, headers_of, model_name
from .stream import Folded
from .wire import error_of, messages_to_wire, output_to_wire, reply_from_wire, tools_to_wire, with_breakpoints

DEFAULT_MAX_TOKENS = 8192
"""The API wants a limit. Chosen, not measured: an answer of ten pages, and no more than older models may write."""
CAPABILITIES = PortCapabilities(
    supports_structured_output=True,
    supports_streaming=True,
    supports_tools=True,
    reports_thinking=True,
    reports_cached_tokens=True,
    output_channels=("json_schema", "tool_call", "text"),
)


class AnthropicMessages(HttpPort):
    """An `LLMPort` and `StreamingLLMPort` for one model behind the Messages API."""

    @cached_property
    def endpoint(self) -> Endpoint:
        return endpoint_of(self.config)

    @property
    def capabilities(self) -> PortCapabilities:
        return CAPABILITIES

    def headers(self) -> dict[str, str]:
        return headers_of(self.config, self.endpoint.key)

    def error_from(
        self, status: int | None, body: Any, *, where: str = "", retry_after: float | None = None
    ) -> PortError:
        return error_of(status, body, where=where, retry_after=retry_after)

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Ask once. `call` is not sent. Raises PortError."""
        body = self._body(messages, output, temperature, tools)
        with self.failures():
            return reply_from_wire(await self.ask(body), output)

    def astream(self, messages: Sequence[Message], *, call: CallContext | None = None) -> StreamingLLMResponse:
        """Ask once and read the reply while it arrives. Raises PortError while it is iterated over."""
        body = {**self._body(messages), "stream": True}
        return StreamingLLMResponse(self.stream(body, Folded(), reply_from_wire))

    def _body(
        self,
        messages: Sequence[Message],
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
    ) -> dict[str, Any]:
        config, extra = self.config, self.endpoint.extra
        body: dict[str, Any] = {
            "model": model_name(config),
            "max_tokens": config.max_tokens or DEFAULT_MAX_TOKENS,
            **messages_to_wire(messages),
        }
        if config.temperature is not None:
            body["temperature"] = config.temperature
        body.update(extra)
        if temperature is not None:
            body["temperature"] = temperature
        wanted = output_to_wire(output)
        if isinstance(more := extra.get("output_config"), dict) and "output_config" in wanted:
            wanted["output_config"] = {**more, **wanted["output_config"]}
        body.update(wanted)
        if tools:
            body["tools"] = [*tools_to_wire(tools), *wanted.get("tools", ())]
        if not config.extra_kwargs.get(CACHING, True):
            return body
        return with_breakpoints(body)
