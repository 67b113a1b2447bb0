"""Template classes as plain data."""

from __future__ import annotations

import datetime
import inspect
import json
import textwrap
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from karenina_core.errors import TemplateError

from .answer import BaseAnswer, is_taken, written_by_author
from .extraction import judge_schema
from .primitives.base import to_spec
from .primitives.text import SetContainment
from .strategies import condition_spec
from .to_json import plain
from .verification import Verification

_DECORATORS = (
    *("validators", "field_validators", "root_validators", "model_validators"),
    *("field_serializers", "model_serializers"),
)
_OTHER_TYPES = ("list_str", "literal")
TYPES = {bool: "bool", str: "str", int: "int", float: "float", datetime.date: "date"}


def template_spec(cls: type[BaseAnswer]) -> dict[str, Any]:
    """The class as JSON data: `{"class_name": ..., "fields": [...], "verify_strategy": ...}`.

    A template that is loaded from it has the same schema, ground truth, verdicts and granular scores. Raises
    TemplateError naming everything in the class that data cannot express: code, fields that are not verified, nested
    models and other types, constraints, a docstring, ground truths that JSON would change.
    """
    if not isinstance(cls, type) or not issubclass(cls, BaseAnswer):
        raise TemplateError(f"{cls!r} is not a template class; it must derive from BaseAnswer")
    obstacles = list(_class_obstacles(cls))
    fields = []
    for name, info in cls.model_fields.items():
        verification = cls.__verified__.get(name)
        if verification is not None:
            found: list[str] = []
            fields.append(_field(cls, name, verification, found))
            obstacles += [f"{name}: {obstacle}" for obstacle in found]
        elif name != "id":
            obstacles.append(f"{name}: it is not a VerifiedField, and only code could use it ({info.annotation!r:.80})")
    if not obstacles:
        judge_schema(cls)  # says what else cannot be shown to a judge
    if obstacles:
        raise TemplateError(f"{cls.__name__} cannot be written as data:\n" + "\n".join(f"- {o}" for o in obstacles))
    strategy = None if cls.__strategy__ is None else condition_spec(cls.__strategy__)
    return {"class_name": cls.__name__, "fields": fields, "verify_strategy": strategy}


def template_source(cls: type[BaseAnswer]) -> str:
    """The class as the text of a template: as JSON where data can express it, else its Python source.

    Raises TemplateError where it is no template class, and where neither can be had.
    """
    try:
        return json.dumps(template_spec(cls), ensure_ascii=False)
    except TemplateError as error:
        if not isinstance(cls, type) or not issubclass(cls, BaseAnswer):
            raise
        try:
            return textwrap.dedent(inspect.getsource(cls))
        except (OSError, TypeError):
            raise TemplateError(f"{error}\nIts Python source cannot be found either; give the source as text") from None


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
        obstacles.append(f"{what} ({declared:.80}); available: {', '.join((*TYPES.values(), *_OTHER_TYPES))}")
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
    return (TYPES.get(annotation) if isinstance(annotation, type) else None), []


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
