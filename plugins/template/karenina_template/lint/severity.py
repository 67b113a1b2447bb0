"""Which places of a schema reveal which expected values, and how much.

To search every place for every value takes time with the square of the fields. In a `Reach` each place is read once,
and each value leads to the places that hold the beginning of its words, its number, or a piece of data equal to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from ..language.to_json import shown
from .patterns import Severity, Weighed
from .positions import Path, Place, scalars
from .references import (
    ANY,
    Mention,
    Scalar,
    Targets,
    indexed,
    is_common,
    is_trivial,
    keys_of_data,
    mentions,
    part_of_name,
    same,
    words_of,
)
from .spelling import Wanted, number_of, prepared

_LESS: Mapping[Severity, Severity] = {"leak": "hint", "hint": "note", "note": "note"}
_RANK: Mapping[Severity, int] = {"leak": 0, "hint": 1, "note": 2}

_TELLING = frozenset(("truth", "expected", "correct", "gold", "solution", "verification", "verify", "answer"))
_BESIDE = frozenset(("ground", "value", "with", "right", "standard", "x", "the"))
"""Words of keys under which the right answer is kept: one of the first, and nothing but these."""


Value = tuple[str, bool, str]


@frozen(kw_only=True)
class Subject:
    """What is looked for: the expected value of one field, or of one nested in it."""

    name: str
    path: Path
    """The place of its field in the schema."""
    targets: Targets
    """The value, or the members of a collection."""
    many: bool
    options: Sequence[Any] = ()
    """The values that the schema lists for the field."""
    in_schema: bool = True
    """Whether the schema has a field of this name at all."""
    question: str = ""

    kind: Value = field(init=False)
    """Of the fields that expect the same: their values, whether these are a collection, and their options."""

    @kind.default
    def _kind(self) -> Value:
        return repr(self.values), self.many, repr(self.options)

    @property
    def values(self) -> Sequence[Scalar]:
        """Those that are looked for."""
        return self.targets.values

    def owns(self, path: Path) -> bool:
        """Whether a place at `path` speaks about this field."""
        return not self.in_schema or (path != () and self.path[: len(path)] == path)

    def is_known(self, value: Scalar) -> bool:
        """Whether the question itself names the value."""
        return bool(self.question) and bool(mentions(self.question, value))

    @property
    def may_be_a_name(self) -> bool:
        """Whether a text may name a part of the value, see `part_of_name`."""
        return len(self.values) == 1 and len(str(self.values[0]).split()) > 1

    def discriminates(self, parents: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the field only tells the alternatives of a union apart; then each of them allows one value."""
        named = [node["discriminator"] for node in parents if isinstance(node.get("discriminator"), Mapping)]
        return any(item.get("propertyName") == self.path[-1] for item in named)


def weigh(place: Place, subject: Subject, *, named: bool = True) -> Weighed | None:
    """What the place reveals about the value, or None where it reveals nothing. `named`: a text may name the value."""
    if place.where in ("default", "examples"):
        return _in_data(place, subject)
    if place.where == "extra":
        return _in_extra(place, subject)
    own, is_name = subject.owns(place.path), place.where == "name"
    found = _in_text(str(place.value), subject, own=own, is_name=is_name) if named else None
    if found or not own or is_name or len(subject.values) > 1 or subject.options:
        return found
    part = part_of_name(str(place.value), subject.values[0])
    if part is None or mentions(subject.question, part):
        return None
    return "hint", f"names part of the expected value, {shown(part)}"


def _worst(weighed: Iterable[Weighed | None]) -> Weighed | None:
    return min((item for item in weighed if item is not None), key=lambda item: _RANK[item[0]], default=None)


# Texts


def _in_text(text: str, subject: Subject, *, own: bool, is_name: bool = False) -> Weighed | None:
    if len(subject.values) > 1:
        return _members_in_text(text, subject, own=own)
    value = subject.values[0]
    if isinstance(value, bool) and (not own or is_name):
        return None
    found = mentions(text, value)
    if isinstance(value, bool):
        stated = any(mention.stated for mention in found)
        return ("note", f"says that {shown(value)} is right") if stated else None
    if number_of(value) is not None:
        weights = [(_number_severity(value, mention, subject, own), mention) for mention in found]
    else:
        weights = [(_text_severity(value, mention, text, subject, own), mention) for mention in found]
    weighed: list[Weighed] = []
    for severity, mention in weights:
        several = " as one of several" if severity != "leak" and (mention.offered or mention.among > 1) else ""
        names = f"names the expected value{several}, {shown(mention.found)}"
        says = f"says that {shown(mention.found)} is right" if mention.stated and severity == "leak" else names
        weighed += [(severity, says)] if severity is not None else []
    return _worst(weighed)


