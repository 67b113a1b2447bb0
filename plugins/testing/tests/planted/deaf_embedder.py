"""Takes a cancellation for a failure of its server."""

import asyncio
from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        try:
            await asyncio.sleep(0.2)  # the fault
        except asyncio.CancelledError:
            texts = ["nothing"] * len(texts)
        return Embeddings(vectors=tuple(letters(text) for text in texts), model=self.model)
