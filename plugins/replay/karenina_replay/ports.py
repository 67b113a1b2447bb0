"""Ports in front of a model: one writes down what passes, the other answers from what was written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, evolve, field

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.model.message import Message
from karenina_core.ports.calls import (
    Request,
    agent_from,
    agent_to,
    error_from,
    error_to,
    llm_from,
    llm_to,
    parse_from,
    parse_to,
)
from karenina_core.ports.cleaning import Cleaner
from karenina_core.ports.structured import instruction
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    Channel,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
    Tool,
)

from .recording import Recording, Writer, recording_of, writer_of
from .settings import ReplaySettings

__all__ = ["RecordingPort", "ReplayingPort", "wrapped"]

T = TypeVar("T")


def wrapped(port: Any, model: ModelConfig, settings: ReplaySettings, app: Any) -> Any:
    """The port in front of `port` that the settings ask for."""
    if settings.record:
        writer = writer_of(settings)
        writer.knows(model, app)
        return RecordingPort(port, model, writer)
    return ReplayingPort(port, model, recording_of(settings))


@define(eq=False)
class RecordingPort:
    """Passes every call on and writes it down, with its reply or its failure."""

    inner: Any
    model: ModelConfig
    writer: Writer

    @property
    def capabilities(self) -> PortCapabilities:
        capabilities: PortCapabilities = self.inner.capabilities
        return capabilities

    async def aopen(self) -> None:
        self.writer.enter(self)
        if opener := getattr(self.inner, "aopen", None):
            await opener()

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        request = Request.of_llm(self.model, messages, output, temperature, call, tools)
        asked: dict[str, Any] = {"output": output, "temperature": temperature, "call": call}
        if tools:  # a port without tools need not know the argument
            asked["tools"] = tools
        return await self._kept(request, lambda: self.inner.ainvoke(messages, **asked), llm_to)

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        request = Request.of_parser(self.model, messages, schema, call)
        return await self._kept(request, lambda: self.inner.aparse(messages, schema, call=call), parse_to)

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        """The agent works with its tools as it would without a recording; what they answered is in its messages."""
        config = config or AgentConfig()
        request = Request.of_agent(self.model, messages, tools, config, call)
        return await self._kept(
            request, lambda: self.inner.arun(messages, tools, mcp_servers, config, call=call), agent_to
        )

    async def aclose(self) -> None:
        self.writer.leave(self)
        await self.inner.aclose()

    async def _kept(self, request: Request, ask: Callable[[], Awaitable[T]], to: Callable[[T], dict[str, Any]]) -> T:
        try:
            answer = await ask()
        except PortError as error:
            self.writer.write(request, {"error": error_to(error)})
            raise
        cleaner = Cleaner(self.writer.secrets)  # whoever reads the answer now takes them out as well
        cleaned = cleaner.reply(answer)
        self.writer.write(request, cleaner.outcome("reply", to(cleaned)))
        return answer


@define(eq=False)
class ReplayingPort:
    """Answers from a recording. The model behind it is never opened and never asked."""

    inner: Any
    model: ModelConfig
    recording: Recording
    served: dict[str, int] = field(factory=dict)

    @property
    def capabilities(self) -> PortCapabilities:
        capabilities: PortCapabilities = self.inner.capabilities
        return evolve(capabilities, needs_provider=False)

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        request = Request.of_llm(self.model, messages, output, temperature, call, tools)
        if output is not None and self._went_on(request, output.channel):
            said = f"{self.recording.path} holds this call of {self.model.identity} on a weaker channel only"
            raise PortError(said, kind="invalid_request", status=400, final=True)
        return llm_from(self._found(request, call))

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        return parse_from(self._found(Request.of_parser(self.model, messages, schema, call), call))

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        """What the agent did when it was recorded. No tool is called, and nothing is written into its folder."""
        return agent_from(
            self._found(Request.of_agent(self.model, messages, tools, config or AgentConfig(), call), call)
        )

    async def aclose(self) -> None:
        """There is nothing to close."""

    def _went_on(self, request: Request, channel: Channel) -> bool:
        """Whether the call is recorded on a weaker channel and not on this one: its schema had been refused there, to
        this call or to another one, and the refusal itself need not be in the recording."""
        channels = self.capabilities.output_channels
        if channel not in channels or self.recording.holds(request.key):
            return False
        weaker = channels[channels.index(channel) + 1 :]
        return any(self.recording.holds(_as_on(request, channel, other).key) for other in weaker)

    def _found(self, request: Request, call: CallContext | None) -> Mapping[str, Any]:
        served = self.served.get(request.key, 0)
        self.served[request.key] = served + 1
        reply, error = self.recording.find(request.key, served)
        if reply is not None:
            return reply
        if error is not None:
            raise error_from(error)
        about = f" for question {call.question_id!r}" if call and call.question_id else ""
        raise self.recording.missing(
            request.key, f"task {request.task!r}{about} to {self.model.identity}", f"replicate {request.replicate}"
        )


def _as_on(request: Request, channel: Channel, other: Channel) -> Request:
    """The request as it is made on another channel."""
    first, schema = Message.from_dict(request.messages[0]), request.schema or {}
    text = first.text.removesuffix(instruction(schema, channel)) + instruction(schema, other)
    message = Message.system(text) if first.role == "system" else Message.user(text)
    return evolve(request, channel=other, messages=(message.to_dict(), *request.messages[1:]))
