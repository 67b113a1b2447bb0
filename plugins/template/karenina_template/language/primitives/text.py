"""Texts, truth values, collections, values that are compared as they are, and checks on the text of a trace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from attrs import field, frozen
from attrs.validators import optional

from ..normalize import SynonymMap, as_text, canonical, normalized, read_normalizers, texts_in
from ..searches import Expression
from .base import VerificationPrimitive, compiled, flag_names, is_number, one_of, whole_number
from .numeric import read_number


@frozen
class ExactMatch(VerificationPrimitive):
    """Equal texts after normalization. Anything that is not a text is compared by its text.

    This is the value of an enum member, and what Python prints for a number or a date. Lists, sets and mappings are
    equal if all their members are, as texts after normalization; only in lists and tuples the order counts.
    """

    normalize: tuple[str | SynonymMap, ...] = field(default=("lowercase", "strip"), converter=read_normalizers)

    def check(self, extracted: Any, expected: Any) -> bool:
        return as_text(extracted, self.normalize) == as_text(expected, self.normalize)

    def other_forms(self, expected: Any) -> Sequence[str]:
        maps = [found.mapping for found in self.normalize if isinstance(found, SynonymMap)]
        words = [word for mapping in maps for pair in mapping.items() for word in pair]
        return [word for word in dict.fromkeys(words) if isinstance(expected, str) and self._is_other(word, expected)]

    def _is_other(self, word: str, expected: str) -> bool:
        return word.casefold() != expected.casefold() and self.check(word, expected)


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
class SemanticMatch(VerificationPrimitive):
    """A text whose similarity to the expected text is at least `threshold`.

    It does not compute similarities: its caller does, with an embedding model, and asks `accepts`.
    """

    threshold: float = field(default=0.85)

    @threshold.validator
    def _is_share(self, attribute: Any, value: Any) -> None:
        if not is_number(value) or not 0 <= value <= 1:
            raise ValueError(f"{attribute.name} must be a number from 0 to 1, not {value!r}")
        if value == 0:
            raise ValueError(f"a {attribute.name} of 0 would accept every text; give a higher one, such as 0.85")

    def check(self, extracted: Any, expected: Any) -> bool:
        """Always raises NotImplementedError: two texts alone do not say how similar they are."""
        raise NotImplementedError(
            "SemanticMatch needs a similarity: compute that of the two texts with an embedding model and call "
            "accepts(similarity), or switch on the embedding check of the run"
        )

    def accepts(self, similarity: Any) -> bool:
        """Whether this similarity (1 for the same meaning) is enough. Raises TypeError or ValueError for no number."""
        if isinstance(similarity, str):
            raise TypeError(f"a similarity must be a number, not {similarity!r}")
        return read_number(similarity) >= self.threshold

    def check_ground_truth(self, expected: Any) -> None:
        if not isinstance(expected, str):
            raise TypeError(f"SemanticMatch compares texts, not {expected!r}")
        if not expected.strip():
            raise ValueError("SemanticMatch needs a text with a meaning, not an empty one")


def _read_set(value: Any, normalizers: Iterable[str | SynonymMap] = ()) -> set[Any]:
    usual = type(value) in (list, tuple, set)  # to ask about abstract classes takes long
    if not usual and (isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)):
        raise TypeError(f"SetContainment compares lists or sets, not {value!r}")
    read = partial(normalized, normalizers=normalizers) if normalizers else canonical
    try:
        return {read(member) if isinstance(member, str) else member for member in value}
    except TypeError:
        raise TypeError(f"SetContainment needs members such as texts and numbers, not {value!r}") from None


@frozen
class SetContainment(VerificationPrimitive):
    """Compares two collections as sets; order and repetition do not count. Members must be equal, texts after
    normalization.

    `exact`: the same members. `subset`: nothing extracted that is not expected. `superset`: everything expected was
    extracted. `overlap`: at least `min_overlap` members in common (1 unless given).
    """

    mode: str = field(default="exact", validator=one_of("exact", "subset", "superset", "overlap"))
    min_overlap: int | None = None
    normalize: tuple[str | SynonymMap, ...] = field(default=(), converter=read_normalizers)

    def __attrs_post_init__(self) -> None:
        least = self.min_overlap
        if least is None:
            return
        if self.mode != "overlap":
            raise ValueError(f"min_overlap only means something in mode 'overlap', not in {self.mode!r}")
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ValueError(f"min_overlap must be a whole number of at least 1, not {least!r}")

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_set(extracted, self.normalize), _read_set(expected, self.normalize)
        if self.mode == "exact":
            return found == wanted
        if self.mode == "subset":
            return found <= wanted
        if self.mode == "superset":
            return found >= wanted
        return len(found & wanted) >= (self.min_overlap or 1)

    def check_ground_truth(self, expected: Any) -> None:
        _read_set(expected)


def _read_list(value: Any) -> list[Any]:
    """Sets are refused too: they have no order that could be right or wrong."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"OrderedMatch compares lists, not {value!r}")
    return list(value)


@frozen
class OrderedMatch(VerificationPrimitive):
    """Lists of the same length whose members are equal one by one, as texts after normalization."""

    normalize: tuple[str | SynonymMap, ...] = field(default=("lowercase", "strip"), converter=read_normalizers)

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = _read_list(extracted), _read_list(expected)
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(
            as_text(one, self.normalize) == as_text(other, self.normalize) for one, other in pairs
        )

    def check_ground_truth(self, expected: Any) -> None:
        _read_list(expected)


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
        return self._compiled.count(text, self.count_min) >= self.count_min


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
