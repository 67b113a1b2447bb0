"""Which places of a schema may reveal which expected values: looked up for all of them at once.

To search every place for every value takes time with the square of the fields. Here each place is read once, and each
value leads to the places that hold the beginning of its words, its number, or a piece of data that is equal to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from .limits import Weighed
from .positions import Path, Place, scalars
from .references import ANY, indexed, keys_of_data
from .severity import Subject, weigh
from .spelling import prepared

_DATA = ("default", "examples")
Value = tuple[str, bool, str]


@frozen(eq=False)
class _Group:
    """What fields with equal expected values and equal options have in common."""

    named_in: frozenset[int]
    """The places that may name the value."""
    elsewhere: Mapping[int, Weighed]
    """What places that belong to none of these fields reveal about the value."""


@frozen(eq=False)
class Reach:
    """The places of a schema and the subjects that they may reveal."""

    places: Sequence[Place]
    _subjects: Sequence[Subject]
    _by_path: Mapping[Path, Sequence[int]] = field(init=False, repr=False)
    _by_key: Mapping[Hashable, Sequence[int]] = field(init=False, repr=False)
    _homes: Mapping[Value, frozenset[Path]] = field(init=False, repr=False)
    _groups: dict[Value, _Group] = field(init=False, factory=dict, repr=False)

    @_by_path.default
    def _index_paths(self) -> Mapping[Path, Sequence[int]]:
        return indexed((place.path, number) for number, place in enumerate(self.places))

    @_by_key.default
    def _index_keys(self) -> Mapping[Hashable, Sequence[int]]:
        wanted = frozenset[Hashable]().union(*(subject.sought.keys for subject in self._subjects)) - {ANY}
        return indexed((key, number) for number, place in enumerate(self.places) for key in _held(place, wanted))

    @_homes.default
    def _find_homes(self) -> Mapping[Value, frozenset[Path]]:
        """Where fields with this value speak about themselves."""
        homes: dict[Value, set[Path]] = {}
        for subject in self._subjects:
            path = subject.path
            homes.setdefault(_value(subject), set()).update(path[:end] for end in range(1, len(path) + 1))
        return {value: frozenset(paths) for value, paths in homes.items()}

    def weighed(self, subject: Subject) -> Iterator[tuple[Place, Weighed]]:
        """The places that reveal something about the value, in their order, and how much.

        A place of another field that expects the same value reveals it there, and is left out here; so is a model that
        several fields share.
        """
        if not subject.in_schema:
            yield from ((place, found) for place in self.places if (found := weigh(place, subject)))
            return
        group = self._group(subject)
        ends = range(len(subject.path) + 1)
        around = {number for end in ends for number in self._by_path.get(subject.path[:end], ())}
        around = {number for number in around if self.places[number].path or self.places[number].where in _DATA}
        own = {_text(self.places[number]) for number in around if subject.owns(self.places[number].path)}
        for number in sorted(around | group.elsewhere.keys()):
            place = self.places[number]
            if number in around:
                found = weigh(place, subject, named=number in group.named_in)
            else:
                found = group.elsewhere[number] if _text(place) not in own else None
            if found is not None:
                yield place, found

    def _group(self, subject: Subject) -> _Group:
        value = _value(subject)
        if value not in self._groups:
            keys = subject.sought.keys
            numbers = range(len(self.places)) if ANY in keys else {n for key in keys for n in self._by_key.get(key, ())}
            homes, stranger = self._homes[value], evolve(subject, path=())
            elsewhere: dict[int, Weighed] = {}
            for number in numbers:
                place = self.places[number]
                is_own = place.path in homes if place.path else place.where in _DATA
                if not is_own and (found := weigh(place, stranger)):
                    elsewhere[number] = found
            self._groups[value] = _Group(frozenset(numbers), elsewhere)
        return self._groups[value]


def _value(subject: Subject) -> Value:
    return repr(subject.values), subject.many, repr(subject.options)


def _text(place: Place) -> tuple[str, str]:
    return place.where, repr(place.value)


def _held(place: Place, wanted: frozenset[Hashable]) -> set[Hashable]:
    """Those of the wanted keys that occur in this place."""
    if place.where not in (*_DATA, "extra"):
        return _begun(str(place.value), wanted)
    found: set[Hashable] = set()
    for keys, scalar in scalars(place.value):
        found.update(wanted.intersection(keys_of_data(scalar)))
        for text in (*keys, scalar):
            found |= _begun(text, wanted) if isinstance(text, str) else set()
    return found


def _begun(text: str, wanted: frozenset[Hashable]) -> set[Hashable]:
    where = prepared(text)
    return {key for keys in (where.heads, where.numbers) for key in keys if key in wanted}
