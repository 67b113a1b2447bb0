"""Checks on the text of a trace instead of an extracted value."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from attrs import field, frozen
from attrs.validators import optional

from ..normalize import canonical
from ..searches import Expression
from .base import VerificationPrimitive, compiled, flag_names, one_of, whole_number


@frozen
class TracePrimitive(VerificationPrimitive):
    """Base of primitives that read a text of the trace. The ground truth says whether the check has to hold.

    With the ground truth False, the field is right where `check_trace` is False. `scope` declares which text the
    caller gives: `trace` is the whole raw trace with section headers, tool calls and tool output; `response` is only
    what the answering model itself wrote.
    """

    scope: str = field(default="trace", validator=one_of("trace", "response"), kw_only=True)

    @abstractmethod
    def check_trace(self, text: str) -> bool:
        """Whether the check holds for this text."""

    def check(self, extracted: Any, expected: Any) -> bool:
        """Always raises NotImplementedError: nothing is extracted for such a field."""
        raise NotImplementedError(
            f"{type(self).__name__} reads the trace, not an extracted value: call check_trace(text) with the text that "
            f"its scope {self.scope!r} names and compare the result with the ground truth"
        )

    def check_ground_truth(self, expected: Any) -> None:
        if not isinstance(expected, bool):
            raise TypeError(f"{type(self).__name__} holds or does not: write True or False, not {expected!r}")


@frozen
class TraceRegex(TracePrimitive):
    """The pattern is found in the text: at least `count_min` times, matches that overlap counted once.

    `flags`, what is found, what is refused and how long a search may take are as for `RegexMatch`.
    """

    may_take_long: ClassVar[bool] = True

    pattern: str
    count_min: int | None = field(default=None, validator=optional(whole_number(1)))
    flags: tuple[str, ...] = field(default=(), converter=flag_names)
    _compiled: Expression = field(init=False, eq=False, repr=False)

    @_compiled.default
    def _compile(self) -> Expression:
        return compiled(self.pattern, self.flags)

    def check_trace(self, text: str) -> bool:
        """Whether the text has at least `count_min` matches; one, where that is None."""
        if self.count_min is None:
            return self._compiled.search(text) is not None
        return len(self._compiled.matches(text, most=self.count_min)) >= self.count_min


@frozen
class TraceContains(TracePrimitive):
    """The substring occurs in the text. Upper and lower case differ."""

    substring: str = field()

    @substring.validator
    def _is_some_text(self, attribute: Any, value: Any) -> None:
        if not isinstance(value, str):
            raise TypeError(f"{attribute.name} must be a text, not {value!r}")
        if not value:
            raise ValueError(f"{attribute.name} is empty, so every text would contain it")

    def check_trace(self, text: str) -> bool:
        """Whether the substring occurs in the text."""
        return canonical(self.substring) in canonical(text)


@frozen
class TraceLength(TracePrimitive):
    """The length of the text lies between `min` and `max`, both included, in `chars` or `words`.

    Words are what white space separates. At least one bound is needed, and a `min` of 0 is none.
    """

    min: int | None = field(default=None, validator=optional(whole_number(0)))
    max: int | None = field(default=None, validator=optional(whole_number(0)))
    unit: str = field(default="chars", validator=one_of("chars", "words"))

    def __attrs_post_init__(self) -> None:
        if not self.min and self.max is None:
            raise ValueError("TraceLength needs a min above 0, a max or both; otherwise every text would pass")
        if self.max is not None and (self.min or 0) > self.max:
            raise ValueError(f"min {self.min!r} is above max {self.max!r}; swap them")

    def check_trace(self, text: str) -> bool:
        """Whether the length of the text is within the bounds."""
        length = len(text if self.unit == "chars" else text.split())
        return (self.min or 0) <= length and (self.max is None or length <= self.max)
