"""Texts, and values that are compared as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from attrs import field, frozen

from ..normalize import SynonymMap, as_text, normalized, read_normalizers, texts_in
from ..searches import Expression
from .base import VerificationPrimitive
from .parameters import compiled, flag_names

__all__ = ["ContainsAll", "ContainsAny", "ExactMatch", "LiteralMatch", "RegexMatch"]


@frozen
class ExactMatch(VerificationPrimitive):
    """Equal texts after normalization. Anything that is not a text is compared by its text.

    This is the value of an enum member, and what Python prints for a number or a date. Lists, sets and mappings are
    equal if all their members are, as texts after normalization; only in lists and tuples the order counts.
    """

    normalize: tuple[str | SynonymMap, ...] = field(default=("lowercase", "strip"), converter=read_normalizers)

    def check(self, extracted: Any, expected: Any) -> bool:
        return as_text(extracted, self.normalize) == as_text(expected, self.normalize)


@frozen
class LiteralMatch(VerificationPrimitive):
    """Equal values, without any conversion."""

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted == expected)


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
        texts = [normalized(text, self.normalize) for text in texts_in(extracted)]
        parts = (normalized(part, self.normalize) for part in self.substrings)
        return (any(part in text for text in texts) for part in parts)


@frozen
class ContainsAny(_Contains):
    """At least one of the substrings occurs in the text, or in a member of the list. The ground truth is not used."""

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return any(self._found(extracted))


@frozen
class ContainsAll(_Contains):
    """Every substring occurs in the text; of a list, each in any of its members. The ground truth is not used."""

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return all(self._found(extracted))


@frozen
class RegexMatch(VerificationPrimitive):
    """The pattern is found anywhere in the text, or in a member of the list. The ground truth is not used.

    It finds what Python's `re` finds; `flags` are names of that module, such as `IGNORECASE`. A pattern that would be
    found in every text, because it matches nothing at all, is refused. A search that takes too long (`SECONDS` in
    `templates.searches`) raises TimeoutError.
    """

    uses_ground_truth: ClassVar[bool] = False
    may_take_long: ClassVar[bool] = True

    pattern: str
    flags: tuple[str, ...] = field(default=(), converter=flag_names)
    _compiled: Expression = field(init=False, eq=False, repr=False)

    @_compiled.default
    def _compile(self) -> Expression:
        return compiled(self.pattern, self.flags)

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return any(self._compiled.search(text) is not None for text in texts_in(extracted))
