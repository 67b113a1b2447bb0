"""The expected values of one field, looked up all at once: the cost follows the words of a text, not the values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from attrs import field, frozen

from .references import Mention, Scalar, mentions
from .spelling import beginnings, number_of, prepared, squeezed

__all__ = ["ANY", "Sought", "keys_of_data"]

_Index = Mapping[Hashable, Sequence[int]]


@frozen(eq=False)
class Sought:
    """Values in their order, indexed by how they begin and by what they are equal to."""

    values: Sequence[Scalar]
    _by_head: _Index = field(init=False, repr=False)
    _by_key: _Index = field(init=False, repr=False)

    @_by_head.default
    def _index_heads(self) -> _Index:
        return _index((head, number) for number, value in enumerate(self.values) for head in _heads(value))

    @_by_key.default
    def _index_keys(self) -> _Index:
        return _index((key, number) for number, value in enumerate(self.values) for key in keys_of_data(value)[:1])

    @property
    def keys(self) -> frozenset[Hashable]:
        """How a text begins that may name one of the values, and what is equal to one; `ANY` where any text may."""
        return frozenset((*self._by_head, *self._by_key))

    def candidates(self, text: str) -> list[Scalar]:
        """The values that the text may name, by how they begin; it is searched for no others."""
        where = prepared(text)
        numbers = {number for head in (ANY, *where.heads, *where.numbers) for number in self._by_head.get(head, ())}
        return [self.values[number] for number in sorted(numbers)]

    def named_in(self, text: str) -> dict[Scalar, list[Mention]]:
        """The values that the text names, in their order, and where."""
        return {value: spots for value in self.candidates(text) if (spots := mentions(text, value))}

    def equal_to(self, given: object) -> list[Scalar]:
        """The values that are the same as a piece of data, spelling and type apart, in their order."""
        numbers = {number for key in keys_of_data(given) for number in self._by_key.get(key, ())}
        return [self.values[number] for number in sorted(numbers)]


ANY = None
"""Stands for the beginning of values that any text may name."""


def _index(pairs: Iterable[tuple[Hashable, int]]) -> _Index:
    groups: dict[Hashable, list[int]] = {}
    for key, number in pairs:
        groups.setdefault(key, []).append(number)
    return groups


def _heads(value: Scalar) -> Sequence[Hashable]:
    number = number_of(value)
    if number is not None:
        return (number,)
    return (ANY,) if isinstance(value, bool) else beginnings(str(value)) or (ANY,)


def keys_of_data(given: object) -> list[tuple[str, object]]:
    """What two pieces of data have in common that are the same. An expected value has the first one only."""
    if isinstance(given, bool):
        return [("truth value", given)]
    number = number_of(given)
    keys: list[tuple[str, object]] = [("number", number)] if number is not None else []
    return [*keys, ("text", squeezed(given))] if isinstance(given, str) and squeezed(given) else keys
