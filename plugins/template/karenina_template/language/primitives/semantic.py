"""Texts that mean the same."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from .base import VerificationPrimitive
from .numeric import read_number
from .parameters import is_number

__all__ = ["SemanticMatch"]


def _share(_: object, attribute: Any, value: Any) -> None:
    if not is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} must be a number from 0 to 1, not {value!r}")
    if value == 0:
        raise ValueError(f"a {attribute.name} of 0 would accept every text; give a higher one, such as 0.85")


@frozen
class SemanticMatch(VerificationPrimitive):
    """A text whose similarity to the expected text is at least `threshold`.

    It does not compute similarities: its caller does, with an embedding model, and asks `accepts`.
    """

    threshold: float = field(default=0.85, validator=_share)

    def check(self, extracted: Any, expected: Any) -> bool:
        """Always raises NotImplementedError: two texts alone do not say how similar they are."""
        raise NotImplementedError(
            "SemanticMatch needs a similarity: compute that of the two texts with an embedding model and call "
            "accepts(similarity), or switch on the embedding check of the run"
        )

    def accepts(self, similarity: Any) -> bool:
        """Whether this similarity (1 for the same meaning) is enough. Raises TypeError or ValueError for no number."""
        if isinstance(similarity, str):
            raise TypeError(f"a similarity must be a number, not {similarity!r}")
        return read_number(similarity) >= self.threshold

    def check_ground_truth(self, expected: Any) -> None:
        if not isinstance(expected, str):
            raise TypeError(f"SemanticMatch compares texts, not {expected!r}")
        if not expected.strip():
            raise ValueError("SemanticMatch needs a text with a meaning, not an empty one")
