"""Keeps the texts of a call where the next call puts its own."""

import asyncio
from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model
        self.texts: Sequence[str] = ()

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:  # the fault
        self.texts = texts
        await asyncio.sleep(0)
        return Embeddings(vectors=tuple(letters(text) for text in self.texts), model=self.model)
