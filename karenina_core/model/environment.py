"""Defaults of settings that come from environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError, Problem

__all__ = ["from_environment", "read_fraction", "read_switch"]

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


def read_switch(text: str) -> bool:
    """True or false, as environment variables say it. Raises ValueError for anything else."""
    word = text.strip().lower()
    if word not in (*TRUE, *FALSE):
        raise ValueError(f"must be one of {', '.join((*TRUE, *FALSE))}, not {text!r}")
    return word in TRUE


def from_environment(variable: str, read: Callable[[str], Any], default: Any) -> Callable[[], Any]:
    """The value of an environment variable, which counts where the constructor is not told otherwise."""

    def value() -> Any:
        text = os.environ.get(variable, "").strip()
        try:
            return read(text) if text else default
        except ValueError as error:
            raise ConfigError([Problem(variable, f"the environment variable {error}")]) from None

    return value


def read_fraction(text: str) -> float:
    """A number from 0 to 1. Raises ValueError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"must be a number from 0 to 1, not {text!r}")
    return value
