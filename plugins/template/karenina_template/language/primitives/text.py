"""Texts, truth values, collections, and values that are compared as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from attrs import field, frozen

from ..normalize import SynonymMap, as_text, canonical, normalized, read_normalizers, texts_in
from ..searches import Expression
from .base import VerificationPrimitive, compiled, flag_names, is_number, one_of
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


def _read_set(value: Any) -> set[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"SetContainment compares lists or sets, not {value!r}")
    try:
        return {canonical(member) if isinstance(member, str) else member for member in value}
    except TypeError:
        raise TypeError(f"SetContainment needs members such as texts and numbers, not {value!r}") from None


@frozen
class SetContainment(VerificationPrimitive):
    """Compares two collections as sets; order and repetition do not count, and members must be equal exactly.

    `exact`: the same members. `subset`: nothing extracted that is not expected. `superset`: everything expected was
    extracted. `overlap`: at least `min_overlap` members in common (1 unless given).
    """

    mode: str = field(default="exact", validator=one_of("exact", "subset", "superset", "overlap"))
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
