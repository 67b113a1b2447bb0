"""Fails in its own way at text that cannot be encoded."""

from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        vectors = tuple((float(len(text.encode())), float(text.count("e"))) for text in texts)  # the fault
        return Embeddings(vectors=vectors, model=self.model)
