"""Calls that a provider makes together, and later: what an adapter implements, and a model asked in this way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol

from attrs import evolve, field, frozen

from karenina_core.errors import PortError
from karenina_core.ports.values import CallContext, LLMResponse, OutputFormat, PortCapabilities
from karenina_core.values.message import Message

from .waiting import standing_still

BatchStatus = Literal["running", "ended", "failed", "expired", "cancelled"]
"""`failed`: the provider has refused the whole batch. All but `running` are final, and all but `failed` may have
replies."""


@frozen
class BatchCall:
    """One call of a batch."""

    custom_id: str
    """At most 64 characters, and no other call of the batch has it: replies come back in any order."""
    body: str
    """What `BatchPort.encode` made."""


@frozen(kw_only=True)
class BatchState:
    """How far a batch has come."""

    status: BatchStatus
    completed: int = 0
    """Calls that are made, for people."""
    failed: int = 0
    """Calls that have failed, for people."""
    problem: PortError | None = None
    """Why the whole batch has failed."""
    lines: Mapping[int, PortError] = field(factory=dict)
    """The calls that are to blame for it, by their places in the batch, from 0."""


class BatchPort(Protocol):
    """The batch interface of a provider, for one model. Every method makes one attempt and raises PortError.

    Like other ports it does nothing heavy when it is constructed, and may have an `async aopen()`.
    """

    @property
    def capabilities(self) -> PortCapabilities: ...

    def encode(
        self, messages: Sequence[Message], *, output: OutputFormat | None = None, temperature: float | None = None
    ) -> str:
        """The body of a call as JSON: what an `LLMPort` of the same model would send."""
        ...

    def decode(self, body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
        """The reply in a body that `fetch` gave."""
        ...

    async def submit(self, name: str, calls: Sequence[BatchCall]) -> str:
        """Send the calls; returns the provider's id of the batch. `name` is what `find` finds it by. After an error
        that is no refusal, `find` is asked before the next attempt."""
        ...

    async def find(self, name: str) -> str | None:
        """The provider's id of a batch that may have been sent, although its id never came; None where there is none,
        or where the provider does not know. The calls are sent again then, and the run says so."""
        ...

    async def poll(self, batch_id: str) -> BatchState: ...

    def fetch(self, batch_id: str) -> AsyncIterator[tuple[str, Mapping[str, Any] | PortError]]:
        """`(custom_id, body of the reply or its error)` as they arrive, in any order; never all of them in memory."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider not to make the calls that it has not made yet."""
        ...

    async def aclose(self) -> None: ...


class BatchTurn(Protocol):
    """What a call has in place of a connection."""

    async def ask(self, port: BatchPort, body: str) -> Mapping[str, Any]:
        """Wait until some batch brings the reply. Raises PortError."""
        ...


current_turn: ContextVar[BatchTurn | None] = ContextVar("karenina_batch_turn", default=None)
"""The turn of the current call."""


@frozen(eq=False)
class BatchedLLM:
    """An `LLMPort` whose calls wait for batches. The time in which they wait counts against no time limit."""

    port: BatchPort

    @property
    def capabilities(self) -> PortCapabilities:
        return evolve(self.port.capabilities, supports_tools=False, supports_streaming=False)

    async def aopen(self) -> None:
        if opener := getattr(self.port, "aopen", None):
            await opener()

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Raises PortError."""
        if (turn := current_turn.get()) is None:
            text = "batch = true works only in runs; set batch = false here"
            raise PortError(text, kind="invalid_request", final=True)
        body = self.port.encode(messages, output=output, temperature=temperature)
        reply = await standing_still(turn.ask(self.port, body))
        return self.port.decode(reply, output)

    async def aclose(self) -> None:
        await self.port.aclose()