def _number_severity(value: Scalar, mention: Mention, subject: Subject, own: bool) -> Severity | None:
    common = is_common(value)
    if mention.stated and (own or not common):
        return "leak"
    if mention.in_range or common:
        if not own or (common and not mention.example):
            return None
        return "note" if mention.in_range else "hint"
    specific = _is_specific(value)
    if not own:
        return "hint" if specific else None
    severity: Severity = "leak" if specific or mention.example else "hint"
    return _LESS[severity] if subject.is_known(value) else severity


def _is_specific(value: Scalar) -> bool:
    """A number that hardly occurs by chance: not whole, or with three significant digits."""
    number = number_of(value)
    if number is None:
        return False
    return number != number.to_integral_value() or len(number.normalize().as_tuple().digits) > 2


def _text_severity(value: Scalar, mention: Mention, text: str, subject: Subject, own: bool) -> Severity | None:
    if mention.stated and (own or not is_trivial(value)):
        return "leak"
    if is_trivial(value):
        return None
    if subject.options:
        others = [o for o in subject.options if isinstance(o, str) and not same(o, value) and mentions(text, o)]
        severity: Severity | None = None if others else "hint"
    elif mention.offered or mention.among > 2:
        severity = "hint"
    elif _is_plain_word(value) and (mention.among == 2 or not own):
        severity = "hint"  # two names with `or` may mean the same thing, two words hardly
    else:
        severity = "leak"
    return _LESS[severity] if severity is not None and subject.is_known(value) else severity


def _is_plain_word(value: Scalar) -> bool:
    """One word in lower case, which another field may use for a reason of its own."""
    return isinstance(value, str) and value.isalpha() and value.islower()


def _members_in_text(text: str, subject: Subject, *, own: bool) -> Weighed | None:
    found = subject.targets.named_in(text)
    clear = [value for value in found if not is_trivial(value) and (number_of(value) is None or _is_specific(value))]
    if not clear and not (own and len(found) == len(subject.values)):
        return None
    others = [o for o in subject.options if not subject.targets.equal_to(o) and mentions(text, str(o))]
    if others or (not own and len(found) < len(subject.values)):
        return None
    named = ", ".join(shown(spots[0].found, 30) for spots in found.values())
    if len(found) < len(subject.values):
        return "hint", f"names {len(found)} of the {len(subject.values)} expected members, {named}"
    spots_of_all = [mention for spots in found.values() for mention in spots]
    offered = any(mention.offered or mention.among > len(subject.values) for mention in spots_of_all)
    vague = offered or subject.options or not clear or (not own and all(map(_is_plain_word, found)))
    known = all(map(subject.is_known, subject.values))
    return ("hint" if vague or known else "leak"), f"names every expected member, {named}"


# Defaults and examples


def _in_data(place: Place, subject: Subject) -> Weighed | None:
    examples = place.where == "examples"
    items = place.value if examples and isinstance(place.value, list) else [place.value]
    if subject.path[: len(place.path)] == place.path and subject.in_schema:
        inside = subject.path[len(place.path) :]
        dug = [found for item in items for found in _dug(item, inside)]
        return _equal(dug, subject, alone=not examples or len({repr(item) for item in dug}) == 1)
    texts = (scalar for _, scalar in scalars(items) if isinstance(scalar, str))
    return _worst(_in_text(text, subject, own=not subject.in_schema) for text in texts)


def _dug(data: Any, keys: Path) -> Iterator[Any]:
    """What is under the keys, in every element of a list on the way."""
    if not keys:
        yield data
    elif isinstance(data, Mapping):
        if keys[0] in data:
            yield from _dug(data[keys[0]], keys[1:])
    elif isinstance(data, list):
        for item in data:
            yield from _dug(item, keys)


def _equal(data: Sequence[Any], subject: Subject, *, alone: bool) -> Weighed | None:
    """Data given for the field itself. `alone`: there is one piece of it only."""
    targets, given = subject.targets, [scalar for _, scalar in scalars(list(data))]
    equal = {value for item in given for value in targets.equal_to(item)}
    named = {value for item in given if isinstance(item, str) for value in targets.named_in(item)}
    matched = [value for value in subject.values if value in equal or (value in named and not is_trivial(value))]
    if not matched:
        return None
    what = ", ".join(shown(value, 30) for value in matched)
    weak = all(map(is_trivial, matched))
    if len(matched) < len(subject.values):
        text = f"holds {len(matched)} of the {len(subject.values)} expected members, {what}"
        return None if weak else ("hint", text)
    if not alone and (weak or subject.options):
        return None
    return ("hint" if weak else "leak"), f"holds the expected value, {what}"


