"""Converters and validators of attrs fields. Converters are typed so that constructors take any iterable."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import fields_dict, validators

from ..errors import ConfigError, Problem

__all__ = [
    "changed",
    "instance_of",
    "is_number",
    "named_refusals",
    "names",
    "number",
    "one_of",
    "optional",
    "text",
    "text_table",
    "texts",
    "true_or_false",
    "whole_number",
]


def texts(value: Iterable[str]) -> tuple[str, ...]:
    """Any iterable of texts; a single text is refused, because it would become a list of letters."""
    if type(value) not in (tuple, list) and (isinstance(value, str | Mapping) or not isinstance(value, Iterable)):
        raise TypeError(f"expected a list of texts, got {value!r}")
    found = tuple(value)
    for entry in found:
        if not isinstance(entry, str):
            raise TypeError(f"expected a list of texts, got {entry!r} in it")
    return found


def changed(value: Any, names: Iterable[str]) -> list[str]:
    """Which of these fields of an attrs value do not have their default value."""
    known = fields_dict(type(value))
    return [name for name in names if getattr(value, name) != _made(known[name].default)]


def _made(default: Any) -> Any:
    return default.factory() if hasattr(default, "factory") else default


def names(value: Iterable[str]) -> frozenset[str]:
    """A set of names."""
    return frozenset(texts(value))


def is_number(value: Any) -> bool:
    """Whether a mean can be taken of it: a finite number, and not True or False."""
    try:
        return isinstance(value, (int, float)) and value is not True and value is not False and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def number(_: object, attribute: Any, value: Any) -> None:
    """A validator: a finite number; True is none."""
    if not is_number(value):
        raise ValueError(f"{attribute.name} must be a number, not {value!r}")


def whole_number(_: object, attribute: Any, value: Any) -> None:
    """A validator: a whole number; True is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{attribute.name} must be a whole number, not {value!r}")


def true_or_false(_: object, attribute: Any, value: Any) -> None:
    """A validator: True or False, and nothing that is merely truthy."""
    if not isinstance(value, bool):
        raise ValueError(f"{attribute.name} must be true or false, not {value!r}")


def text(_: object, attribute: Any, value: Any) -> None:
    """A validator: a text."""
    if not isinstance(value, str):
        raise ValueError(f"{attribute.name} must be a text, not {value!r}")


def text_table(_: object, attribute: Any, value: Any) -> None:
    """A validator: a mapping of texts to texts."""
    if not isinstance(value, Mapping):  # the value is not shown: it may hold a key
        raise ValueError(f"{attribute.name} must be a table of texts by name, not a value of type {_type(value)}")
    for part in (part for pair in value.items() for part in pair):
        if not isinstance(part, str):
            raise ValueError(f"{attribute.name} must be a table of texts by name; {part!r} is none")


def instance_of(cls: type) -> Callable[[object, Any, Any], None]:
    """A validator: a value of this class."""

    def check(_: object, attribute: Any, value: Any) -> None:
        if not isinstance(value, cls):
            raise ValueError(f"{attribute.name} must be a {cls.__name__}, not a value of type {_type(value)}")

    return check


def one_of(allowed: Iterable[str]) -> Callable[[object, Any, Any], None]:
    """A validator: one of these texts."""
    words = tuple(allowed)

    def check(_: object, attribute: Any, value: Any) -> None:
        if value not in words:
            raise ValueError(f"{attribute.name} must be one of {', '.join(words)}, not {value!r}")

    return check


def optional(*checks: Any) -> Any:
    """A validator: None, or what all of `checks` let pass."""
    return validators.optional(list(checks))


def _type(value: Any) -> str:
    return type(value).__name__


def named_refusals(_: type, attributes: list[Any]) -> list[Any]:
    """A `field_transformer`: whatever a converter or a validator refuses is a ConfigError with the field's name."""
    return [
        attribute.evolve(
            converter=attribute.converter and _naming(attribute.name, attribute.converter),
            validator=attribute.validator and _naming(attribute.name, attribute.validator),
        )
        for attribute in attributes
    ]


def _naming(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
    shown = name.lstrip("_")

    @functools.wraps(step, updated=())
    def named(*given: Any) -> Any:
        try:
            return step(*given)
        except ConfigError:
            raise
        except (TypeError, ValueError) as error:
            told = str(error.args[0] if error.args else error)  # attrs' validators raise with more arguments
            for opening in (f"'{name}' ", f"{name} ", f"{name}: "):
                told = told.removeprefix(opening)
            raise ConfigError([Problem(shown, told)]) from None

    return named
