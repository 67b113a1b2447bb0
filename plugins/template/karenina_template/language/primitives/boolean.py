"""Truth values."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from .base import VerificationPrimitive

__all__ = ["BooleanMatch"]

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
