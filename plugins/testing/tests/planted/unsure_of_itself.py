"""Says something else whenever it is asked."""

from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model
        self.asked = 0

    def problem(self) -> str | None:  # the fault
        self.asked += 1
        return None if self.asked % 2 else "it has been asked before"

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(letters(text) for text in texts), model=self.model)
