"""What a field accepts whose primitive decides without a ground truth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..language.primitives.base import VerificationPrimitive
from ..language.primitives.text import ContainsAll, ContainsAny, RegexMatch
from .patterns import ANYTHING, spelled_out

__all__ = ["accepted_by", "accepted_texts"]

_OPEN_ENDS = re.compile(r"^\^?\.[*+]\??|(?<!\\)\.[*+]\??\$?$")


def accepted_by(primitives: Mapping[str, VerificationPrimitive]) -> dict[str, tuple[Any, ...]]:
    """Per field whose primitive uses no ground truth: the values of which each alone is right, a list where several
    are needed together. None are known of primitives other than those that look for texts or for a pattern.
    """
    return {
        name: accepted_texts(primitive) for name, primitive in primitives.items() if not primitive.uses_ground_truth
    }


def accepted_texts(primitive: VerificationPrimitive) -> tuple[Any, ...]:
    """The same for one primitive. Of a pattern only texts that it spells out in full, `.*` at its ends apart."""
    if isinstance(primitive, ContainsAny):
        return primitive.substrings
    if isinstance(primitive, ContainsAll):
        return (list(primitive.substrings),)
    if isinstance(primitive, RegexMatch):
        texts = spelled_out(_OPEN_ENDS.sub("", primitive.pattern)) or ()
        return tuple(sorted(text for text in texts if text and ANYTHING not in text))
    return ()
