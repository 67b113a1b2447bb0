"""An embedder that needs no model and no network: texts with the same three letters in a row are alike."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from karenina_core import hookimpl
from karenina_core.ports import Embeddings

KARENINA_API = 1
MODEL = "letters-3"
WORDS = re.compile(r"[^\W_]+")
SIZE = 512
"""Numbers of a vector: few of the about 2,000 trigrams of English then share one."""


class Trigrams:
    """`embedder = "trigrams"`, with the only model that there is, `letters-3`."""

    needs_provider = False
    """It computes on this machine, so no limit of a provider holds for it."""

    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        """What keeps it from working; asked before a run."""
        return None if self.model == MODEL else f"there is no model {self.model!r}; write {MODEL!r}"

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(vector(text) for text in texts), model=self.model)


def vector(text: str) -> tuple[float, ...]:
    """How often each trigram occurs, by a hash that is the same everywhere. No vector is all zeros: the first is 1."""
    words = " ".join(WORDS.findall(text.lower()))
    letters = f"  {words} "
    counts = Counter(crc32(letters[at : at + 3].encode("utf-8", "replace")) % SIZE for at in range(len(letters) - 2))
    return (1.0, *(float(counts[number]) for number in range(SIZE)))


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add(Trigrams, name="trigrams")
