"""The adapter: chat completions over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from karenina_calls.wire.endpoints import Endpoint
from karenina_calls.wire.http import HttpPort
from karenina_calls.wire.openai_wire import messages_to_wire, output_to_wire, reply_from_wire, tools_to_wire

from karenina_core.ports import (
    CallContext,
    LLMResponse,
    Message,
    OutputFormat,
    PortCapabilities,
    StreamingLLMResponse,
    Tool,
)

from .settings import endpoint_of, model_name
from .stream import Folded

CAPABILITIES = PortCapabilities(
    supports_structured_output=True,
    supports_streaming=True,
    supports_tools=True,
    reports_thinking=True,
    reports_cached_tokens=True,
    output_channels=("json_schema", "tool_call", "json_object", "text"),
)


class OpenAIEndpoint(HttpPort):
    """An `LLMPort` and `StreamingLLMPort` for one model behind an OpenAI-compatible server."""

    @cached_property
    def endpoint(self) -> Endpoint:
        return endpoint_of(self.config)

    @property
    def capabilities(self) -> PortCapabilities:
        return CAPABILITIES

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
        body = self._body(messages, output, temperature)
        if tools:
            body["tools"] = tools_to_wire(tools)
        with self.failures():
            return reply_from_wire(await self.ask(body), output)

    def astream(self, messages: Sequence[Message], *, call: CallContext | None = None) -> StreamingLLMResponse:
        """Ask once and read the reply while it arrives. Raises PortError while it is iterated over."""
        body = {"stream_options": {"include_usage": True}, **self._body(messages, None, None), "stream": True}
        return StreamingLLMResponse(self.stream(body, Folded(), reply_from_wire))

    def _body(
        self, messages: Sequence[Message], output: OutputFormat | None, temperature: float | None
    ) -> dict[str, Any]:
        config = self.config
        body: dict[str, Any] = {"model": model_name(config), "messages": messages_to_wire(messages)}
        if config.temperature is not None:
            body["temperature"] = config.temperature
        if config.max_tokens is not None:
            body["max_tokens"] = config.max_tokens
        body.update(self.endpoint.extra)
        if temperature is not None:
            body["temperature"] = temperature
        body.update(output_to_wire(output))
        return body
