"""Verification primitives: how one extracted value is compared with the expected one.

`check` decides; `score` gives partial credit between 0 and 1 and follows `check` unless a primitive says otherwise.
A value that cannot be compared at all raises TypeError or ValueError: that is an error in the template, never a
wrong answer. Parameters are checked when a primitive is made, the ground truth when a field is declared.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, ClassVar

from attrs import field, frozen

from ..errors import did_you_mean
from .normalize import SynonymMap, normalized, read_normalizers

__all__ = [
    "BooleanMatch",
    "ContainsAll",
    "ContainsAny",
    "ExactMatch",
    "LiteralMatch",
    "NumericExact",
    "NumericTolerance",
    "RegexMatch",
    "SetContainment",
    "VerificationPrimitive",
]


class VerificationPrimitive(ABC):
    """Base of every primitive. Subclass it as a frozen attrs class and register the class to add your own."""

    __slots__ = ()

    uses_ground_truth: ClassVar[bool] = True
    """False where `check` ignores the expected value, which then is a placeholder."""

    @abstractmethod
    def check(self, extracted: Any, expected: Any) -> bool:
        """Whether the extracted value is right. Raises TypeError or ValueError where they cannot be compared."""

    def score(self, extracted: Any, expected: Any) -> float:
        """Partial credit from 0 to 1."""
        return 1.0 if self.check(extracted, expected) else 0.0

    def check_ground_truth(self, expected: Any) -> None:
        """Raise TypeError or ValueError where no extracted value could ever be compared with this ground truth."""
        return  # any value will do, unless a primitive knows better


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    raise ValueError(f"{value!r} is neither true nor false; write true, false, yes, no, 1 or 0")


@frozen
class BooleanMatch(VerificationPrimitive):
    """Equal truth values. Reads true, yes, 1, false, no and 0 in any case; nothing equals only nothing."""

    def check(self, extracted: Any, expected: Any) -> bool:
        if extracted is None or expected is None:
            return extracted is None and expected is None
        return _read_bool(extracted) == _read_bool(expected)

    def check_ground_truth(self, expected: Any) -> None:
        if expected is not None:
            _read_bool(expected)


@frozen
class ExactMatch(VerificationPrimitive):
    """Equal texts after normalization. Anything that is not a text is compared as Python prints it."""

    normalize: tuple[str | SynonymMap, ...] = field(default=("lowercase", "strip"), converter=read_normalizers)

    def check(self, extracted: Any, expected: Any) -> bool:
        return normalized(str(extracted), self.normalize) == normalized(str(expected), self.normalize)


def _texts(value: Any) -> tuple[str, ...]:
    """A plain string would be taken apart into its characters, so it is refused."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"substrings needs a list of texts, not {value!r}")
    texts = tuple(value)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"substrings needs at least one text and nothing else, not {list(texts)!r}")
    return texts


@frozen
class _Contains(VerificationPrimitive):
    uses_ground_truth: ClassVar[bool] = False

    substrings: tuple[str, ...] = field(converter=_texts)
    normalize: tuple[str | SynonymMap, ...] = field(default=(), converter=read_normalizers)

    def __attrs_post_init__(self) -> None:
        for text in self.substrings:
            if not normalized(text, self.normalize):
                raise ValueError(f"the substring {text!r} is empty after normalization, so every text would contain it")

    def _found(self, extracted: Any) -> Iterable[bool]:
        text = normalized(str(extracted), self.normalize)
        return (normalized(part, self.normalize) in text for part in self.substrings)


@frozen
class ContainsAny(_Contains):
    """At least one of the substrings occurs in the text. The ground truth is not used."""

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return any(self._found(extracted))


@frozen
class ContainsAll(_Contains):
    """Every one of the substrings occurs in the text. The ground truth is not used."""

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return all(self._found(extracted))


# DEBUG prints the pattern on standard output, which belongs to the program.
_FLAGS = {name: flag for name, flag in re.RegexFlag.__members__.items() if name not in ("DEBUG", "NOFLAG")}


def _flags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"flags needs a list of names such as IGNORECASE, not {value!r}")
    names = tuple(value)
    for name in names:
        if name not in _FLAGS:
            raise ValueError(f"unknown regular expression flag {name!r}{did_you_mean(str(name), _FLAGS)}")
    return names


