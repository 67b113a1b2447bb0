"""The three ports: what an adapter implements. Each is small; everything else is built on top of them in the core.

An adapter does nothing heavy when it is constructed. Where it has an `async aopen()`, that is awaited once before the
first call; `async aclose()` may be called any number of times. Retries, time limits and accounting are the core's work:
an adapter makes one attempt and raises `PortError` with the right kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ..values.message import Message
from .values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
    StreamingLLMResponse,
    Tool,
)


@runtime_checkable
class LLMPort(Protocol):
    """One call to a language model."""

    @property
    def capabilities(self) -> PortCapabilities: ...

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Send the messages, make one attempt. `temperature` overrides that of the model's configuration.

        Raises PortError.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class StreamingLLMPort(LLMPort, Protocol):
    """A model whose reply can be read while it arrives."""

    def astream(self, messages: Sequence[Message], *, call: CallContext | None = None) -> StreamingLLMResponse: ...


class ToolCallingLLMPort(LLMPort, Protocol):
    """A model that can be given tools; its capabilities say `supports_tools`."""

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        """The same, with tools that the model may call: the reply then has `tool_calls`. Raises PortError."""
        ...


@runtime_checkable
class ParserPort(Protocol):
    """Turns text into data of a given JSON Schema."""

    @property
    def capabilities(self) -> PortCapabilities: ...

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        """Ask once. Raises ParseError where the reply is no JSON object, PortError where the call failed."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class AgentPort(Protocol):
    """Runs a model with tools until it is done or a limit is reached."""

    @property
    def capabilities(self) -> PortCapabilities: ...

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult: ...

    async def aclose(self) -> None: ...
