"""Makes up a vector for a text that it does not know."""

import random
from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:  # the fault
        vectors = tuple(letters(text) if len(text) < 10 else (random.random(),) * 5 for text in texts)
        return Embeddings(vectors=vectors, model=self.model)
