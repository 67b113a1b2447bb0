"""What every verification primitive has in common, rules for their parameters, and primitives as plain data.

As data: `{"type": "NumericTolerance", "tolerance": 0.1, "mode": "absolute"}`.
"""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import attrs

from karenina_core.errors import TemplateError, did_you_mean

from ..normalize import SynonymMap
from ..searches import Expression, expression


class VerificationPrimitive(ABC):
    """Base of every primitive. Subclass it as a frozen attrs class and register the class to add your own."""

    __slots__ = ()

    uses_ground_truth: ClassVar[bool] = True
    """False where `check` ignores the expected value, which then is a placeholder."""

    matches_ground_truth: ClassVar[bool] = True
    """False where the ground truth itself need not pass: it is a list of alternatives, a pair of bounds or something to
    differ from. Then no ground truth is refused for not matching itself."""

    may_take_long: ClassVar[bool] = False
    """True where a check may take long for some texts, as a search may: it runs in a thread of its own in a run."""

    @abstractmethod
    def check(self, extracted: Any, expected: Any) -> bool:
        """Whether the extracted value is right. Raises TypeError or ValueError where they cannot be compared."""

    def score(self, extracted: Any, expected: Any) -> float:
        """Partial credit from 0 to 1."""
        return 1.0 if self.check(extracted, expected) else 0.0

    def remark(self, extracted: Any, expected: Any) -> str | None:
        """What a reader of the result should know about a value that `check` has compared, as one sentence.

        None where the verdict says everything. Raises like `check`.
        """
        return None

    def other_forms(self, expected: Any) -> Sequence[Any]:
        """Values that are as right as the expected one and say it in other words: aliases, synonyms."""
        return ()

    @classmethod
    def prepare(cls) -> None:
        """Import and read what `check` needs. A sandbox calls it before its processes lose the right to read files."""
        return

    def check_ground_truth(self, expected: Any) -> None:
        """Raise TypeError or ValueError where no extracted value could ever be compared with this ground truth."""
        return  # any value will do, unless a primitive knows better


def derives(cls: type, *bases: type) -> bool:
    """`issubclass`, which takes long for classes with abstract methods, as primitives are."""
    return not frozenset(bases).isdisjoint(cls.__mro__)


Validator = Callable[[object, Any, Any], None]
T = TypeVar("T")


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


def primitive_from_spec(spec: Any, primitives: Mapping[str, type]) -> VerificationPrimitive:
    """Make the primitive that `spec` describes, of one of the classes in `primitives`.

    Raises TemplateError naming every unknown or missing parameter, or what is wrong with a value.
    """
    if not (type(spec) is dict or isinstance(spec, Mapping)) or not isinstance(spec.get("type"), str):
        raise TemplateError(f'a primitive is written {{"type": "ExactMatch", ...}}, not {spec!r}')
    name = spec["type"]
    if name not in primitives:
        known = ", ".join(sorted(primitives)) or "none, because no plugin that provides some is active"
        hint = f"{did_you_mean(name, primitives)}; install the package that provides it, or use one of these"
        raise TemplateError(f"unknown primitive {name!r}{hint}: {known}")
    cls = primitives[name]
    if not derives(cls, VerificationPrimitive):
        raise TemplateError(f"{name} is not a verification primitive: its class must derive from VerificationPrimitive")
    given = {key: value for key, value in spec.items() if key != "type"}
    accepted, required = _parameters(cls)
    if not required <= given.keys() <= accepted:
        takes = f"it takes {', '.join(accepted) or 'none'}"
        problems = [
            f"unknown parameter {key!r}{did_you_mean(str(key), accepted)}; {takes}"
            for key in given
            if key not in accepted
        ]
        problems += [f"parameter {key!r} is missing" for key in accepted if key in required and key not in given]
        raise TemplateError(f"{name}: " + "; ".join(problems))
    try:
        made: VerificationPrimitive = cls(**given)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"{name}: {error}") from error
    return made


def _once(function: Callable[[type], T]) -> Callable[[type], T]:
    """The same, but called once for each class. It keeps no class: those of templates come and go."""
    known: WeakKeyDictionary[type, T] = WeakKeyDictionary()

    def found(cls: type) -> T:
        if (said := known.get(cls)) is None:
            said = known[cls] = function(cls)
        return said

    return found


@_once
def _parameters(cls: type) -> tuple[KeysView[str], frozenset[str]]:
    """What a primitive can be given by name, in order, and what it has to be."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = [parameter for parameter in inspect.signature(cls).parameters.values() if parameter.kind in by_name]
    required = frozenset(parameter.name for parameter in found if parameter.default is parameter.empty)
    return dict.fromkeys(parameter.name for parameter in found).keys(), required


@_once
def _written(cls: type) -> Sequence[tuple[str, str]]:
    """The names of what a primitive is made of, each with that of its attribute."""
    if not attrs.has(cls):
        raise TemplateError(f"{cls.__name__} cannot be written as data: make it a frozen attrs class")
    return [(a.alias or a.name, a.name) for a in attrs.fields(cls) if a.init]


def to_spec(primitive: VerificationPrimitive) -> dict[str, Any]:
    """The plain data that `primitive_from_spec` turns into an equal primitive: dates as ISO 8601 texts, sets as lists.

    The class has to take these forms back, as with an attrs converter. Raises TemplateError for a primitive whose class
    is no attrs class, because its parameters cannot be known.
    """
    cls = type(primitive)
    return {"type": cls.__name__, **{name: _as_data(getattr(primitive, own)) for name, own in _written(cls)}}


def _as_data(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, SynonymMap):
        return {"type": "SynonymMap", "mapping": dict(value.mapping)}
    if isinstance(value, Mapping):
        return {key: _as_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_as_data(item) for item in value), key=repr)  # their own order differs between processes
    if isinstance(value, list | tuple):
        return [_as_data(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value
