"""How similar two texts are, by the embedder that the run is configured with."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import frozen

from ..errors import KareninaError, PluginError, PortError, one_line
from ..model.message import UsageMetadata
from ..ports.client import CallRecord
from ..ports.embedding import Embedder, Embeddings, cosine
from ..ports.retry import Attempts, with_retries
from ..prompts.tasks import EMBEDDING
from .context import VerificationContext

__all__ = ["Similarities", "similarities"]


@frozen
class Similarities:
    """One number from 0 to 1 for each pair of texts, and the model that was really used."""

    scores: tuple[float, ...]
    model: str


async def similarities(context: VerificationContext, pairs: Sequence[tuple[str, str]]) -> Similarities:
    """Embed all texts in one call and compare them pair by pair. Raises PortError or PluginError.

    The call is tried again like that of a model, and recorded among those of the item, under the task `embedding`.
    """
    config = context.config
    name, model = config.embedding_check_embedder, config.embedding_check_model
    embedder = context.app.embedder(name, model)
    texts = [text for pair in pairs for text in pair]
    attempts, started = Attempts(), time.monotonic()
    found: Embeddings | None = None
    try:
        found = await with_retries(
            lambda: _embedded(embedder, name, texts),
            config.retry_policy,
            max_elapsed=config.retry_max_elapsed_seconds,
            attempts=attempts,
        )
        vectors = found.vectors
        scores = tuple(cosine(vectors[i], vectors[i + 1]) for i in range(0, len(vectors), 2))
    except KareninaError as error:
        context.calls.append(_record(name, found, model, attempts, started, error))
        raise
    context.calls.append(_record(name, found, model, attempts, started))
    return Similarities(scores, found.model)


async def _embedded(embedder: Embedder, name: str, texts: Sequence[str]) -> Embeddings:
    """One attempt. What an embedder may not do becomes an error that names it."""
    try:
        found: object = await embedder.aembed(texts)
    except (KareninaError, TimeoutError):
        raise
    except Exception as error:  # anybody's code
        raise PluginError(f"the embedder {name!r} failed: {one_line(error)}") from error
    if not isinstance(found, Embeddings) or len(found.vectors) != len(texts):
        raise PortError(
            f"the embedder {name!r} did not give one vector for each of {len(texts)} texts", kind="bad_response"
        )
    return found


def _record(
    name: str,
    found: Embeddings | None,
    model: str,
    attempts: Attempts,
    started: float,
    error: KareninaError | None = None,
) -> CallRecord:
    return CallRecord(
        task=EMBEDDING,
        model=f"{name}:{found.model if found else model}",
        attempts=attempts.count,
        retries=attempts.retries,
        seconds=time.monotonic() - started,
        usage=found.usage if found else UsageMetadata(),
        error_kind=error.kind if error else None,
    )
