"""How similar two texts are, by the embedder that the run is configured with."""

from __future__ import annotations

import time
from collections.abc import Sequence

from karenina_judging.services import Similarities
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.tasks import EMBEDDING

from karenina_core.errors import KareninaError, PluginError
from karenina_core.plugin.application import Karenina
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.config import VerificationConfig

from ..ports.call_port import CallPort
from ..ports.retry import Attempts, with_retries
from ..records.call_facts import record_of
from .embedding import Embeddings, cosine
from .shared import embedder_of


async def similarities(
    app: Karenina, config: VerificationConfig, calls: list[CallRecord], pairs: Sequence[tuple[str, str]]
) -> Similarities:
    """Embed every text once, all in one call, and compare them pair by pair. Raises PortError or PluginError.

    The call is tried again like that of a model, and recorded in `calls`, those of the item, as the task `embedding`.
    """
    name, model = config.embedding_check_embedder, config.embedding_check_model
    embedder = embedder_of(app, name, model)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    attempts, started = Attempts(), time.monotonic()
    found: Embeddings | None = None
    try:
        found = await with_retries(
            lambda: embedder.aembed(texts), config.retry_policy, max_elapsed=config.call_seconds, attempts=attempts
        )
        vectors = dict(zip(texts, found.vectors, strict=True))
        scores = tuple(cosine(vectors[one], vectors[other]) for one, other in pairs)
    except KareninaError as error:
        if attempts.count or not attempts.kept_out:  # else no embedder was asked
            calls.append(_record(embedder, found, attempts, started, error))
        raise
    calls.append(_record(embedder, found, attempts, started))
    return Similarities(scores, found.model)


def _record(
    embedder: CallPort, found: Embeddings | None, attempts: Attempts, started: float, error: KareninaError | None = None
) -> CallRecord:
    if not embedder.needs_provider:
        attempts.count = 0  # no embedder is asked
    who = (EMBEDDING, f"{embedder.target.name}:{found.model if found else embedder.target.model}")
    facts = {"usage": found.usage, "usage_unavailable": found.usage_unavailable} if found else {}
    return record_of(who, attempts, started, error, **facts)


def embedder_problem(app: Karenina, handle: TemplateHandle, config: VerificationConfig) -> str | None:
    """Why the fields of a template that are compared by meaning cannot be: the configured embedder does not work here.
    None where it does, or there are no such fields."""
    semantic = [field.name for field in handle.fields() if field.semantic]
    if not semantic:
        return None
    name = config.embedding_check_embedder
    try:
        problem = embedder_of(app, name, config.embedding_check_model).problem()
    except PluginError as error:
        problem = f"{error}.{app.inactive()}"
    return f"{', '.join(semantic)}: SemanticMatch needs the embedder {name!r}: {problem}" if problem else None
