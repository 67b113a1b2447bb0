"""Imports a library to find out whether it is there."""

from collections.abc import Sequence

from karenina_calls.services.embedding import Embeddings


def letters(text: str) -> tuple[float, ...]:
    return tuple(float(text.count(letter)) for letter in "aeiou")


class Planted:
    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        try:
            import torch  # type: ignore[import-not-found]  # the fault
        except ImportError:
            return "torch is not installed: pip install torch"
        return None if torch else ""

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(letters(text) for text in texts), model=self.model)
