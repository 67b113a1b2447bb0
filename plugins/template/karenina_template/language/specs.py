"""Primitives as plain data and back: `{"type": "NumericTolerance", "tolerance": 0.1, "mode": "absolute"}`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import date
from typing import Any

import attrs

from karenina_core.errors import TemplateError, did_you_mean

from .normalize import SynonymMap
from .primitives.base import VerificationPrimitive

__all__ = ["primitive_from_spec", "to_spec"]


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
    problems = _misfits(given, cls)
    if problems:
        raise TemplateError(f"{name}: " + "; ".join(problems))
    try:
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"{name}: {error}") from error


def _misfits(given: Mapping[Any, Any], cls: type) -> list[str]:
    accepted = {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    names = ", ".join(accepted) or "none"
    unknown = [
        f"unknown parameter {key!r}{did_you_mean(str(key), accepted)}; it takes {names}"
        for key in given
        if key not in accepted
    ]
    missing = [
        f"parameter {name!r} is missing"
        for name, parameter in accepted.items()
        if parameter.default is parameter.empty and name not in given
    ]
    return unknown + missing


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
