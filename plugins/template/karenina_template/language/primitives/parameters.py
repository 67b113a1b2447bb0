"""Rules for the parameters of primitives: attrs validators and converters that raise ValueError or TypeError."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from karenina_core.errors import did_you_mean

from ..searches import Expression, expression

Validator = Callable[[object, Any, Any], None]


def is_number(value: Any) -> bool:
    """Whether it is a finite int or float; truth values are not."""
    return not isinstance(value, bool) and isinstance(value, int | float) and -math.inf < value < math.inf


def finite(_: object, attribute: Any, value: Any) -> None:
    if not is_number(value):
        raise ValueError(f"{attribute.name} must be a finite number, not {value!r}")


def not_negative(_: object, attribute: Any, value: Any) -> None:
    if not is_number(value) or value < 0:
        raise ValueError(f"{attribute.name} must be a number of at least 0, not {value!r}")


def positive(_: object, attribute: Any, value: Any) -> None:
    if not is_number(value) or value <= 0:
        raise ValueError(f"{attribute.name} must be a number above 0, not {value!r}")


def flag(_: object, attribute: Any, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{attribute.name} must be True or False, not {value!r}")


def whole_number(least: int) -> Validator:
    def check(_: object, attribute: Any, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{attribute.name} must be a whole number of at least {least}, not {value!r}")

    return check


def one_of(*allowed: str) -> Validator:
    def check(_: object, attribute: Any, value: Any) -> None:
        if not isinstance(value, str) or value not in allowed:
            hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
            raise ValueError(f"{attribute.name} must be one of {', '.join(allowed)}, not {value!r}{hint}")

    return check


# DEBUG prints the pattern on standard output, which belongs to the program.
_FLAGS = {name: flag for name, flag in re.RegexFlag.__members__.items() if name not in ("DEBUG", "NOFLAG")}


def flag_names(value: Any) -> tuple[str, ...]:
    """Names of regular expression flags as a tuple."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"flags needs a list of names such as IGNORECASE, not {value!r}")
    names = tuple(value)
    for name in names:
        if name not in _FLAGS:
            raise ValueError(f"unknown regular expression flag {name!r}{did_you_mean(str(name), _FLAGS)}")
    return names


def compiled(pattern: Any, flags: Iterable[str] = ()) -> Expression:
    """The regular expression of this text, with flags by name. Raises ValueError for one that cannot be used, or that
    matches nothing at the end of a text, so that any text has a match.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"pattern must be a text, not {pattern!r}")
    combined = re.RegexFlag(0)
    for name in flags:
        combined |= _FLAGS[name]
    try:
        found = expression(pattern, combined)
        # One that looks back may still tell texts apart there: (?<!x)$ finds those that do not end in x.
        unselective = "(?<!" not in pattern and found.fullmatch("\0", 1) is not None
    except (TimeoutError, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern {pattern!r:.200} cannot be used: {error}") from None
    if unselective:
        raise ValueError(
            f"the pattern {pattern!r} also matches nothing at all, so it would be found in every text; "
            "make a part of it obligatory, such as x+ for x*"
        )
    return found
