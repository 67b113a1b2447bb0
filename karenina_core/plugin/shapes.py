"""What is wrong with a class that a plugin registers, said before anything is paid for: one sentence with its place."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import did_you_mean

CLOSE = 2
"""Letters that a misspelt name may have more or fewer; chosen: `require`, `include_when`."""


def place(thing: Any) -> str:
    """`acme/stages.py:12: `, of a class or a function; nothing where its source is not there."""
    try:
        line, name = inspect.getsourcelines(thing)[1], str(thing.__module__)
        parts = (inspect.getsourcefile(thing) or "").replace("\\", "/").split("/")
    except (OSError, TypeError):
        return ""
    return f"{'/'.join(parts[-1 - name.count('.') - (parts[-1] == '__init__.py') :])}:{line}: "


def misfits(cls: type, calls: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Methods that cannot be called with these arguments, or are abstract, and attributes that are misspelt."""
    for name, given in calls.items():
        function = getattr(cls, name, None)
        line = f"def {name}({', '.join(('self', *given))})"
        if not callable(function) or getattr(function, "__isabstractmethod__", False):
            yield f"{place(cls)}{cls.__name__} needs a method {name}; write `{line}`"
            continue
        bound = (None, *given) if inspect.isfunction(inspect.getattr_static(cls, name)) else given
        try:
            inspect.signature(function).bind(*bound)
        except (TypeError, ValueError):
            what = f"cannot be called with ({', '.join(given)}); write `{line}`"
            yield f"{place(function)}{cls.__name__}.{name} {what}"
    foreign = [
        base for base in cls.__mro__[:-1] if base.__module__.partition(".")[0] != cls.__module__.partition(".")[0]
    ]
    known = {name: value for base in foreign[:1] for name, value in inspect.getmembers_static(base) if name[0] != "_"}
    for name, value in vars(cls).items():
        if name in known or name[0] == "_":
            continue
        alike = [k for k, v in known.items() if abs(len(k) - len(name)) <= CLOSE and callable(v) == callable(value)]
        unset = [k for k in alike if inspect.getattr_static(cls, k) == known[k]]  # else it is not what was meant
        if hint := did_you_mean(name, unset):
            yield f"{place(cls)}{cls.__name__}.{name} has no effect{hint}; rename it"
