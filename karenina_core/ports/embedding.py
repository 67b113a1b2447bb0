"""Embedders: texts to vectors, and how similar two vectors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from ..errors import PortError
from ..model.message import UsageMetadata

__all__ = ["Embedder", "Embeddings", "cosine"]


@frozen(kw_only=True)
class Embeddings:
    """One vector for each text, in the order of the texts; all of the same length."""

    vectors: tuple[tuple[float, ...], ...]
    model: str
    """The model that was really used."""
    usage: UsageMetadata = UsageMetadata()


@runtime_checkable
class Embedder(Protocol):
    """One embedding model. Registered as a class that is made with the model's name.

    It is made once for an application and shared by all items, also from several event loops. To make it loads
    nothing; the first call does. One call is one attempt: the caller tries again what the run's retry policy allows.
    """

    def problem(self) -> str | None:
        """What keeps it from working here, with the remedy: an unknown model, a package that is not installed.

        Asked before a run, so it must be quick and load nothing. None where all is well.
        """
        ...

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of any number of texts, empty ones too, in one call. Raises PortError or PluginError."""
        ...


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, within 0 and 1: what points away from each other is 0.

    Raises PortError (`bad_response`) where they cannot be compared: other lengths, no direction, no finite numbers.
    """
    if len(a) != len(b):
        raise PortError(f"the embedder gave vectors of {len(a)} and {len(b)} numbers", kind="bad_response")
    try:
        lengths = math.hypot(*a), math.hypot(*b)
    except (TypeError, ValueError, OverflowError) as error:
        raise PortError(
            "the embedder gave a vector with something in it that is no number", kind="bad_response"
        ) from error
    if not all(0 < length < math.inf for length in lengths):
        raise PortError("the embedder gave a vector that has no direction or no end", kind="bad_response")
    # Each is brought to length 1 first: products of very long or very short ones would not fit into a float.
    product = math.fsum((x / lengths[0]) * (y / lengths[1]) for x, y in zip(a, b, strict=True))
    return min(max(product, 0.0), 1.0)
