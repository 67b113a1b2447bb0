"""Gives the vectors in an order of its own."""

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
        return Embeddings(vectors=tuple(letters(text) for text in sorted(texts, key=len)), model=self.model)
