"""How a run meters its calls: through the lanes of its gateway, and with what its journal holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import define, field

from karenina_core.plugin.application import Karenina
from karenina_core.plugin.registry import Entry, Registry
from karenina_core.ports.middleware import CallTarget
from karenina_core.values.config import ModelConfig

from .plugin_code import code_behind
from .ports.call_port import CallPort
from .ports.stored_calls import CallStore, Lane, Metered
from .secrets.redaction import Secrets
from .services.shared import EmbedderRegistry, SearchToolRegistry

WRITTEN = 1
"""Tokens that an embedder's reply is expected to take: it writes none, and this is the least of a model."""


class Lanes(Protocol):
    """One lane for each model, however many configurations and roles it has."""

    def lane(self, model: ModelConfig) -> Lane: ...


@define(eq=False)
class Metering:
    """What is in front of every port of a run."""

    lanes: Lanes | None = None
    store: CallStore | None = None
    app: Karenina | None = None
    """Whose plugins serve the calls; their code is part of what the replies are found by."""
    secrets: Secrets = field(factory=Secrets)
    """Of the run: nothing that comes in through a port holds them any more."""
    _metered: list[Metered] = field(factory=list)
    _shared: dict[CallTarget, Metered] = field(factory=dict)

    def around(self, ports: Mapping[str, CallPort], model: ModelConfig) -> dict[str, CallPort]:
        """The ports of a model, metered. Where calls are answered without the provider, they wait for no place."""
        asked = any(port.capabilities.needs_provider for port in ports.values())
        lane = self._lane(model) if asked else None
        adapters = self.app.adapters if self.app is not None else None
        entry = None if adapters is None else adapters[adapters.resolve_interface(model.interface).interface]
        return {name: port.behind(self._made(model, lane, entry, port.plugins)) for name, port in ports.items()}

    def of(self, target: CallTarget, plugins: Sequence[str]) -> Metered:
        """The same in front of an embedder that asks a provider, as of a model, whenever it is asked for; and of a
        search tool: what it finds is kept, it waits for no place, and its cost is unknown."""
        if target not in self._shared:
            name, model = target.name, ModelConfig(model_name=target.name, interface="search")
            lane: Lane | None = None
            kind: type[Registry[Any]] = SearchToolRegistry
            if target.kind == "embedder":
                model = ModelConfig(model_name=target.model, interface=f"embedder {name}", max_tokens=WRITTEN)
                lane, kind = self._lane(model), EmbedderRegistry
            entry = self.app.registry(kind).get(name) if self.app is not None else None
            self._shared[target] = self._made(model, lane, entry, plugins)
        return self._shared[target]

    def _made(self, model: ModelConfig, lane: Lane | None, entry: Entry[Any] | None, plugins: Sequence[str]) -> Metered:
        """`entry`: whose plugin serves the calls."""
        code = "" if self.app is None or entry is None else code_behind(self.app, entry.plugin, plugins)
        self._metered.append(Metered(model, lane, self.store, code, self.secrets))
        return self._metered[-1]

    def _lane(self, model: ModelConfig) -> Lane | None:
        """Raises ConfigError."""
        return None if self.lanes is None else self.lanes.lane(model)

    def keep_in(self, store: CallStore) -> None:
        """From now on replies are kept there. A run directory is made only when every model is open."""
        self.store = store
        for metered in self._metered:
            metered.store = store