@frozen
class RegexMatch(VerificationPrimitive):
    """The pattern is found anywhere in the text. The ground truth is not used."""

    uses_ground_truth: ClassVar[bool] = False

    pattern: str
    flags: tuple[str, ...] = field(default=(), converter=_flags)
    _compiled: re.Pattern[str] = field(init=False, eq=False, repr=False)

    @_compiled.default
    def _compile(self) -> re.Pattern[str]:
        if not isinstance(self.pattern, str):
            raise TypeError(f"pattern must be a text, not {self.pattern!r}")
        flags = re.RegexFlag(0)
        for name in self.flags:
            flags |= _FLAGS[name]
        try:
            return re.compile(self.pattern, flags)
        except re.error as error:
            raise ValueError(f"{self.pattern!r} is not a regular expression: {error}") from None

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return self._compiled.search(str(extracted)) is not None


def _number_in(text: str) -> int | float:
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        if value == value:
            return value
    raise ValueError(f"{text!r} is not a number")


def _read_number(value: Any) -> int | float:
    """A number, also from a text that is one. Truth values and NaN are no numbers."""
    if isinstance(value, str):
        return _number_in(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{value!r} is not a number")
    if value != value:
        raise ValueError("NaN cannot be compared")
    return int(value) if isinstance(value, Integral) else float(value)


class _Numeric(VerificationPrimitive):
    __slots__ = ()

    def check_ground_truth(self, expected: Any) -> None:
        _read_number(expected)


@frozen
class NumericExact(_Numeric):
    """Equal numbers."""

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(_read_number(extracted) == _read_number(expected))


def _not_negative(_: object, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{attribute.name} must be a number of at least 0, not {value!r}")


def _one_of(*allowed: str) -> Any:
    def check(_: object, attribute: Any, value: Any) -> None:
        if value not in allowed:
            hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
            raise ValueError(f"{attribute.name} must be one of {', '.join(allowed)}, not {value!r}{hint}")

    return check


@frozen
class NumericTolerance(_Numeric):
    """Numbers that differ by at most `tolerance`: of the expected value (`relative`) or in its own unit
    (`absolute`).

    An expected value of 0 leaves no room in relative mode: only 0 passes.
    """

    tolerance: float = field(validator=_not_negative)
    mode: str = field(default="relative", validator=_one_of("relative", "absolute"))

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_number(extracted), _read_number(expected)
        if found == wanted:
            return True
        try:
            distance = abs(found - wanted)
            if self.mode == "absolute":
                return bool(distance <= self.tolerance)
            return bool(wanted != 0 and distance / abs(wanted) <= self.tolerance)
        except OverflowError:  # too far apart for a float to say how far
            return False


@frozen
class LiteralMatch(VerificationPrimitive):
    """Equal values, without any conversion."""

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted == expected)


def _read_set(value: Any) -> set[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"SetContainment compares lists or sets, not {value!r}")
    try:
        return set(value)
    except TypeError:
        raise TypeError(f"SetContainment needs members such as texts and numbers, not {value!r}") from None


@frozen
class SetContainment(VerificationPrimitive):
    """Compares two collections as sets; order and repetition do not count, and members must be equal exactly.

    `exact`: the same members. `subset`: nothing extracted that is not expected. `superset`: everything expected was
    extracted. `overlap`: at least `min_overlap` members in common (1 unless given).
    """

    mode: str = field(default="exact", validator=_one_of("exact", "subset", "superset", "overlap"))
    min_overlap: int | None = None

    def __attrs_post_init__(self) -> None:
        least = self.min_overlap
        if least is None:
            return
        if self.mode != "overlap":
            raise ValueError(f"min_overlap only means something in mode 'overlap', not in {self.mode!r}")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValueError(f"min_overlap must be a whole number of at least 1, not {least!r}")

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_set(extracted), _read_set(expected)
        if self.mode == "exact":
            return found == wanted
        if self.mode == "subset":
            return found <= wanted
        if self.mode == "superset":
            return found >= wanted
        return len(found & wanted) >= (self.min_overlap or 1)

    def check_ground_truth(self, expected: Any) -> None:
        _read_set(expected)
