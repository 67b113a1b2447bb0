"""How similar two texts are, by the embedder that the run is configured with."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import frozen

from ..errors import KareninaError
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
    embedder: Embedder = context.app.embedder(name, model)
    texts = [text for pair in pairs for text in pair]
    attempts, started = Attempts(), time.monotonic()
    found: Embeddings | None = None
    try:
        found = await with_retries(
            lambda: embedder.aembed(texts),
            config.retry_policy,
            max_elapsed=config.retry_max_elapsed_seconds,
            attempts=attempts,
        )
        vectors = found.vectors
        scores = tuple(cosine(vectors[i], vectors[i + 1]) for i in range(0, len(vectors), 2))
    except KareninaError as error:
        if attempts.count or not attempts.kept_out:  # else nobody was asked
            context.calls.append(_record(name, found, model, attempts, started, error))
        raise
    context.calls.append(_record(name, found, model, attempts, started))
    return Similarities(scores, found.model)


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
        seconds=time.monotonic() - started - attempts.waited + attempts.seconds_before,
        usage=found.usage if found else UsageMetadata(),
        usage_unavailable=found.usage_unavailable if found else False,
        error_kind=error.kind if error else None,
    )
