"""The calls of models, embedders, search tools and tool servers, with their typed arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen

from karenina_core.ports.middleware import Call, CallTarget
from karenina_core.ports.protocols import AgentPort, ParserPort, ToolCallingLLMPort
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    Tool,
    ToolOutcome,
)
from karenina_core.values.message import Message

from ..records.requests import (
    EmbeddingRequest,
    Request,
    SearchRequest,
    ToolRequest,
    agent_from,
    agent_to,
    embeddings_from,
    embeddings_to,
    llm_from,
    llm_to,
    parse_from,
    parse_to,
    search_from,
    search_to,
)
from ..services.embedding import EmbedderPort, Embeddings
from ..tools.search import SearchResult, SearchTool
from ..tools.tool_calls import run_tool
from ..tools.tool_servers import ToolServer
from .text import with_texts

NO_CONTEXT = CallContext("")


@frozen(eq=False, slots=False)
class LLMCall(Call[LLMResponse]):
    """See `ToolCallingLLMPort.ainvoke`."""

    reply_type = LLMResponse
    to_data = staticmethod(llm_to)
    from_data = staticmethod(llm_from)
    messages: Sequence[Message]
    output: OutputFormat | None = None
    temperature: float | None = None
    tools: Sequence[Tool] = ()
    context: CallContext | None = None

    def plain(self) -> Request:
        output, context = self.output, self.context or NO_CONTEXT
        identity, parameters = _of_model(self.target, self.temperature)
        if self.tools:
            parameters["tools"] = [_offered(tool) for tool in self.tools]
        messages = tuple([message.to_dict() for message in self.messages])
        schema, channel = (None, None) if output is None else (dict(output.schema), output.channel)
        return Request("llm", identity, context.task, context.replicate, messages, schema, channel, parameters)

    def on(self, port: ToolCallingLLMPort) -> Awaitable[LLMResponse]:
        asked: dict[str, Any] = {"output": self.output, "temperature": self.temperature, "call": self.context}
        if self.tools:  # a port without tools need not know the argument
            asked["tools"] = self.tools
        return port.ainvoke(self.messages, **asked)


@frozen(eq=False, slots=False)
class ParserCall(Call[ParsePortResult]):
    """See `ParserPort.aparse`."""

    reply_type = ParsePortResult
    to_data = staticmethod(parse_to)
    from_data = staticmethod(parse_from)
    messages: Sequence[Message]
    schema: Mapping[str, Any]
    context: CallContext | None = None

    def plain(self) -> Request:
        context, messages = self.context or NO_CONTEXT, tuple([message.to_dict() for message in self.messages])
        identity, parameters = _of_model(self.target, context.temperature)
        schema = dict(self.schema)
        return Request("parser", identity, context.task, context.replicate, messages, schema, None, parameters)

    def on(self, port: ParserPort) -> Awaitable[ParsePortResult]:
        return port.aparse(self.messages, self.schema, call=self.context)


@frozen(eq=False, slots=False)
class AgentCall(Call[AgentResult]):
    """See `AgentPort.arun`; also the whole work of a model that has no agent of its own.

    Middleware may proceed with other tools of the same names, such as ones that time their calls:
    `tool_calls.current_call` gives a tool the call that it answers.
    """

    reply_type = AgentResult
    to_data = staticmethod(agent_to)
    from_data = staticmethod(agent_from)
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    mcp_servers: Mapping[str, Any] | None = None
    config: AgentConfig = field(factory=AgentConfig)
    context: CallContext | None = None

    def plain(self) -> Request:
        """The limits of the agent's work are part of the call: with others it might have gone further. Its folder is
        another one every time, and no part of what makes the call."""
        context, folder = self.context or NO_CONTEXT, str(self.config.workspace_path or "")
        identity, parameters = _of_model(self.target, None)
        own = asdict(self.config, filter=lambda attribute, _: attribute.name != "workspace_path")
        parameters |= {"tools": [_offered(tool) for tool in self.tools], "agent": own}
        messages = [message.to_dict() for message in self.messages]
        if folder:
            parameters, messages = with_texts([parameters, messages], lambda text: text.replace(folder, "{workspace}"))
        return Request("agent", identity, context.task, context.replicate, tuple(messages), parameters=parameters)

    def on(self, port: AgentPort) -> Awaitable[AgentResult]:
        return port.arun(self.messages, self.tools, self.mcp_servers, self.config, call=self.context)


@frozen(eq=False, slots=False)
class EmbedderCall(Call[Embeddings]):
    """See `EmbedderPort.aembed`."""

    to_data = staticmethod(embeddings_to)
    from_data = staticmethod(embeddings_from)
    texts: Sequence[str]

    def plain(self) -> EmbeddingRequest:
        return EmbeddingRequest(self.target.name, self.target.model, tuple(self.texts))

    def on(self, port: EmbedderPort) -> Awaitable[Embeddings]:
        return port.aembed(self.texts)


@frozen(eq=False, slots=False)
class SearchCall(Call[Sequence[SearchResult]]):
    """See `SearchTool.asearch`."""

    to_data = staticmethod(search_to)
    from_data = staticmethod(lambda data: search_from({"reply": data}))
    query: str

    def plain(self) -> SearchRequest:
        return SearchRequest(self.target.name, self.query)

    def on(self, port: SearchTool) -> Awaitable[Sequence[SearchResult]]:
        return port.asearch(self.query)


@frozen(eq=False, slots=False)
class ToolListCall(Call[Sequence[Tool]]):
    """See `ToolServer.alist`. Tools that come back from data have no `run`."""

    def plain(self) -> ToolRequest:
        return ToolRequest(self.target.name)

    def on(self, port: ToolServer) -> Awaitable[Sequence[Tool]]:
        return port.alist()

    @staticmethod
    def to_data(tools: Sequence[Tool], /) -> dict[str, Any]:
        return {"tools": [_offered(tool) for tool in tools]}

    @staticmethod
    def from_data(data: Mapping[str, Any], /) -> Sequence[Tool]:
        return [Tool(**row) for row in data["tools"]]


@frozen(eq=False, slots=False)
class ToolCall(Call[ToolOutcome]):
    """A call of a tool that a server offers, by the name that the server gives it. What the tool raises is its outcome
    (see `run_tool`)."""

    reply_type = ToolOutcome
    to_data = staticmethod(lambda outcome: asdict(outcome))
    from_data = staticmethod(lambda data: ToolOutcome(**data))
    tool: Tool
    arguments: Mapping[str, Any]

    def plain(self) -> ToolRequest:
        return ToolRequest(self.target.name, self.tool.name, dict(self.arguments))

    def on(self, port: Any) -> Awaitable[ToolOutcome]:
        assert self.tool.run is not None, "a tool of a server that is there has it"
        return run_tool(self.tool.run, self.arguments)


def _of_model(target: CallTarget, temperature: float | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The identity of a model, and what it is asked with."""
    model = target.config
    assert model is not None, "the target of a model's call has its configuration"
    return model.identity.to_dict(), {
        "temperature": model.temperature if temperature is None else temperature,
        "max_tokens": model.max_tokens,
        "extra_kwargs": dict(model.extra_kwargs),
    }


def _offered(tool: Tool) -> dict[str, Any]:
    """A tool as it is described to the model."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
