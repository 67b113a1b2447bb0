"""Collections of values, with and without an order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from ..normalize import SynonymMap, as_text, canonical, read_normalizers
from .base import VerificationPrimitive
from .parameters import one_of


def _read_set(value: Any) -> set[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"SetContainment compares lists or sets, not {value!r}")
    try:
        return {canonical(member) if isinstance(member, str) else member for member in value}
    except TypeError:
        raise TypeError(f"SetContainment needs members such as texts and numbers, not {value!r}") from None


@frozen
class SetContainment(VerificationPrimitive):
    """Compares two collections as sets; order and repetition do not count, and members must be equal exactly.

    `exact`: the same members. `subset`: nothing extracted that is not expected. `superset`: everything expected was
    extracted. `overlap`: at least `min_overlap` members in common (1 unless given).
    """

    mode: str = field(default="exact", validator=one_of("exact", "subset", "superset", "overlap"))
    min_overlap: int | None = None

    def __attrs_post_init__(self) -> None:
        least = self.min_overlap
        if least is None:
            return
        if self.mode != "overlap":
            raise ValueError(f"min_overlap only means something in mode 'overlap', not in {self.mode!r}")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValueError(f"min_overlap must be a whole number of at least 1, not {least!r}")

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_set(extracted), _read_set(expected)
        if self.mode == "exact":
            return found == wanted
        if self.mode == "subset":
            return found <= wanted
        if self.mode == "superset":
            return found >= wanted
        return len(found & wanted) >= (self.min_overlap or 1)

    def check_ground_truth(self, expected: Any) -> None:
        _read_set(expected)


def _read_list(value: Any) -> list[Any]:
    """Sets are refused too: they have no order that could be right or wrong."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"OrderedMatch compares lists, not {value!r}")
    return list(value)


@frozen
class OrderedMatch(VerificationPrimitive):
    """Lists of the same length whose members are equal one by one, as texts after normalization."""

    normalize: tuple[str | SynonymMap, ...] = field(default=("lowercase", "strip"), converter=read_normalizers)

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_list(extracted), _read_list(expected)
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(
            as_text(one, self.normalize) == as_text(other, self.normalize) for one, other in pairs
        )

    def check_ground_truth(self, expected: Any) -> None:
        _read_list(expected)
