"""The item whose stages run, as those see it that its calls go through."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from itertools import count
from typing import Protocol

from attrs import define, field

from karenina_core.ports.middleware import Around, CallTarget


class Meter(Protocol):
    """The middleware in front of everything that a run asks."""

    def of(self, target: CallTarget, plugins: Sequence[str]) -> Around:
        """In front of an embedder or a search tool, as the run asks it; `plugins` are between."""
        ...


@define(eq=False)
class ItemCalls:
    """The item that asks. Its concurrent parts share the count of equal calls."""

    question_id: str = ""
    result_id: str = ""
    meter: Meter | None = None
    """Of the run; None where nothing limits and keeps the calls of embedders and search tools."""
    numbers: dict[str, set[int]] = field(factory=dict)
    removed: set[str] = field(factory=set)
    """See `Cleaner.every`."""
    kept_out: bool = False
    """Whether there was no place for a call, and none is to come: a resumed run may complete the
    item."""
    begun: int = 0
    """Calls of models, embedders and search tools that its stages have begun, each with all its attempts and waits."""
    ended: int = 0

    def reserve(self, key: str) -> int:
        """The number of this call among equal ones of the item: the smallest that is free, counted from 0."""
        taken = self.numbers.setdefault(key, set())
        number = next(number for number in count() if number not in taken) if taken else 0
        taken.add(number)
        return number

    def give_back(self, key: str, number: int) -> None:
        """The call failed; it is made again with the same number."""
        self.numbers[key].discard(number)


current_item: ContextVar[ItemCalls | None] = ContextVar("karenina_item", default=None)
"""The item whose stages run; None outside of a run."""
