"""Embedders: texts to vectors, and how similar two vectors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from attrs import frozen

from karenina_core.errors import PortError
from karenina_core.values.message import UsageMetadata

DIGITS = 4
"""Decimals of a similarity. Processors and numbers of threads move the vectors of all-MiniLM-L6-v2 by up to 3e-7 and
similarities likewise (OpenBLAS for Nehalem, Haswell and SkylakeX, one thread and two); the fifth decimal says nothing
about texts."""
NO_NUMBER = "the embedder returned a vector with a value that is not a number"
NO_DIRECTION = "the embedder returned a vector that is zero or not finite"


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
class EmbedderPort(Protocol):
    """One embedding model. Registered as a class that is made with the model's name.

    It is made once for an application and shared by all items, also from several event loops. To make it loads
    nothing; the first call does. One call is one attempt: the caller tries again what the run's retry policy allows.

    One that computes on this machine says so by an attribute, `needs_provider = False`. The calls of any other are
    those of a provider: a run limits, counts and keeps them like the calls of its models. One that reports what they
    cost, in `usage.cost_usd`, says so by `reports_cost = True`; without that, the embedding check with `budget_usd` is
    refused.
    """

    def problem(self) -> str | None:
        """What keeps it from working here, with the remedy: an unknown model, a package that is not installed.

        Asked before a run, so it must be quick and load nothing. None where all is well.
        """
        ...

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of any number of texts, empty ones too, in one call. Raises PortError or PluginError."""
        ...


def check_vectors(vectors: Sequence[Sequence[float]]) -> None:
    """Raises PortError (`bad_response`) for vectors that cannot be compared with each other."""
    for vector in vectors:
        _check(vectors[0], vector)


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
            raise PortError(
                f"the embedder returned vectors of {len(first)} and {len(vector)} numbers", kind="bad_response"
            )
        length = math.hypot(*vector)
    except (TypeError, ValueError, OverflowError) as error:
        raise PortError(NO_NUMBER, kind="bad_response") from error
    if not 0 < length < math.inf:
        raise PortError(NO_DIRECTION, kind="bad_response")
    return length
