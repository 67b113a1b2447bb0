"""The outermost port of a model: what was paid for is not asked again, and what is asked waits for its place."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from attrs import define, evolve, field, frozen

from ..errors import ParseError, PortError
from ..model.config import ModelConfig
from ..model.message import Message
from ..secrets import Secrets
from .call_facts import CallFacts, attempts_so_far, facts_of_failure, facts_of_reply, left
from .calls import (
    EmbeddingRequest,
    KeptRequest,
    Request,
    SearchRequest,
    agent_from,
    agent_to,
    embeddings_from,
    embeddings_to,
    error_from,
    error_to,
    llm_from,
    llm_to,
    parse_from,
    parse_to,
    search_from,
    search_to,
)
from .cleaning import Cleaner
from .clocks import standing_still
from .embedding import Embeddings, NamedEmbedder
from .item_calls import ItemCalls, current_item, current_trait
from .own_agent import out_of_time
from .prices import priced
from .refusals import Refusals
from .retry import Attempts, this_call
from .search import NamedSearch, SearchResult
from .tool_servers import address_digest
from .values import (
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

__all__ = [
    "CallFacts",
    "CallStore",
    "Lane",
    "Meter",
    "MeteredPort",
    "Place",
    "StoredCall",
    "StoredReply",
]

T = TypeVar("T")
_inside: ContextVar[bool] = ContextVar("karenina_inside_call", default=False)
"""Whether a call is under way that what happens here is the work of."""


@frozen
class StoredCall:
    """A call as the store knows it: equal requests of one item are told apart by their number, from 0."""

    key: str
    nth: int
    request: KeptRequest = field(eq=False, repr=False)
    stage: str = field(default="", eq=False)
    trait: str = field(default="", eq=False)
    question_id: str = field(default="", eq=False)
    result_id: str = field(default="", eq=False)
    stage_version: str = field(default="1", eq=False)
    inside: bool = field(default=False, eq=False)
    """Whether it is made from within the work of another call, such as by a tool of an agent."""
    refused: tuple[Channel, ...] = field(default=(), eq=False)
    """Stronger channels on which the model refuses the call's schema; see `OutputFormat`."""


@frozen
class StoredReply:
    """`{"reply": {...}}` or, of a judge whose reply could not be read, `{"error": {...}}`; and what it took. See also
    `Cleaner.outcome`."""

    outcome: Mapping[str, Any]
    facts: CallFacts


class CallStore(Protocol):
    """Replies that are paid for, by what was asked."""

    @property
    def refusals(self) -> Refusals:
        """What models refuse. A reply is kept together with the channels on which its schema was refused: without them
        the next who wants it begins with a channel for which there is none."""
        ...

    async def take(self, call: StoredCall) -> StoredReply | None:
        """The reply that is there. None: it is the caller's to ask; others who want the same wait for `put` or
        `failed`, but for calls from `inside` of another: that may be what those who ask wait for."""
        ...

    async def put(self, call: StoredCall, outcome: Mapping[str, Any], facts: CallFacts) -> None:
        """Keep the outcome. Returns when nothing can take it away again. Raises RunDirectoryError."""
        ...

    def failed(self, call: StoredCall, error: BaseException, facts: CallFacts) -> None:
        """One attempt has failed: it is counted, and not served again. Of those who wait, two ask now, or one where
        the attempt was not made."""
        ...


class Lane(Protocol):
    """The way to one model: how many calls may be under way, how fast, and for how much."""

    async def enter(self, call: StoredCall) -> Place:
        """Wait until the call may be made. Raises PortError where it may not be made any more, such as `budget`."""
        ...


class Meter(Protocol):
    """What stands in front of all that a run asks."""

    def of_embedder(self, embedder: NamedEmbedder) -> MeteredPort:
        """The embedder, as the run asks it."""
        ...

    def of_search(self, tool: NamedSearch) -> MeteredPort:
        """The same of a search tool."""
        ...


class Place(Protocol):
    """What a call occupies while it is under way."""

    def leave(self, facts: CallFacts | None, error: BaseException | None) -> CallFacts | None:
        """The call is over: with what it took, with what it ended in, or both. Returns what it took, as it is counted;
        None: it ended in an error, and cost nothing."""
        ...


