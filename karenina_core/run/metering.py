"""How a run meters its calls: through the lanes of its gateway, and with what its journal holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, field

from ..errors import ConfigError, Problem
from ..model.config import ModelConfig
from ..plugin.application import Karenina
from ..plugin.code import code_behind
from ..plugin.registry import Entry
from ..ports.embedding import NamedEmbedder
from ..ports.metered import CallStore, Lane, MeteredPort
from ..ports.search import NamedSearch
from ..secrets import Secrets
from .batching import NO_DIRECTORY, Batching

__all__ = ["Lanes", "Metering"]

EMBEDDER = "embedder {}"
"""What lanes and budgets know an embedder as, in place of a model's interface."""
SEARCH = "search"
WRITTEN = 1
"""Tokens that an embedder's reply is expected to take: it writes none, and this is the least of a model."""


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
    app: Karenina | None = None
    """Whose plugins serve the calls; their code is part of what the replies are found by."""
    secrets: Secrets = field(factory=Secrets)
    """Of the run: nothing that comes in through a port holds them any more."""
    _ports: list[MeteredPort] = field(factory=list)
    _embedders: dict[tuple[str, str], MeteredPort] = field(factory=dict)

    def around(self, ports: Mapping[str, Any], model: ModelConfig) -> dict[str, Any]:
        """The ports of a model, metered. Where calls are answered without the provider, they wait for no place."""
        asked = any(port.capabilities.needs_provider for port in ports.values())
        lane = self._lane(model) if asked else None
        adapters = self.app.adapters if self.app is not None else None
        entry = None if adapters is None else adapters[adapters.resolve_interface(model.interface).interface]
        code = self._code(entry, "karenina_wrap_port")
        metered = {name: MeteredPort(port, model, lane, self.store, code, self.secrets) for name, port in ports.items()}
        self._ports += metered.values()
        return metered

    def of_embedder(self, embedder: NamedEmbedder) -> MeteredPort:
        """An embedder that asks a provider, metered like a model: the same one whenever it is asked for."""
        name = embedder.name, embedder.model
        if name not in self._embedders:
            model = ModelConfig(model_name=embedder.model, interface=EMBEDDER.format(embedder.name), max_tokens=WRITTEN)
            entry = self.app.embedders.get(embedder.name) if self.app is not None else None
            code = self._code(entry, "karenina_wrap_embedder")
            port = MeteredPort(embedder, model, self._lane(model), self.store, code, self.secrets)
            self._embedders[name] = port
            self._ports.append(self._embedders[name])
        return self._embedders[name]

    def of_search(self, tool: NamedSearch) -> MeteredPort:
        """A search tool: what it finds is kept. It waits for no place, and nobody says what it costs."""
        entry = self.app.search_tools.get(tool.name) if self.app is not None else None
        code = self._code(entry, "karenina_wrap_search_tool")
        model = ModelConfig(model_name=tool.name, interface=SEARCH)
        return MeteredPort(tool, model, None, self.store, code, self.secrets)

    def _code(self, entry: Entry[Any] | None, hook: str) -> str:
        """Of the plugin that serves the calls."""
        return "" if self.app is None or entry is None else code_behind(self.app, entry.plugin, hook)

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
