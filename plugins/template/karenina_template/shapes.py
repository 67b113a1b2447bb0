"""Template classes of one shape share what pydantic makes of it: fields of the same names and types have one validator
and one schema, whatever they are described as and compared with.

A benchmark has a template for each question, and most of them are alike but for their texts. pydantic takes some
milliseconds and some forty kilobytes for a class. So of each shape two classes are made as always, the template's and
the one that judges' data is read into; a template of this shape is a plain subclass of the latter, with fields, ground
truths and a strategy of its own, for which pydantic has nothing to do. A class refers to itself, so that only the
collector removes it, which seldom looks while a run is under way; so the subclass of a template that is no longer used
becomes that of the next one.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any

from attrs import field, frozen

from .language.answer import BaseAnswer, verification_of
from .language.extraction import extraction_class, judge_schema
from .language.strategies import AllOf, Condition, FieldCheck
from .lint.positions import Reading, read_schema

MOST = 64
"""Shapes that are kept, those that were used last: 3 MB. Chosen; a benchmark has few."""


@frozen(eq=False)
class Shape:
    """The classes that are made once, and the schema with the first template's descriptions, taken apart too."""

    fields: Mapping[str, Any] = field(repr=False)
    relaxed: type[BaseAnswer]
    schema: Mapping[str, Any] = field(repr=False)
    reading: Reading = field(repr=False)
    unused: list[type[BaseAnswer]] = field(init=False, factory=list, repr=False)
    """Subclasses whose templates are gone."""

    @classmethod
    def of(cls, template: type[BaseAnswer]) -> Shape:
        """That of a template without an author's code."""
        schema = judge_schema(template)
        return cls(template.model_fields, extraction_class(template), schema, read_schema(schema))

    def template(self, declared: Mapping[str, Any], strategy: Condition | None) -> Lent:
        """A template of this shape with these fields, each a `VerifiedField`."""
        verified = {name: verification_of(info) for name, info in declared.items()}
        own = {
            "__pydantic_fields__": {name: _typed(declared.get(name), info) for name, info in self.fields.items()},
            "__verified__": verified,
            "__strategy__": strategy,
            "__tree__": strategy or _all_of(tuple(verified)),
        }
        try:
            made = self.unused.pop()
        except IndexError:  # other threads take some too
            made = self._subclass()
        for name, value in own.items():
            type.__setattr__(made, name, value)
        return Lent(self, made)

    def _subclass(self) -> type[BaseAnswer]:
        body: dict[str, Any] = {
            "__module__": self.relaxed.__module__,
            "__qualname__": self.relaxed.__qualname__,
            **{name: self.relaxed.__dict__[name] for name in ("__strict__", "__keys__")},
            "__shape__": self,
            "model_config": BaseAnswer.model_config,  # that of the template; the validator has its own
            "model_post_init": BaseAnswer.model_post_init,  # there is no hook of an author's
        }
        # not as pydantic's own metaclass makes one: everything else is inherited
        made: type[BaseAnswer] = ABCMeta.__new__(type(self.relaxed), self.relaxed.__name__, (self.relaxed,), body)
        type.__setattr__(made, "__extraction__", made)
        return made

    def described(self, template: type[BaseAnswer]) -> tuple[dict[str, Any], Reading]:
        """The schema with the descriptions of a template's fields, which is JSON data already, and the same taken
        apart."""
        fields = template.model_fields
        descriptions = {name: fields[name].description or "" for name in self.schema["properties"]}
        properties = {
            name: {**part, "description": descriptions[name]} for name, part in self.schema["properties"].items()
        }
        return {**self.schema, "properties": properties}, self.reading.described(descriptions)


@lru_cache(maxsize=MOST)
def _all_of(names: tuple[str, ...]) -> AllOf:
    return AllOf(map(FieldCheck, names))


class Lent:
    """The class of a template. When this is gone, the class becomes that of another template of the shape."""

    __slots__ = ("_shape", "cls")

    def __init__(self, shape: Shape, cls: type[BaseAnswer]) -> None:
        self._shape = shape
        self.cls = cls

    def __del__(self) -> None:
        self._shape.unused.append(self.cls)


def shape_of(template: type[BaseAnswer]) -> Shape | None:
    """The shape that has made a template; None of any other."""
    found: Shape | None = template.__dict__.get("__shape__")
    return found


def _typed(declared: Any, info: Any) -> Any:
    """The field that a template declares, with the type of the class's."""
    if declared is None:
        return info
    declared.annotation = info.annotation
    return declared


class Shapes:
    """The shapes that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Shape] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], type[BaseAnswer]]) -> Shape:
        """That of this key; `make` gives a template of it. Two threads may make it at the same time."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        found = Shape.of(make())
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return found
