"""The embedder `sentence_transformers`: any model of the library of that name, where it is installed."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Sequence
from typing import Any

from karenina_calls.services.embedding import Embeddings

from karenina_core import hookimpl
from karenina_core.errors import PluginError, PortError, one_line
from karenina_core.plugin.registry import is_installed
from karenina_core.values.message import UsageMetadata

PACKAGE = "sentence_transformers"
INSTALL = 'pip install "karenina-embedding[sentence-transformers]"'


class SentenceTransformers:
    """An `EmbedderPort` of one model: a name or a folder, as the library takes it.

    The library downloads a model that it does not have yet. Where that takes longer than a call may
    (`retry_max_elapsed_seconds`), the items of that time go without; download the model beforehand.
    """

    needs_provider = False

    def __init__(self, model: str) -> None:
        self.model = model
        self._lock = threading.Lock()
        self._loaded: Any = None

    def problem(self) -> str | None:
        if not is_installed(PACKAGE):
            return f"the package sentence-transformers is not installed: {INSTALL}"
        return None if self.model.strip() else "embedding_check_model must name a model"

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Raises PluginError where the library or the model cannot be loaded, PortError where it fails."""
        if problem := self.problem():
            raise PluginError(problem)
        vectors = await asyncio.to_thread(self._encoded, list(texts))
        return Embeddings(vectors=vectors, model=self.model, usage=UsageMetadata(cost_usd=0.0, model=self.model))

    def _encoded(self, texts: list[str]) -> tuple[tuple[float, ...], ...]:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = importlib.import_module(PACKAGE).SentenceTransformer(self.model)
                except ImportError as error:
                    raise PluginError(f"sentence-transformers is broken ({one_line(error)}); {INSTALL}") from error
                except Exception as error:  # a name that is unknown, no network, a file that is damaged
                    raise PluginError(
                        f"sentence-transformers cannot load {self.model!r} ({one_line(error)}); check "
                        "embedding_check_model, or download the model beforehand"
                    ) from error
            if not texts:
                return ()
            try:
                rows = self._loaded.encode(texts, show_progress_bar=False)
                return tuple(tuple(float(number) for number in row) for row in rows)
            except Exception as error:  # the library's failures have no common base
                raise PortError(f"sentence-transformers failed: {one_line(error)}", kind="plugin") from error


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add(SentenceTransformers, name="sentence_transformers")
