"""Embedders and search tools as an application lends them: whoever asks, the calls of a run are the run's."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from .embedding import Embeddings, NamedEmbedder
from .item_calls import current_item
from .search import NamedSearch, SearchResult

__all__ = ["SharedEmbedder", "SharedSearch"]


@frozen
class SharedEmbedder(NamedEmbedder):
    """An `Embedder`, inside its middleware.

    Where it asks a provider, a call from within a run goes through the run: it has a place in its gateway, and its
    vectors are kept in the run's journal before they are used.
    """

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Raises PluginError, and PortError for anything but one vector for each text."""
        asked, item = NamedEmbedder(self.inner, self.name, self.model), current_item.get()
        if item is None or item.meter is None or not self.needs_provider:
            return await asked.aembed(texts)
        item.begun += 1
        try:
            return await item.meter.of_embedder(asked).aembed(texts)
        finally:
            item.ended += 1


@frozen
class SharedSearch(NamedSearch):
    """A `SearchTool`, inside its middleware: what it finds within a run is kept in the run's journal before it is
    used."""

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """Raises SearchError."""
        item = current_item.get()
        if item is None or item.meter is None:
            return await self.inner.asearch(query)
        item.begun += 1
        try:
            return await item.meter.of_search(NamedSearch(self.inner, self.name)).asearch(query)
        finally:
            item.ended += 1