@define(eq=False)
class MeteredPort:
    """In front of a port, its middleware included."""

    inner: Any
    model: ModelConfig
    lane: Lane | None = None
    store: CallStore | None = None
    adapter: str = ""
    """The code that serves the calls: replies that other code has given are not taken from the store."""
    secrets: Secrets = field(factory=Secrets)

    @property
    def capabilities(self) -> PortCapabilities:
        capabilities: PortCapabilities = self.inner.capabilities
        return capabilities

    async def aopen(self) -> None:
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
        asked: dict[str, Any] = {"output": output, "temperature": temperature, "call": call}
        if tools:  # a port without tools need not know the argument
            asked["tools"] = tools
        request = Request.of_llm(self.model, messages, output, temperature, call, tools)
        return await self._once(request, lambda: self.inner.ainvoke(messages, **asked), llm_to, llm_from, output=output)

    @property
    def knows_refusals(self) -> bool:
        """Whether a schema is refused here on channels on which the model is known to refuse it. What it replied there
        all the same is served."""
        return self.store is not None

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        request = Request.of_parser(self.model, messages, schema, call)
        return await self._once(request, lambda: self.inner.aparse(messages, schema, call=call), parse_to, parse_from)

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        """What an agent did in a folder is in that folder, which is gone: such work is kept and not served again. What
        was ended by the clock is no reply: it is counted, and asked for again."""
        config = config or AgentConfig()
        request, cleaner = Request.of_agent(self.model, messages, tools, config, call), self._cleaner()
        tools = cleaner.tools(tools)
        return await self._once(
            request,
            lambda: self.inner.arun(messages, tools, mcp_servers, config, call=call),
            agent_to,
            agent_from,
            again=config.workspace_path is None,
            cleaner=cleaner,
            unserved=out_of_time,
        )

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Of a `NamedEmbedder`."""
        request = EmbeddingRequest(self.inner.name, self.inner.model, tuple(texts))
        return await self._once(request, lambda: self.inner.aembed(texts), embeddings_to, embeddings_from)

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """Of a `NamedSearch`."""
        request = SearchRequest(self.inner.name, query)
        around = this_call.set(Attempts(count=1))  # a search is not tried again
        try:
            return await self._once(
                request, lambda: self.inner.asearch(query), search_to, lambda reply: search_from({"reply": reply})
            )
        finally:
            this_call.reset(around)

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _cleaner(self) -> Cleaner:
        item = current_item.get()
        return Cleaner(self.secrets) if item is None else Cleaner(self.secrets, item.removed)

    async def _once(
        self,
        request: KeptRequest,
        ask: Callable[[], Awaitable[T]],
        to: Callable[[T], dict[str, Any]],
        come_back: Callable[[Mapping[str, Any]], T],
        *,
        again: bool = True,
        output: OutputFormat | None = None,
        cleaner: Cleaner | None = None,
        unserved: Callable[[T], PortError | None] = lambda answer: None,
    ) -> T:
        item, cleaner = current_item.get() or ItemCalls(), cleaner or self._cleaner()
        # Only a store asks which call it is, and to know that takes as long as half of the rest.
        key = self._key(request, item) if self.store is not None else ""
        number = item.reserve(key) if self.store is not None else 0
        where = item.stage, current_trait.get(), item.question_id, item.result_id, item.stage_version
        call = StoredCall(key, number, request, *where, _inside.get(), () if output is None else output.refused)
        try:
            found = await self._found(call) if again else None
            if found is None:
                if output is not None and (refusal := self._refusal(call, output)) is not None:
                    raise refusal
                return await self._asked(call, item, ask, to, cleaner, unserved)
        except ParseError:
            raise  # a reply, though no proper one
        except BaseException:
            if self.store is not None:
                item.give_back(key, number)
            raise
        attempts_so_far().served(found.facts.attempts, found.facts.retries, found.facts.seconds)
        kept = cleaner.kept(found.outcome)
        if "error" in kept:
            raise error_from(kept["error"])
        return cleaner.reply(come_back(kept["reply"]))

    def _key(self, request: KeptRequest, item: ItemCalls) -> str:
        """Of an agent, which is served with all that its tools answered, also with the addresses of its servers."""
        behind = self.adapter
        if request.kind == "agent":
            servers = sorted(self.model.mcp_urls_dict.items())
            behind = "\n".join((behind, *(address_digest(name, address) for name, address in servers)))
        return request.key_of(item.question_id, item.stage_version, behind)

    def _refusal(self, call: StoredCall, output: OutputFormat) -> PortError | None:
        """That of a schema which the model is known to refuse on this channel. The weakest channel is always asked."""
        if self.store is None or not self.store.refusals.known:
            return None
        known = self.store.refusals.of(self.model.identity.to_dict(), output.schema)
        if output.channel not in known or output.channel in self.capabilities.output_channels[-1:]:
            return None
        said = f"{self.model.identity} has refused this schema as {output.channel} before"
        error = PortError(said, kind="invalid_request", status=400, final=True)
        self.store.failed(call, error, evolve(facts_of_reply(), made=False))
        return error

    async def _found(self, call: StoredCall) -> StoredReply | None:
        if self.store is None:
            return None
        with standing_still():  # somebody else may be asking the same
            return await self.store.take(call)

    async def _asked(
        self,
        call: StoredCall,
        item: ItemCalls,
        ask: Callable[[], Awaitable[T]],
        to: Callable[[T], dict[str, Any]],
        cleaner: Cleaner,
        unserved: Callable[[T], PortError | None],
    ) -> T:
        place = await self._place(call, item)
        begun = time.monotonic()
        try:
            answer = priced(await _inside_call(ask, cleaner), self.model)
            outcome = cleaner.outcome("reply", to(answer)) if self.store is not None else {}
        except BaseException as error:
            told = facts_of_failure(error, self.model, time.monotonic() - begun)
            facts = left(place, told, error)
            if isinstance(error, ParseError):  # the reply was paid for: asked again, it may be the same
                if self.store is not None:
                    await self.store.put(call, cleaner.outcome("error", error_to(error)), facts)
            elif self.store is not None:
                self.store.failed(call, error, facts)
            raise
        facts = left(place, facts_of_reply(answer, time.monotonic() - begun), None)
        if self.store is not None and (failure := unserved(answer)) is not None:
            item.give_back(call.key, call.nth)
            self.store.failed(call, failure, facts)
        elif self.store is not None:
            await self.store.put(call, outcome, facts)
        return answer

    async def _place(self, call: StoredCall, item: ItemCalls) -> Place | None:
        if self.lane is None:
            return None
        try:
            with standing_still():
                return await self.lane.enter(call)
        except BaseException as error:
            attempts_so_far().not_made()
            item.kept_out |= isinstance(error, PortError)
            if self.store is not None:
                self.store.failed(call, error, evolve(facts_of_reply(), made=False))
            raise


async def _inside_call(ask: Callable[[], Awaitable[T]], cleaner: Cleaner) -> T:
    """What is asked from within has attempts of its own."""
    around, attempts = _inside.set(True), this_call.set(Attempts(count=1))
    try:
        return await (cleaner.around(ask) if cleaner.secrets else ask())
    finally:
        _inside.reset(around)
        this_call.reset(attempts)
