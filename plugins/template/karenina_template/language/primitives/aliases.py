"""One thing with several names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen

from ..normalize import SynonymMap, as_text, read_normalizers
from .base import VerificationPrimitive


def _names(value: Any) -> tuple[str, ...]:
    """A plain string would be taken apart into its characters, so it is refused."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"aliases needs a list of texts, not {value!r}")
    names = tuple(value)
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(f"aliases needs texts that are not empty, not {list(names)!r}")
    return names


@frozen
class AliasMatch(VerificationPrimitive):
    """The expected text or one of its `aliases`, after normalization."""

    aliases: tuple[str, ...] = field(converter=_names)
    normalize: tuple[str | SynonymMap, ...] = field(
        default=("lowercase", "strip", "collapse_whitespace"), converter=read_normalizers
    )

    def check(self, extracted: Any, expected: Any) -> bool:
        found = as_text(extracted, self.normalize)
        return any(found == as_text(name, self.normalize) for name in (expected, *self.aliases))

    def check_ground_truth(self, expected: Any) -> None:
        if not isinstance(expected, str):
            raise TypeError(f"AliasMatch compares names, which are texts, not {expected!r}")

    def other_forms(self, expected: Any) -> Sequence[str]:
        return self.aliases
