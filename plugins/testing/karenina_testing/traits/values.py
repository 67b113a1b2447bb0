"""What an evaluator says about itself and its traits: names, value classes, scales, files, configurations."""

from __future__ import annotations

import json
import time
import typing
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from karenina_core.errors import Problem, one_line
from karenina_core.values.rubric import Rubric, RubricTrait

from ..checks import Fault, Promises, Raised, attempt
from ..watch.audit import watching
from ..watch.source_lines import line_at, line_of_attribute
from .cases import Trial, not_json

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


LONGEST_CHECK = 2.0
"""Seconds for looking at a configuration."""
VALUES: Promises[Trial] = Promises()


@VALUES.add("round_trip", "A trait can be written into a file, and is the same when it is read again.")
def _round_trip(trial: Trial) -> Iterator[Fault]:
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


@VALUES.add("name", "It is called as the type of the traits that it scores.")
def _name(trial: Trial) -> Iterator[Fault]:
    name, trait_class = getattr(trial.cls, "name", None), getattr(trial.cls, "trait_class", None)
    if not isinstance(trait_class, type) or not issubclass(trait_class, RubricTrait):
        problem, remedy = f"its trait_class is {trait_class!r}", "name a class that derives from RubricTrait"
    elif not isinstance(name, str) or not name.strip():
        problem, remedy = f"its name is {name!r}", f"set name = {trait_class.type_name!r}"
    elif name != trait_class.type_name:
        problem = f"its name is {name!r}, and the type_name of {trait_class.__name__} is {trait_class.type_name!r}"
        remedy = "give both the same text, else its traits are never brought to it"
    else:
        return
    yield Fault(problem, line_of_attribute(trial.cls, "name"), remedy)


@VALUES.add("trait_class", "Its traits are frozen attrs values, and a rubric can hold them.")
def _trait_class(trial: Trial) -> Iterator[Fault]:
    cls = trial.cls.trait_class
    for trait in (*trial.traits, *trial.broken):
        if not isinstance(trait, cls):
            yield trial.fault(f"{trait!r} is no {cls.__name__}", "give it traits of its trait_class")
        changing = attempt(setattr, trait, "name", trait.name)
        if not (isinstance(changing, Raised) and isinstance(changing.error, attrs.exceptions.FrozenInstanceError)):
            yield _of_class(cls, f"{cls.__name__} can be changed", "make it an attrs class with @frozen(kw_only=True)")
        if trait != attrs.evolve(trait):
            yield _of_class(cls, f"{trait.name!r} is not equal to its copy", "let attrs compare its fields")
    try:
        Rubric.from_traits(trial.traits)
    except (ValueError, KeyError, AttributeError) as error:
        problem = f"no rubric can hold its traits: {one_line(error)}"
        yield _of_class(cls, problem, "leave list_name as RubricTrait has it")


def _of_class(cls: type, problem: str, remedy: str) -> Fault:
    return Fault(problem, line_of_attribute(cls, "type_name"), remedy)


@VALUES.add("scale", "Every trait says as plain data what its score means.")
def _scale(trial: Trial) -> Iterator[Fault]:
    cls = trial.cls.trait_class
    for trait in trial.traits:
        scale: object = trait.scale()
        if not isinstance(scale, Mapping) or scale.get("type") != cls.type_name:
            problem, remedy = f"the scale of {trait.name!r} is {scale!r}", "build on super().scale()"
        elif wrong := not_json(scale):
            problem, remedy = f"the scale of {trait.name!r} {wrong}", "give plain data"
        elif scale.get("higher_is_better", "nothing") not in (True, False, None):
            problem = f"higher_is_better of {trait.name!r} is {scale.get('higher_is_better', 'missing')!r}"
            remedy = "say True, False or None"
        else:
            continue
        yield Fault(problem, line_of_attribute(cls, "scale"), remedy)


@VALUES.add("check_config", "It reports problems of a configuration at once, and calls nothing.")
def _check_config(trial: Trial) -> Iterator[Fault]:
    evaluator, app = trial.made.fresh(), trial.case(trial.judge()).context.app
    traits = [*trial.traits, *trial.broken]
    started = time.monotonic()
    with watching(threads=False) as seen:
        reported = evaluator.check_config(traits, trial.config, app)
        first = None if reported is None else list(reported)
    seconds = time.monotonic() - started
    problem, remedy = "", "let it look, and change nothing"
    if seen:
        what, where = next(iter(seen.items()))
        yield Fault(f"check_config {what}", line_at(*where), "look at the values; call nothing")
    if first is None or not all(isinstance(one, Problem) for one in first):
        problem, remedy = f"check_config returned {reported!r}", "return Problem values, or nothing in a tuple: ()"
    elif first != list(evaluator.check_config(traits, trial.config, app)):
        problem = "check_config reported something else when asked again"
    elif seconds > LONGEST_CHECK:
        problem, remedy = f"check_config took {seconds:.1f} s", "look at the values; do no work"
    if problem:
        yield Fault(problem, trial.made.line("check_config"), remedy)
