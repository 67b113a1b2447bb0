"""Converters and validators of attrs fields. Converters are typed so that constructors take any iterable."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import fields_dict, validators

from ..errors import ConfigError, Problem

LARGEST = int(sys.float_info.max)
"""No float can hold a larger whole number."""


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
    fields, found = fields_dict(type(value)), []
    for name in names:
        usual: Any = fields[name].default
        if getattr(value, name) != (usual.factory() if hasattr(usual, "factory") else usual):
            found.append(name)
    return found


def names(value: Iterable[str]) -> frozenset[str]:
    """A set of names."""
    return frozenset(texts(value))


def is_number(value: Any) -> bool:
    """Whether a mean can be taken of it: a finite number, and not True or False."""
    if type(value) is int:  # most are
        return -LARGEST <= value <= LARGEST
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _validator(wanted: str, fits: Callable[[Any], bool]) -> Callable[[object, Any, Any], None]:
    def check(_: object, attribute: Any, value: Any) -> None:
        if not fits(value):
            raise ValueError(f"{attribute.name} must be {wanted}, not {value!r}")

    return check


number = _validator("a number", is_number)
"""A validator: a finite number; True is none."""
whole_number = _validator("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
true_or_false = _validator("true or false", lambda value: isinstance(value, bool))
text = _validator("a text", lambda value: isinstance(value, str))


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
    return _validator(f"one of {', '.join(words)}", words.__contains__)


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
            message = str(error.args[0] if error.args else error)  # attrs' validators raise with more arguments
            for opening in (f"'{name}' ", f"{name} ", f"{name}: "):
                message = message.removeprefix(opening)
            raise ConfigError([Problem(shown, message)]) from None

    return named
