"""Reads its weights when it is made."""

from collections.abc import Sequence
from pathlib import Path

from karenina_calls.services.embedding import Embeddings


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model
        self.weights = Path(__file__).read_bytes()  # the fault

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        vectors = tuple((float(len(text)), float(len(self.weights))) for text in texts)
        return Embeddings(vectors=vectors, model=self.model)
