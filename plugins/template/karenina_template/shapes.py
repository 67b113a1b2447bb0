"""Template classes of one shape share what pydantic makes of it: fields of the same names and types have one validator
and one schema, whatever they are described as and compared with.

A benchmark has a template for each question, and most of them are alike but for their texts. pydantic takes some
milliseconds and some forty kilobytes for a class. So of each shape two classes are made as always, the template's and
the one that judges' data is read into; a template of this shape is a plain subclass of the latter, with fields, ground
truths and a strategy of its own, for which pydantic has nothing to do.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from copy import copy
from typing import Any

from attrs import field, frozen

from .language.answer import BaseAnswer, verification_of
from .language.extraction import extraction_class, judge_schema
from .language.strategies import AllOf, Condition, FieldCheck

MOST = 64
"""Shapes that are kept, those that were used last: 3 MB. Chosen; a benchmark has few."""


@frozen(eq=False)
class Shape:
    """The classes that are made once, and the schema with the first template's descriptions."""

    fields: Mapping[str, Any] = field(repr=False)
    relaxed: type[BaseAnswer]
    schema: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, template: type[BaseAnswer]) -> Shape:
        """That of a template without an author's code."""
        return cls(template.model_fields, extraction_class(template), judge_schema(template))

    def template(self, declared: Mapping[str, Any], strategy: Condition | None) -> type[BaseAnswer]:
        """A template of this shape with these fields, each a `VerifiedField`."""
        verified = {name: verification_of(info) for name, info in declared.items()}
        body: dict[str, Any] = {
            "__module__": self.relaxed.__module__,
            "__qualname__": self.relaxed.__qualname__,
            "__pydantic_fields__": {name: _as(info, declared.get(name)) for name, info in self.fields.items()},
            "__verified__": verified,
            "__strategy__": strategy,
            "__tree__": strategy or AllOf(map(FieldCheck, verified)),
            **{name: self.relaxed.__dict__[name] for name in ("__strict__", "__keys__")},
            "__schema__": self.described(declared),
            "model_config": BaseAnswer.model_config,  # that of the template; the validator has its own
            "model_post_init": BaseAnswer.model_post_init,  # there is no hook of an author's
        }
        # not as pydantic's own metaclass makes one: everything else is inherited
        made: type[BaseAnswer] = ABCMeta.__new__(type(self.relaxed), self.relaxed.__name__, (self.relaxed,), body)
        type.__setattr__(made, "__extraction__", made)
        return made

    def described(self, declared: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with the descriptions of these fields."""
        properties = {
            name: {**part, "description": declared[name].description} if name in declared else part
            for name, part in self.schema["properties"].items()
        }
        return {**self.schema, "properties": properties}


def schema_of_shape(template: type[BaseAnswer]) -> dict[str, Any] | None:
    """The judge's schema of a template that a shape has made, which is JSON data already; None of any other."""
    found: dict[str, Any] | None = template.__dict__.get("__schema__")
    return found


def _as(info: Any, declared: Any) -> Any:
    """The field of a class, as another template declares it."""
    if declared is None:
        return info
    found = copy(info)
    found.description, found.metadata = declared.description, declared.metadata
    return found


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
