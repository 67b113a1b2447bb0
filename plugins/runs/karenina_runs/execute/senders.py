"""Who sends the calls of a run to its models: the gateway, or a sender that a distribution has brought."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from attrs import define, evolve
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.stored_calls import Lane

from karenina_core.values.config import ModelConfig, VerificationConfig

from ..journal.journal import Journal
from ..kinds import declared

KINDS = "karenina.senders"


class Sender(ABC):
    """Sends the calls to some models in a way of its own. A distribution declares a class derived from this one by an
    entry point of the group `karenina.senders`."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd, and what is still to come."""
        return ()

    @classmethod
    @abstractmethod
    def of_run(cls, gateway: Gateway, *, keeps: bool) -> Sender:
        """That of one run; `keeps`: whether the run has a directory, and `keep_in` will be called."""

    @classmethod
    @abstractmethod
    def serves(cls, model: ModelConfig) -> bool:
        """Whether it sends the calls to this model."""

    @classmethod
    def items_at_once(cls, models: Sequence[ModelConfig]) -> int:
        """Items that should be in flight for the models that it serves."""
        return 0

    @abstractmethod
    def lane(self, model: ModelConfig) -> Lane:
        """The way to this model. Raises ConfigError."""

    @abstractmethod
    def keep_in(self, journal: Journal) -> None:
        """The journal of the run, with the calls that it has already."""

    @abstractmethod
    def item(self) -> AbstractAsyncContextManager[None]:
        """Stays open while an item is under way: calls may come of it."""

    @abstractmethod
    async def aclose(self) -> None:
        """The run ends."""


@define(eq=False)
class Senders:
    """All senders of one run."""

    gateway: Gateway
    others: Sequence[Sender]
    """Also those that serve no model now: of an earlier process of the run, there may be something left."""
    items_at_once: int
    """Items in flight."""

    @classmethod
    def of_run(cls, config: VerificationConfig, *, keeps: bool) -> Senders:
        """With the gateway, whose calls `concurrency` limits where more items are in flight. Raises PluginError."""
        models = (*config.answering_models, *config.parsing_models)
        kinds: list[type[Sender]] = [load() for load in declared(KINDS).values()]
        served = {kind: [model for model in models if kind.serves(model)] for kind in kinds}
        wanted = [kind.items_at_once(those) for kind, those in served.items() if those]
        at_once = max([config.concurrency, *wanted])
        if wanted and config.max_concurrent_requests is None:
            config = evolve(config, max_concurrent_requests=config.concurrency)
        gateway = Gateway(config)
        return cls(gateway, [kind.of_run(gateway, keeps=keeps) for kind in kinds], at_once)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for sender in self.others for note in sender.notes)

    def lane(self, model: ModelConfig) -> Lane:
        """Raises ConfigError."""
        sender = next((sender for sender in self.others if sender.serves(model)), None)
        return self.gateway.lane(model) if sender is None else sender.lane(model)

    def keep_in(self, journal: Journal) -> None:
        for sender in self.others:
            sender.keep_in(journal)

    def item(self) -> AbstractAsyncContextManager[None]:
        """An item is under way."""
        return self.others[0].item() if len(self.others) == 1 else self._item()

    @asynccontextmanager
    async def _item(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for sender in self.others:
                await stack.enter_async_context(sender.item())
            yield

    async def aclose(self) -> None:
        """Raises what the senders raise."""
        for sender in self.others:
            await sender.aclose()
