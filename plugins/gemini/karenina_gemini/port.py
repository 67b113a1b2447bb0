"""The adapter: calls of `generateContent` over HTTP."""

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

from .settings import GENERATION, endpoint_of, method_url
from .stream import Folded
from .wire import error_of, messages_to_wire, output_to_wire, reply_from_wire, tools_to_wire

CAPABILITIES = PortCapabilities(
    supports_structured_output=True,
    supports_streaming=True,
    supports_tools=True,
    reports_thinking=True,
    reports_cached_tokens=True,
    output_channels=("json_schema", "tool_call", "json_object", "text"),
)


class GeminiGenerateContent(HttpPort):
    """An `LLMPort` and `StreamingLLMPort` for one model behind the Gemini API."""

    @cached_property
    def endpoint(self) -> Endpoint:
        return endpoint_of(self.config)

    @property
    def capabilities(self) -> PortCapabilities:
        return CAPABILITIES

    def headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self.endpoint.key} if self.endpoint.key else {}

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
        url = method_url(self.config, "streamGenerateContent", alt="sse")
        return StreamingLLMResponse(self.stream(self._body(messages), Folded(), reply_from_wire, url))

    def _body(
        self,
        messages: Sequence[Message],
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
    ) -> dict[str, Any]:
        config, extra = self.config, self.endpoint.extra
        wanted = output_to_wire(output)
        settings = {
            "temperature": config.temperature,
            "maxOutputTokens": config.max_tokens,
            **extra.get(GENERATION, {}),
            **({} if temperature is None else {"temperature": temperature}),
            **wanted.pop(GENERATION, {}),
        }
        generation = {name: value for name, value in settings.items() if value is not None}
        body = {**extra, **messages_to_wire(messages), **wanted, GENERATION: generation}
        if tools:
            body["tools"] = [*tools_to_wire(tools), *wanted.get("tools", ())]
        return body
