"""Primitives as plain data and back: `{"type": "NumericTolerance", "tolerance": 0.1, "mode": "absolute"}`."""

from __future__ import annotations

import datetime
import inspect
import json
from collections.abc import Iterator, Mapping
from datetime import date
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from pydantic import BaseModel

from karenina_core.errors import TemplateError, did_you_mean

from .answer import BaseAnswer, is_taken, written_by_author
from .judge_schema import judge_schema
from .normalize import SynonymMap
from .primitives.base import VerificationPrimitive
from .primitives.sets import SetContainment
from .strategies import condition_spec
from .to_json import plain
from .verification import Verification


def primitive_from_spec(spec: Any, primitives: Mapping[str, type]) -> VerificationPrimitive:
    """Make the primitive that `spec` describes, of one of the classes in `primitives`.

    Raises TemplateError naming every unknown or missing parameter, or what is wrong with a value.
    """
    if not isinstance(spec, Mapping) or not isinstance(spec.get("type"), str):
        raise TemplateError(f'a primitive is written {{"type": "ExactMatch", ...}}, not {spec!r}')
    name = spec["type"]
    if name not in primitives:
        known = ", ".join(sorted(primitives)) or "none; is the plugin that provides them active?"
        raise TemplateError(f"unknown primitive {name!r}{did_you_mean(name, primitives)}; there are {known}")
    cls = primitives[name]
    if not issubclass(cls, VerificationPrimitive):
        raise TemplateError(f"{name} is no verification primitive: its class must derive from VerificationPrimitive")
    given = {key: value for key, value in spec.items() if key != "type"}
    accepted = {
        parameter.name: parameter
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    takes = f"it takes {', '.join(accepted) or 'none'}"
    problems = [
        f"unknown parameter {key!r}{did_you_mean(str(key), accepted)}; {takes}" for key in given if key not in accepted
    ]
    required = (key for key, parameter in accepted.items() if parameter.default is parameter.empty)
    problems += [f"parameter {key!r} is missing" for key in required if key not in given]
    if problems:
        raise TemplateError(f"{name}: " + "; ".join(problems))
    try:
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"{name}: {error}") from error


def to_spec(primitive: VerificationPrimitive) -> dict[str, Any]:
    """The plain data that `primitive_from_spec` turns into an equal primitive: dates as ISO 8601 texts, sets as lists.

    The class has to take these forms back, as with an attrs converter. Raises TemplateError for a primitive whose class
    is no attrs class, because its parameters cannot be known.
    """
    cls = type(primitive)
    if not attrs.has(cls):
        raise TemplateError(f"{cls.__name__} cannot be written as data: make it a frozen attrs class")
    values = {a.alias or a.name: _plain(getattr(primitive, a.name)) for a in attrs.fields(cls) if a.init}
    return {"type": cls.__name__, **values}


def _plain(value: Any) -> Any:
    if isinstance(value, SynonymMap):
        return {"type": "SynonymMap", "mapping": dict(value.mapping)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)  # their own order differs between processes
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


_DECORATORS = (
    *("validators", "field_validators", "root_validators", "model_validators"),
    *("field_serializers", "model_serializers"),
)
_OTHER_TYPES = ("list_str", "literal")
_TYPES = {bool: "bool", str: "str", int: "int", float: "float", datetime.date: "date"}


def template_spec(cls: type[BaseAnswer]) -> dict[str, Any]:
    """The class as JSON data: `{"class_name": ..., "fields": [...], "verify_strategy": ...}`.

    A template that is loaded from it has the same schema, ground truth, verdicts and granular scores. Raises
    TemplateError naming everything in the class that data cannot express: code, fields that are not verified, nested
    models and other types, constraints, a docstring, ground truths that JSON would change.
    """
    if not isinstance(cls, type) or not issubclass(cls, BaseAnswer):
        raise TemplateError(f"{cls!r} is no template class; it must derive from BaseAnswer")
    obstacles = list(_class_obstacles(cls))
    fields = []
    for name, info in cls.model_fields.items():
        verification = cls.__verified__.get(name)
        if verification is not None:
            found: list[str] = []
            fields.append(_field(cls, name, verification, found))
            obstacles += [f"{name}: {obstacle}" for obstacle in found]
        elif name != "id":
            obstacles.append(f"{name}: it is no VerifiedField, and only code could use it ({info.annotation!r:.80})")
    if not obstacles:
        judge_schema(cls)  # says what else cannot be shown to a judge
    if obstacles:
        raise TemplateError(f"{cls.__name__} cannot be written as data:\n" + "\n".join(f"- {o}" for o in obstacles))
    strategy = None if cls.__strategy__ is None else condition_spec(cls.__strategy__)
    return {"class_name": cls.__name__, "fields": fields, "verify_strategy": strategy}