# What is no keyword of JSON Schema


def _in_extra(place: Place, subject: Subject) -> Weighed | None:
    own = subject.owns(place.path)
    found: list[Weighed | None] = []
    for keys, scalar in scalars(place.value):
        all_words = [words_of(key).casefold().split() for key in (place.key, *keys)]
        stems = [{word.removesuffix("s") for word in words} for words in all_words]
        telling = any(words & _TELLING and words <= _TELLING | _BESIDE for words in stems)
        equal = subject.targets.equal_to(scalar)
        strong = any(not is_trivial(value) for value in equal)
        if equal and (telling or (own and strong)):
            found.append(("leak", f"holds the expected value, {shown(equal[0])}"))
        elif any(_is_specific(value) for value in equal):
            found.append(("hint", f"holds the expected value, {shown(equal[0])}"))
        elif isinstance(scalar, str):
            found.append(_in_text(scalar, subject, own=own))
        if own and telling:
            found.append(("hint", "looks like ground truth"))
        found += [_in_text(key, subject, own=own) for key in keys]
    return _worst(found)


_DATA = ("default", "examples")


@frozen(eq=False)
class _Group:
    """What fields with equal expected values and equal options have in common."""

    named_in: frozenset[int]
    """The places that may name the value."""
    elsewhere: Mapping[int, Weighed]
    """What places that belong to none of these fields reveal about the value."""


class Reach:
    """The places of a schema and the subjects that they may reveal."""

    def __init__(self, places: Sequence[Place], subjects: Sequence[Subject]) -> None:
        self.places = places
        self._by_path = indexed((place.path, number) for number, place in enumerate(places))
        self._has_data = not {*_DATA, "extra"}.isdisjoint([place.where for place in places])
        wanted = frozenset[Hashable]().union(*map(self._keys, subjects)) - {ANY}
        named = Wanted.of(wanted)  # the other keys are those of data
        self._by_key = indexed(
            (key, number) for number, place in enumerate(places) for key in _held(place, wanted, named)
        )
        self._homes: dict[Value, set[Path]] = {}
        """Where fields with this value speak about themselves."""
        for subject in subjects:
            path = subject.path
            self._homes.setdefault(subject.kind, set()).update(path[:end] for end in range(1, len(path) + 1))
        self._groups: dict[Value, _Group] = {}

    def weighed(self, subject: Subject) -> Iterator[tuple[Place, Weighed]]:
        """The places that reveal something about the value, in their order, and how much.

        A place of another field that expects the same value reveals it there, and is left out here; so is a model that
        several fields share.
        """
        if not subject.in_schema:
            yield from ((place, found) for place in self.places if (found := weigh(place, subject)))
            return
        group = self._group(subject)
        if not (group.named_in or group.elsewhere or self._has_data or subject.may_be_a_name):
            return
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

    def _keys(self, subject: Subject) -> frozenset[Hashable]:
        return subject.targets.keys(of_data=self._has_data)

    def _group(self, subject: Subject) -> _Group:
        value = subject.kind
        if value not in self._groups:
            keys = self._keys(subject)
            numbers = range(len(self.places)) if ANY in keys else {n for key in keys for n in self._by_key.get(key, ())}
            homes, stranger = self._homes[value], None
            elsewhere: dict[int, Weighed] = {}
            for number in numbers:
                place = self.places[number]
                is_own = place.path in homes if place.path else place.where in _DATA
                if is_own:
                    continue
                stranger = stranger or evolve(subject, path=())
                if found := weigh(place, stranger):
                    elsewhere[number] = found
            self._groups[value] = _Group(frozenset(numbers), elsewhere)
        return self._groups[value]


def _text(place: Place) -> tuple[str, str]:
    return place.where, repr(place.value)


def _held(place: Place, wanted: frozenset[Hashable], named: Wanted) -> set[Hashable]:
    """Those of the wanted keys that occur in this place; `named` are those that a text may hold."""
    if place.where not in (*_DATA, "extra"):
        return prepared(str(place.value)).among(named)
    found: set[Hashable] = set()
    for keys, scalar in scalars(place.value):
        found.update(wanted.intersection(keys_of_data(scalar)))
        for text in (*keys, scalar):
            found |= prepared(text).among(named) if isinstance(text, str) else set()
    return found
