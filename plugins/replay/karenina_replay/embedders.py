"""Embedders in front of an embedder: one writes down what passes, the other answers from what was written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field, frozen

from karenina_core.errors import KareninaError
from karenina_core.ports.calls import EmbeddingRequest, embeddings_from, embeddings_to, error_from, error_to
from karenina_core.ports.embedding import Embeddings, NamedEmbedder

from .recording import Recording, Writer, recording_of, writer_of
from .settings import ReplaySettings

__all__ = ["RecordingEmbedder", "ReplayingEmbedder", "wrapped"]


def wrapped(embedder: Any, name: str, model: str, settings: ReplaySettings) -> Any:
    """The embedder in front of `embedder` that the settings ask for."""
    if settings.record:
        return RecordingEmbedder(embedder, name, model, writer_of(settings))
    return ReplayingEmbedder(name, model, recording_of(settings))


@frozen(eq=False)
class RecordingEmbedder(NamedEmbedder):
    """Passes every call on and writes it down, with its vectors or its failure."""

    writer: Writer

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        request = EmbeddingRequest(self.name, self.model, tuple(texts))
        try:
            found: Embeddings = await self.inner.aembed(texts)
        except KareninaError as error:
            self.writer.write(request, {"error": error_to(error)})
            raise
        self.writer.write(request, {"reply": embeddings_to(found)})
        return found


@define(eq=False)
class ReplayingEmbedder:
    """Answers from a recording. The embedder behind it is never loaded; it need not even be installed."""

    name: str
    model: str
    recording: Recording
    served: dict[str, int] = field(factory=dict)
    needs_provider = False

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Raises PortError: the recorded failure, or that there is no such call."""
        request = EmbeddingRequest(self.name, self.model, tuple(texts))
        served = self.served.get(request.key, 0)
        self.served[request.key] = served + 1
        reply, error = self.recording.find(request.key, served)
        if reply is not None:
            return embeddings_from(reply)
        if error is not None:
            raise error_from(error)
        raise self.recording.missing(
            request.key, f"task 'embedding' to {self.name}:{self.model}", f"{len(request.texts)} texts"
        )