def _class_obstacles(cls: type[BaseAnswer]) -> Iterator[str]:
    if not cls.__verified__:
        yield "it has no VerifiedField"
    for method in ("verify", "verify_granular"):
        if written_by_author(cls, method):
            yield f"{method}() is code; declare a VerificationStrategy instead, or leave it out"
    if cls.verify_regex is not BaseAnswer.verify_regex:
        yield "verify_regex() is code; leave it out"
    if hasattr(cls, "ground_truth") or cls.model_post_init is not BaseAnswer.model_post_init:
        yield "the hook that sets self.correct or self.regex is code; use TraceRegex in place of self.regex"
    decorators = cls.__pydantic_decorators__
    if any(getattr(decorators, kind) for kind in _DECORATORS):
        yield "validators and serializers are code; leave them out"
    if cls.model_config != BaseAnswer.model_config:
        yield "model_config has settings of its own; leave it out"
    if (cls.__doc__ or "").strip():
        yield "the judge reads the class's docstring, and data has no place for it; move it into the descriptions"


def _field(cls: type[BaseAnswer], name: str, verification: Verification, obstacles: list[str]) -> dict[str, Any]:
    info = cls.model_fields[name]
    kind, values = _type(info.annotation)
    if kind is None:
        waiting, nested = [info.annotation], False
        while waiting:
            part = waiting.pop()
            nested = nested or (isinstance(part, type) and issubclass(part, BaseModel))
            waiting += get_args(part)
        what = "it holds a nested model" if nested else "its type has no name in data"
        declared = info.annotation.__name__ if isinstance(info.annotation, type) else str(info.annotation)
        obstacles.append(f"{what} ({declared:.80}); there are {', '.join((*_TYPES.values(), *_OTHER_TYPES))}")
    if is_taken(name):
        obstacles.append("the name is taken by the class that templates are made of; rename the field")
    constraints = [item for item in info.metadata if not isinstance(item, Verification)]
    if constraints or info.discriminator is not None:
        words = ", ".join(map(str, constraints)) or "discriminator"
        obstacles.append(f"data has no constraints ({words:.120}); say it in the description")
    if info.validation_alias is not None or info.serialization_alias is not None or info.alias is not None:
        obstacles.append(f"data has no aliases; name the field as the judge shall see it, not {name!r}")
    spec: dict[str, Any] = {"name": name, "type": kind, "description": info.description or ""}
    if values:
        spec["literal_values"] = values
    spec["ground_truth"] = plain(verification.ground_truth)
    if kind is not None and (obstacle := _ground_truth_obstacle(kind, verification)):
        obstacles.append(obstacle)
    try:
        spec["verify_with"] = to_spec(verification.primitive)
        if json.loads(json.dumps(spec["verify_with"], allow_nan=False)) != spec["verify_with"]:
            raise ValueError("its parameters are changed by JSON")
    except (TemplateError, TypeError, ValueError) as error:
        obstacles.append(f"its primitive: {error}")
    spec["weight"] = verification.weight
    if verification.hint is not None:
        spec["extraction_hint"] = verification.hint
    if verification.kind == "trace":
        spec["is_trace"] = True
    return spec


def _type(annotation: Any) -> tuple[str | None, list[str]]:
    """The type's name in data, and the values of a literal. Null needs no mention: every verified field may be null."""
    members = [member for member in get_args(annotation) if member is not NoneType]
    if get_origin(annotation) in (Union, UnionType) and len(members) == 1:
        return _type(members[0])
    if get_origin(annotation) is Literal and all(isinstance(value, str) for value in get_args(annotation)):
        return "literal", list(get_args(annotation))
    if get_origin(annotation) is list and get_args(annotation) == (str,):
        return "list_str", []
    return (_TYPES.get(annotation) if isinstance(annotation, type) else None), []


def _ground_truth_obstacle(kind: str, verification: Verification) -> str | None:
    """Why data would not give back this ground truth, or an equal one where the primitive makes no difference."""
    value, data = verification.ground_truth, plain(verification.ground_truth)
    if isinstance(value, set | frozenset | tuple) and isinstance(verification.primitive, SetContainment):
        value = data
    if not verification.primitive.uses_ground_truth:
        kept = type(data) is type(value) and data == value
    elif kind == "int":
        kept = type(value) in (int, float)
    elif kind == "float":
        kept = type(value) is float or (type(value) is int and abs(value) <= 2**53)
    elif kind == "list_str":
        kept = type(value) is list and all(type(item) is str for item in value)
    else:
        kept = type(value) is {"bool": bool, "date": datetime.date}.get(kind, str)
    return (
        None if kept else f"its ground truth {value!r:.80} is not kept by data; write it in the form that the type has"
    )
