"""How a run meters its calls: through the lanes of its gateway, and with what its journal holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, field

from ..errors import ConfigError, Problem
from ..model.config import ModelConfig
from ..ports.metered import CallStore, Lane, MeteredPort
from .batching import NO_DIRECTORY, Batching

__all__ = ["Lanes", "Metering"]


class Lanes(Protocol):
    """One lane for each model, however many configurations and roles it has."""

    def lane(self, model: ModelConfig) -> Lane: ...


@define(eq=False)
class Metering:
    """What stands in front of every port of a run."""

    lanes: Lanes | None = None
    store: CallStore | None = None
    batching: Batching | None = None
    """Of models that are asked in batches; None where there is no place to keep what was sent."""
    _ports: list[MeteredPort] = field(factory=list)

    def around(self, ports: Mapping[str, Any], model: ModelConfig) -> dict[str, Any]:
        """The ports of a model, metered. Where calls are answered without the provider, they wait for no place."""
        asked = any(port.capabilities.needs_provider for port in ports.values())
        lane = self._lane(model) if asked else None
        metered = {name: MeteredPort(port, model, lane, self.store) for name, port in ports.items()}
        self._ports += metered.values()
        return metered

    def _lane(self, model: ModelConfig) -> Lane | None:
        """Raises ConfigError."""
        if not model.batch:
            return None if self.lanes is None else self.lanes.lane(model)
        if self.batching is None:
            raise ConfigError([Problem("batch", f"{model.identity}: {NO_DIRECTORY}")])
        return self.batching.lane(model)

    def keep_in(self, store: CallStore) -> None:
        """From now on replies are kept there. A run directory is made only when every model is open."""
        self.store = store
        for port in self._ports:
            port.store = store
