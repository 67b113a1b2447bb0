"""The outermost middleware: replies that were paid for are reused, and calls wait for their place."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from attrs import define, evolve, field, frozen

from karenina_core.errors import ParseError, PortError
from karenina_core.ports.call_origin import current_stage, current_trait
from karenina_core.ports.middleware import Call, Proceed
from karenina_core.ports.values import AgentResult, Channel, OutputFormat
from karenina_core.values.config import ModelConfig

from ..records.call_facts import CallFacts, Place, attempts_so_far, facts_of_failure, facts_of_reply, left
from ..records.prices import priced
from ..records.refusals import Refusals
from ..records.requests import KeptRequest, error_from, error_to
from ..secrets.incoming import Cleaner
from ..secrets.redaction import Secrets
from ..tools.agent_loop import out_of_time
from ..tools.tool_servers import address_digest
from .item_calls import ItemCalls, current_item
from .port_calls import AgentCall
from .retry import Attempts, this_call
from .waiting import standing_still

__all__ = ["CallFacts", "CallStore", "Lane", "Metered", "MeteredByRun", "StoredCall", "StoredReply"]

R = TypeVar("R")
_inside: ContextVar[bool] = ContextVar("karenina_inside_call", default=False)
"""Whether a call is under way that what happens here is the work of."""


@frozen
class StoredCall:
    """A call as the store knows it: equal requests of one item differ in their number, from 0."""

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


@define(eq=False)
class Metered:
    """In front of what is called, its other middleware included.

    What an agent did in a folder is in that folder, which is gone: such work is kept and not served again. What was
    ended by the clock is no reply: it is counted, and asked for again.
    """

    model: ModelConfig
    """What is asked, as lanes and prices know it."""
    lane: Lane | None = None
    store: CallStore | None = None
    adapter: str = ""
    """The code that serves the calls: replies that other code has given are not taken from the store."""
    secrets: Secrets = field(factory=Secrets)

    @property
    def knows_refusals(self) -> bool:
        return self.store is not None

    async def __call__(self, call: Call[R], proceed: Proceed) -> R:
        item, request, store = current_item.get() or ItemCalls(), call.request, self.store
        cleaner, output = Cleaner(self.secrets, item.removed), getattr(call, "output", None)
        # Only a store asks which call it is, and to know that takes as long as half of the rest.
        key = self._key(request, item) if store is not None else ""
        number = item.reserve(key) if store is not None else 0
        stage, version = current_stage.get()
        where = stage, current_trait.get(), item.question_id, item.result_id, version
        refused = () if output is None else output.refused
        stored = StoredCall(key, number, request, *where, _inside.get(), refused)
        found = None
        try:
            if store is not None and not (type(call) is AgentCall and call.config.workspace_path is not None):
                found = await standing_still(store.take(stored))  # another call may be asking the same
            if found is None:
                if store is not None and output is not None:
                    self._look_at_refusals(store, stored, output, proceed)
                return await self._asked(call, proceed, stored, item, cleaner)
        except ParseError:
            raise  # a reply, though no proper one
        except BaseException:
            if store is not None:
                item.give_back(key, number)
            raise
        attempts_so_far().served(found.facts.attempts, found.facts.retries, found.facts.seconds)
        kept = cleaner.kept(found.outcome)
        if "error" in kept:
            raise error_from(kept["error"])
        return cleaner.reply(call.from_data(kept["reply"]))

    def _key(self, request: KeptRequest, item: ItemCalls) -> str:
        """Of an agent, which is served with all that its tools answered, also with the addresses of its servers."""
        behind = self.adapter
        if request.kind == "agent":
            servers = sorted(self.model.mcp_urls_dict.items())
            behind = "\n".join((behind, *(address_digest(name, address) for name, address in servers)))
        return request.key_of(item.question_id, current_stage.get()[1], behind)

    def _look_at_refusals(self, store: CallStore, call: StoredCall, output: OutputFormat, behind: Proceed) -> None:
        """Raises PortError for a schema that the model is known to refuse on this channel. The weakest channel is
        always asked."""
        if not store.refusals.known:
            return
        known = store.refusals.of(self.model.identity.to_dict(), output.schema)
        if output.channel not in known or output.channel in behind.capabilities.output_channels[-1:]:
            return
        text = f"{self.model.identity} has rejected this schema as {output.channel} before"
        error = PortError(text, kind="invalid_request", status=400, final=True)
        store.failed(call, error, evolve(facts_of_reply(), made=False))
        raise error

    async def _asked(self, call: Call[R], proceed: Proceed, stored: StoredCall, item: ItemCalls, cleaner: Cleaner) -> R:
        place = await self._place(stored, item)
        begun = time.monotonic()
        try:
            answer = priced(await _inside_call(call, proceed, cleaner), self.model)
            outcome = cleaner.outcome("reply", call.to_data(answer)) if self.store is not None else {}
        except BaseException as error:
            known = facts_of_failure(error, self.model, time.monotonic() - begun)
            facts = left(place, known, error)
            if isinstance(error, ParseError):  # the reply was paid for: asked again, it may be the same
                if self.store is not None:
                    await self.store.put(stored, cleaner.outcome("error", error_to(error)), facts)
            elif self.store is not None:
                self.store.failed(stored, error, facts)
            raise
        facts = left(place, facts_of_reply(answer, time.monotonic() - begun), None)
        if self.store is None:
            return answer
        if isinstance(answer, AgentResult) and (failure := out_of_time(answer)) is not None:
            item.give_back(stored.key, stored.nth)
            self.store.failed(stored, failure, facts)
        else:
            await self.store.put(stored, outcome, facts)
        return answer

    async def _place(self, call: StoredCall, item: ItemCalls) -> Place | None:
        if self.lane is None:
            return None
        try:
            return await standing_still(self.lane.enter(call))
        except BaseException as error:
            attempts_so_far().not_made()
            item.kept_out |= isinstance(error, PortError)
            if self.store is not None:
                self.store.failed(call, error, evolve(facts_of_reply(), made=False))
            raise


async def _inside_call(call: Call[R], proceed: Proceed, cleaner: Cleaner) -> R:
    """What is asked from within has attempts of its own."""
    around, attempts = _inside.set(True), this_call.set(Attempts(count=1))
    try:
        if not cleaner.secrets:
            return await proceed(call)
        asked: Any = call
        if isinstance(call, AgentCall):
            asked = evolve(asked, tools=cleaner.tools(call.tools))
        return await cleaner.around(partial(proceed, asked))
    finally:
        _inside.reset(around)
        this_call.reset(attempts)


@frozen(eq=False)
class MeteredByRun:
    """In front of an embedder or a search tool of an application: calls that an item of a run makes belong to the
    run. They have places in its gateway, and what comes back is kept in its journal before it is used."""

    plugins: tuple[str, ...] = ()
    """Those behind it."""

    async def __call__(self, call: Call[R], proceed: Proceed) -> R:
        item = current_item.get()
        here = call.target.kind == "embedder" and not proceed.capabilities.needs_provider
        if item is None or item.meter is None or here:
            return await proceed(call)
        item.begun += 1
        try:
            reply: R = await item.meter.of(call.target, self.plugins)(call, proceed)
            return reply
        finally:
            item.ended += 1
