"""Making one trait fail beside others: a judge that does not answer about it, fields of it that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import asdict, define, field, fields

from karenina_core.errors import PortError
from karenina_core.values.rubric import RubricTrait

from ..fakes import ScriptedCall, ScriptedReply

__all__ = ["FailingJudge", "Reads", "marks_of", "poisoned", "sizes", "unusable"]


def marks_of(trait: RubricTrait, others: Sequence[RubricTrait], text: str) -> list[str]:
    """What a prompt about this trait is known by: its name, and what it says in several words.

    What other traits or the answer say too is none.
    """
    foreign = {mark for other in others for mark in _texts(other)}
    return [mark for mark in _texts(trait) if mark not in foreign and mark not in text]


def _texts(trait: RubricTrait) -> list[str]:
    found: list[str] = [trait.name]
    waiting: list[Any] = list(asdict(trait).values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and len(value.split()) > 1:
            found.append(value)
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
    return found


def sizes(schema: Any) -> set[int]:
    """How many properties the objects of a schema have."""
    if isinstance(schema, list):
        return {size for inner in schema for size in sizes(inner)}
    if not isinstance(schema, Mapping):
        return set()
    own = {len(schema["properties"])} if isinstance(schema.get("properties"), Mapping) else set()
    return own | {size for inner in schema.values() for size in sizes(inner)}


@define(eq=False)
class FailingJudge:
    """A judge that fails for one trait only.

    A call that is about this trait alone ends with an error. From the reply to a call about several, what belongs to
    the trait is left out: what is under its name, under a property that is described by it, in an entry that names
    it, or in its place where there is one entry for each trait.
    """

    marks: Sequence[str]
    foreign: Sequence[str]
    """What prompts about other traits are known by."""
    place: tuple[int, int] | None
    """Which trait it is, counted from 0, and of how many; None where replies have no entry for each trait."""
    replies: Callable[[ScriptedCall], Any]
    failures: int = 0
    """Calls that failed, or whose reply was cut."""
    named: bool = field(default=True, init=False)
    """Whether it is sure that the trait is the one: its place does not tell where traits are asked in another order."""

    def __call__(self, call: ScriptedCall) -> ScriptedReply:
        reply: Any = None
        if not any(mark in call.text for mark in self.marks):
            reply = self.replies(call)
        elif not any(mark in call.text for mark in self.foreign):
            self.failures += 1
            reply = PortError("the server is down", kind="server")
        else:
            reply = self.replies(call)
            if call.output is not None and isinstance(reply, Mapping):
                cut = self._cut(dict(reply), call.output.schema)
                self.failures += cut != reply
                reply = cut
        result: ScriptedReply = reply
        return result

    def _cut(self, value: Any, schema: Any) -> Any:
        schema = schema if isinstance(schema, Mapping) else {}
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            own = [key for key in value if key in self.marks or self._is_about(properties.get(key, {}))]
            own = own or self._in_place(list(value))
            return {k: self._cut(inner, properties.get(k, {})) for k, inner in value.items() if k not in own}
        if isinstance(value, list):
            return [self._cut(inner, schema.get("items")) for inner in value if not self._names(inner)]
        return value

    def _in_place(self, keys: list[str]) -> list[str]:
        if self.place is None or len(keys) != self.place[1]:
            return []
        self.named = False
        return [keys[self.place[0]]]

    def _is_about(self, schema: Any) -> bool:
        text = json.dumps(schema, ensure_ascii=False, default=str)
        return any(mark in text for mark in self.marks) and not any(mark in text for mark in self.foreign)

    def _names(self, entry: Any) -> bool:
        return isinstance(entry, dict) and any(
            inner in self.marks for inner in entry.values() if isinstance(inner, str)
        )


def _own_fields(cls: type) -> set[str]:
    base = {attribute.name for attribute in fields(RubricTrait)}
    return {attribute.name for attribute in fields(cls)} - base


@define(eq=False)
class Reads:
    """How often own fields of a trait were read, and the read that fails."""

    failing: int
    """Counted from 1."""
    count: int = 0

    @property
    def failed(self) -> bool:
        return self.count >= self.failing


def poisoned(trait: RubricTrait, reads: Reads) -> Any:
    """The same trait, of which one read of an own field fails; later, to report it, they can be read."""
    own = _own_fields(type(trait))

    def read(self: Any, name: str) -> Any:
        if name in own:
            reads.count += 1
            if reads.count == reads.failing:
                raise RuntimeError(f"{name} of this trait cannot be read")
        return object.__getattribute__(self, name)

    return _remade(trait, {"__getattribute__": read}, {})


def unusable(trait: RubricTrait) -> Any:
    """The same trait, whose own fields can be read, and what they hold cannot be used."""
    return _remade(trait, {}, dict.fromkeys(_own_fields(type(trait)), _Unusable()))


def _remade(trait: RubricTrait, behaviour: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    cls = type(trait)
    made: Any = object.__new__(type(cls.__name__, (cls,), dict(behaviour)))
    for attribute in fields(cls):
        object.__setattr__(made, attribute.name, values.get(attribute.name, getattr(trait, attribute.name)))
    return made


def _fails(*_: Any) -> Any:
    raise RuntimeError("a field of this trait cannot be used")


USES = "str format bool int float index len iter contains getitem hash eq ne lt le gt ge add radd mul rmul call"


class _Unusable:
    """Whatever is done with it fails."""

    __hash__ = _fails

    def __getattr__(self, name: str) -> Any:
        _fails()


for _use in USES.split():
    setattr(_Unusable, f"__{_use}__", _fails)
