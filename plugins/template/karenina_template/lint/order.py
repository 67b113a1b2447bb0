"""The order of options over a whole benchmark: is the expected one where it is too often to be chance?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .references import number_of, same

__all__ = ["LEAST_LISTS", "RARE", "one_sided_positions"]

LEAST_LISTS = 5
"""Fewer lists say nothing about an author's habit."""
RARE = 0.001
"""One fair benchmark in a thousand would be reported for each of the two ends."""


def one_sided_positions(lists: Iterable[tuple[Sequence[Any], Any]]) -> Iterator[str]:
    """What is odd about the position of the expected value in `(options, expected value)`, in words.

    In a list of k options in any order the expected one is first with probability 1/k, and last likewise. Reported is
    an end where it is so often that this, or more, would happen with a probability below `RARE` (the upper tail
    of the sum of independent draws, computed exactly). Lists that are sorted by the alphabet or by number are left
    out: their order was not chosen, and leaving out by order alone does not change the probabilities of the others. So
    are lists that do not hold the expected value.
    """
    chosen = [
        (options, expected)
        for options, expected in lists
        if len(options) > 1 and not _is_sorted(options) and any(same(option, expected) for option in options)
    ]
    if len(chosen) < LEAST_LISTS:
        return
    chances = [1 / len(options) for options, _ in chosen]
    for position, end in ((0, "first"), (-1, "last")):
        count = sum(same(options[position], expected) for options, expected in chosen)
        if _tail(chances, count) < RARE:
            yield f"the expected value is the {end} option in {count} of {len(chosen)} lists that are in no other order"


def _is_sorted(options: Sequence[Any]) -> bool:
    numbers = [number for option in options if (number := number_of(option)) is not None]
    if len(numbers) == len(options):
        return numbers in (sorted(numbers), sorted(numbers, reverse=True))
    texts = [str(option).casefold() for option in options]
    return texts == sorted(texts)


def _tail(chances: Sequence[float], least: int) -> float:
    """The probability of at least `least` successes in independent draws with these chances."""
    exactly = [1.0]
    for chance in chances:
        stay = [p * (1 - chance) for p in exactly] + [0.0]
        rise = [0.0] + [p * chance for p in exactly]
        exactly = [a + b for a, b in zip(stay, rise, strict=True)]
    return sum(exactly[least:])
