"""A port whose calls go through middleware: the same for models, embedders, search tools and tool servers."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from karenina_core.errors import KareninaError, PluginError, PortError, one_line
from karenina_core.ports.middleware import Around, Call, CallTarget, Proceed
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
    Tool,
    ToolOutcome,
)
from karenina_core.values.message import Message

from ..services.embedding import Embeddings, check_vectors
from ..tools.search import SearchResult
from .own_tags import with_own_tags
from .port_calls import AgentCall, EmbedderCall, LLMCall, ParserCall, SearchCall, ToolCall, ToolListCall
from .port_checks import must_return
from .retry import Attempts, this_call

R = TypeVar("R")


@frozen(eq=False)
class Layer:
    """Middleware, and the plugin that it is of; karenina's own is of none."""

    around: Around
    plugin: str = ""

    @property
    def answers(self) -> bool:
        """See `Around`."""
        return bool(getattr(self.around, "answers", False))


@frozen(eq=False)
class Asked:
    """What is called, behind all middleware."""

    port: Any

    @property
    def able(self) -> Asked:
        return self

    @property
    def capabilities(self) -> PortCapabilities:
        found: PortCapabilities | None = getattr(self.port, "capabilities", None)
        if found is not None:
            return found
        away, cost = getattr(self.port, "needs_provider", True), getattr(self.port, "reports_cost", False)
        return PortCapabilities(needs_provider=bool(away), reports_cost=bool(cost))  # of an embedder

    async def __call__(self, call: Call[R]) -> R:
        """Raises PortError for what is no reply to such a call."""
        reply = await with_own_tags(call).on(self.port)
        if not isinstance(reply, call.reply_type):
            what = f"returned no proper reply ({type(reply).__name__})"
            what += must_return(call.target.kind, self.port, reply)
            raise PortError(f"the adapter {call.target.name!r} {what}", kind="plugin")
        return reply


@frozen(eq=False)
class Behind:
    """Some middleware and what is behind it."""

    layer: Layer
    rest: Asked | Behind
    able: Asked | Behind = field(init=False)
    """What is next on this way, itself included, and has something to say about its capabilities."""

    @able.default
    def _able(self) -> Asked | Behind:
        return self if self.layer.answers or hasattr(self.layer.around, "capabilities") else self.rest.able

    @property
    def capabilities(self) -> PortCapabilities:
        behind, around = self.rest.able.capabilities, self.layer.around
        if change := getattr(around, "capabilities", None):
            behind = change(behind)
        return evolve(behind, needs_provider=False) if self.layer.answers else behind

    def __call__(self, call: Call[R]) -> Awaitable[R]:
        return self._looked_at(call) if self.layer.plugin else self.layer.around(call, self.rest)

    async def _looked_at(self, call: Call[R]) -> R:
        reply: R = await self.layer.around(call, self.rest)
        if not isinstance(reply, call.reply_type):
            what = f"returned no {call.reply_type.__name__} ({type(reply).__name__})"
            text = f"the middleware of plugin {self.layer.plugin!r} {what}; it has to return what proceed(call) gives"
            raise PortError(text, kind="plugin")
        return reply


def through(layers: Sequence[Layer], port: Any) -> Asked | Behind:
    """The way to a port through middleware, the first of which is the outermost."""
    way: Asked | Behind = Asked(port)
    for layer in reversed(layers):
        way = Behind(layer, way)
    return way


@frozen(eq=False)
class CallPort:
    """What is called, inside its middleware; with the methods of every kind of port, of which one kind is meant."""

    target: CallTarget
    inner: Any
    """What is called."""
    layers: tuple[Layer, ...] = ()
    """The outermost first."""
    way: Asked | Behind = field(init=False, repr=False)

    @way.default
    def _way(self) -> Asked | Behind:
        return through(self.layers, self.inner)

    def behind(self, around: Around) -> CallPort:
        """The same with middleware of karenina's own in front of all other."""
        return CallPort(self.target, self.inner, (Layer(around), *self.layers))

    @property
    def plugins(self) -> tuple[str, ...]:
        """Those in front of it."""
        return tuple(layer.plugin for layer in self.layers if layer.plugin)

    @property
    def answers(self) -> bool:
        """Whether some middleware replies to every call, so that `inner` is never opened or asked."""
        return any(layer.answers for layer in self.layers)

    @property
    def capabilities(self) -> PortCapabilities:
        return self.way.able.capabilities

    @property
    def needs_provider(self) -> bool:
        """False where no call leaves this machine."""
        return self.capabilities.needs_provider

    @property
    def reports_cost(self) -> bool:
        """Whether replies say what they cost."""
        return self.capabilities.reports_cost

    @property
    def knows_refusals(self) -> bool:
        """Whether a schema is refused here on channels on which the model is known to refuse it. What it replied there
        all the same is served."""
        return any(getattr(layer.around, "knows_refusals", False) for layer in self.layers)

    @property
    def _used(self) -> Iterator[Any]:
        """All middleware up to that which answers, and what is called where none does: what is opened and closed."""
        for layer in self.layers:
            yield layer.around
            if layer.answers:
                return
        yield self.inner

    def problem(self) -> str | None:
        """Why it cannot be used here, if it can say so."""
        look = None if self.answers else getattr(self.inner, "problem", None)
        return look() if look else None

    async def aopen(self) -> None:
        for used in self._used:
            if opener := getattr(used, "aopen", None):
                await opener()

    async def aclose(self) -> None:
        for used in self._used:
            if closer := getattr(used, "aclose", None):
                await closer()

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        return await self.way(LLMCall(self.target, messages, output, temperature, tools, call))

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        return await self.way(ParserCall(self.target, messages, schema, call))

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        return await self.way(AgentCall(self.target, messages, tools, mcp_servers, config or AgentConfig(), call))

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Raises PluginError, and PortError for anything but one vector for each text that can be compared with the
        others."""
        return await self.way(EmbedderCall(self.target, texts))

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """Raises SearchError."""
        around = this_call.set(Attempts(count=1))  # a search is not tried again
        try:
            return await self.way(SearchCall(self.target, query))
        finally:
            this_call.reset(around)

    async def alist(self) -> Sequence[Tool]:
        """The tools of a server, each of whose calls goes through the middleware too."""

        async def run(tool: Tool, arguments: Mapping[str, Any]) -> ToolOutcome:
            return await self.way(ToolCall(self.target, tool, arguments))

        tools = await self.way(ToolListCall(self.target))
        return [evolve(tool, run=partial(run, tool)) if tool.run or self.answers else tool for tool in tools]


async def vectors_checked(call: EmbedderCall, proceed: Proceed) -> Embeddings:
    """What an embedder may not do becomes an error that names it."""
    name = call.target.name
    try:
        found = await proceed(call)
    except (KareninaError, TimeoutError):
        raise
    except Exception as error:  # an embedder runs code of its own
        raise PluginError(f"the embedder {name!r} failed: {one_line(error)}") from error
    if not isinstance(found, Embeddings) or len(found.vectors) != len(call.texts):
        text = f"the embedder {name!r} did not give one vector for each of {len(call.texts)} texts"
        raise PortError(text, kind="bad_response")
    check_vectors(found.vectors)
    return found
