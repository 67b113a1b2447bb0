"""Keeps a lock that belongs to the first event loop in which two waited for it."""

import asyncio
from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model
        self.lock = asyncio.Lock()

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        async with self.lock:  # the fault
            await asyncio.sleep(0)
        return Embeddings(vectors=tuple(letters(text) for text in texts), model=self.model)
