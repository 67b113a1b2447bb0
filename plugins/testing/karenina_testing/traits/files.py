"""Would a benchmark file with such a trait be written, and read again as the same trait?"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from karenina_core.values.rubric import RubricTrait

from ..checks import Fault, Raised, attempt
from ..watch.source_lines import line_of_attribute
from .cases import Trial, not_json

__all__ = ["round_trip"]

TAKEN = (
    "RubricTrait",
    "LLMRubricTrait",
    "RegexTrait",
    "CallableTrait",
    "MetricRubricTrait",
    "AgenticRubricTrait",
    "DynamicRubricTrait",
)
"""What published ratings are called in benchmark files."""
OWN_PLACES = ("name", "description")
RESERVED = ("dynamic_trait_type",)
"""Properties of a rating that are not the evaluator's."""


def round_trip(trial: Trial) -> Iterator[Fault]:
    """The given traits, and others that their class allows; those with a fixed list in a rubric have a fixed type."""
    others = getattr(trial.cls.trait_class, "list_name", "") == RubricTrait.list_name
    if others:
        yield from _file_type(trial)
    evaluator = trial.made.fresh()
    for trait in trial.traits:
        for one in (trait, *_varied(trait)):
            problem, remedy, method = _written(evaluator, one)
            if problem:
                yield Fault(problem, trial.made.line(method), remedy)


def _file_type(trial: Trial) -> Iterator[Fault]:
    file_type: object = getattr(trial.cls, "file_type", "")
    name = trial.cls.trait_class.__name__
    if not isinstance(file_type, str) or (file_type and not file_type.isidentifier()):
        problem = f"its file_type is {file_type!r}, and should be a name"
    elif not file_type:
        problem = "it has no file_type, so that no benchmark with such a trait in a rubric can be saved"
    elif file_type in TAKEN:
        problem = f"its file_type {file_type!r} is one of the format's own"
    else:
        return
    yield Fault(problem, line_of_attribute(trial.cls, "file_type"), f'set file_type, for example to "{name}"')


def _written(evaluator: Any, trait: RubricTrait) -> tuple[str, str, str]:
    """What keeps the trait from being saved, what to do, and the method that it is about; nothing where it can be."""
    data: object = evaluator.encode(trait)
    if not isinstance(data, Mapping):
        return f"encode returned {type(data).__name__}", "return a mapping", "encode"
    if taken := sorted({*OWN_PLACES} & data.keys()):
        return f"encode wrote {', '.join(taken)}", "leave them out; they have places of their own", "encode"
    if taken := sorted({*RESERVED} & data.keys()):
        return f"encode wrote {', '.join(taken)}", "use another name; the format means the type of a trait", "encode"
    if wrong := not_json(dict(data)):
        return f"what encode wrote {wrong}", "write plain data", "encode"
    fields = {name: value for name, value in data.items() if (name, value) != ("summary", None)}
    stored = json.loads(json.dumps({"name": trait.name, "description": trait.description, **fields}))
    if (again := evaluator.decode(stored)) != trait:
        return f"{trait!r} came back as {again!r}", "write and read every field", "encode"
    return "", "", ""


def _varied(trait: RubricTrait) -> Iterator[RubricTrait]:
    """The trait with other values of simple fields, one at a time, as far as its class accepts them."""
    hints = attempt(typing.get_type_hints, type(trait))  # annotations may name what cannot be found here
    kinds = {} if isinstance(hints, Raised) else hints
    changes: dict[str, Any] = {"summary": "a short label", "description": "What it is about."}
    for field in attrs.fields(type(trait)):
        kind, value = kinds.get(field.name), getattr(trait, field.name)
        if field.name in changes or field.name == "name" or not (field.init and field.eq) or type(value) is not kind:
            continue
        if kind in (bool, int, float, str):
            changes[field.name] = not value if kind is bool else value + (" x" if kind is str else kind(1))
    for name, value in changes.items():
        varied = attempt(partial(attrs.evolve, trait, **{name: value}))
        if not isinstance(varied, Raised):  # else its class does not allow it
            yield varied
