"""Embedders: texts to vectors, and how similar two vectors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import frozen

from ..errors import KareninaError, PluginError, PortError, one_line
from ..model.message import UsageMetadata

__all__ = ["NO_NUMBER", "Embedder", "Embeddings", "NamedEmbedder", "cosine"]

DIGITS = 4
"""Decimals of a similarity. Processors and numbers of threads move the vectors of all-MiniLM-L6-v2 by up to 3e-7 and
similarities likewise (OpenBLAS for Nehalem, Haswell and SkylakeX, one thread and two); the fifth decimal says nothing
about texts."""
NO_NUMBER = "the embedder gave a vector with something in it that is no number"
NO_DIRECTION = "the embedder gave a vector that has no direction or no end"


@frozen(kw_only=True)
class Embeddings:
    """One vector for each text, in the order of the texts; all of as many numbers, which are finite and not all 0."""

    vectors: tuple[tuple[float, ...], ...]
    model: str
    """The model that was really used."""
    usage: UsageMetadata = UsageMetadata()
    usage_unavailable: bool = False
    """Whether the provider did not say how many tokens it took."""


@runtime_checkable
class Embedder(Protocol):
    """One embedding model. Registered as a class that is made with the model's name.

    It is made once for an application and shared by all items, also from several event loops. To make it loads
    nothing; the first call does. One call is one attempt: the caller tries again what the run's retry policy allows.

    One that computes on this machine says so by an attribute, `needs_provider = False`. The calls of any other are
    those of a provider: a run limits, counts and keeps them like the calls of its models. One that tells what they
    cost, in `usage.cost_usd`, says so by `tells_cost = True`; the embedding check with `budget_usd` is refused without.
    """

    def problem(self) -> str | None:
        """What keeps it from working here, with the remedy: an unknown model, a package that is not installed.

        Asked before a run, so it must be quick and load nothing. None where all is well.
        """
        ...

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of any number of texts, empty ones too, in one call. Raises PortError or PluginError."""
        ...


@frozen
class NamedEmbedder:
    """An embedder by its names: what it may not do becomes an error that names it."""

    inner: Any
    name: str
    model: str

    @property
    def needs_provider(self) -> bool:
        """False where no call leaves this machine."""
        return bool(getattr(self.inner, "needs_provider", True))

    @property
    def tells_cost(self) -> bool:
        """Whether it says what its calls cost."""
        return bool(getattr(self.inner, "tells_cost", False))

    def problem(self) -> str | None:
        found: str | None = self.inner.problem()
        return found

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """Raises PluginError, and PortError for anything but one vector for each text that can be compared with the
        others."""
        try:
            found: object = await self.inner.aembed(texts)
        except (KareninaError, TimeoutError):
            raise
        except Exception as error:  # anybody's code
            raise PluginError(f"the embedder {self.name!r} failed: {one_line(error)}") from error
        if not isinstance(found, Embeddings) or len(found.vectors) != len(texts):
            raise PortError(
                f"the embedder {self.name!r} did not give one vector for each of {len(texts)} texts",
                kind="bad_response",
            )
        for vector in found.vectors:
            _check(found.vectors[0], vector)
        return found


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, to four decimals, from 0 (also where they point apart) to 1.

    The last bits of a vector depend on the processor; nothing that is decided by a threshold may.

    Raises PortError (`bad_response`) where they cannot be compared: other lengths, no direction, no finite numbers.
    """
    lengths = _check(b, a), _check(a, b)
    # Each is brought to length 1 first: products of very long or very short ones would not fit into a float.
    product = math.fsum((x / lengths[0]) * (y / lengths[1]) for x, y in zip(a, b, strict=True))
    return round(min(max(product, 0.0), 1.0), DIGITS)


def _check(first: Sequence[float], vector: Sequence[float]) -> float:
    """How long a vector is. Raises PortError where it cannot be compared with the first."""
    try:
        if len(first) != len(vector):
            raise PortError(f"the embedder gave vectors of {len(first)} and {len(vector)} numbers", kind="bad_response")
        length = math.hypot(*vector)
    except (TypeError, ValueError, OverflowError) as error:
        raise PortError(NO_NUMBER, kind="bad_response") from error
    if not 0 < length < math.inf:
        raise PortError(NO_DIRECTION, kind="bad_response")
    return length
