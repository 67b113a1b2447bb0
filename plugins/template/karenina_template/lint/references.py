"""Where a text names a value: the same text, number or date, however it is spelt, and what the text says about it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from attrs import field, frozen

from .spelling import Span, Wanted, beginnings, find_text, number_of, prepared, squeezed

Scalar = str | int | float | bool


@frozen
class Mention:
    """One place in a text where the value occurs."""

    found: str
    """As it is written in the text."""
    stated: bool = False
    """The text says that this is the answer: `should be 42`, `42 is correct`."""
    example: bool = False
    """It is given as an example."""
    offered: bool = False
    """The text says that it is one of several values to choose from: `one of`, `whether`."""
    among: int = 1
    """How many members its list of alternatives has: 3 for `days, weeks or months`; without `or`
    it is one from three members on.
    """
    opens: bool = False
    """A sentence begins with it."""
    in_range: bool = False
    """It is the end of a range or a limit: `from 0 to 100`, `at most 100`."""


COMMON = frozenset(map(Decimal, (-1, 0, 1, 2, 10, 100, 1000)))
"""Numbers that occur in descriptions for reasons of their own."""

TRIVIAL = frozenset(
    (
        *("yes", "no", "true", "false", "none", "null", "nil", "na", "all", "any", "both", "either", "neither"),
        *("other", "others", "unknown", "unclear", "unspecified", "notstated", "notmentioned", "notgiven"),
        *("notapplicable", "notspecified", "response", "answer", "value", "name", "number", "text", "word"),
    )
)
"""Texts, squeezed, that occur in descriptions for reasons of their own."""

_FILLER = (
    r"the|a|an|exactly|precisely|about|approximately|roughly|value|answer|result|number|text|string|word|is|be|to|of|"
    r"as|equal|equals|here|always|namely"
)
_STATED = re.compile(
    r"\b(?:expected|(?:should|must|has to|ought to) (?:be|say|read|equal|match|give|state|contain)|correct|"
    r"right answer|true (?:value|answer)|ground[- ]?truth|gold(?:en)?(?: standard)?|reference (?:answer|value)|"
    rf"answer is|answer[:=]|solution(?: is)?|equals?|equal to|i\.e\.)(?:[^\w.;]|\b(?:{_FILLER})\b)*$",
    re.IGNORECASE,
)
_STATED_AFTER = re.compile(
    r"[^\w.;]*(?:(?:is|was|being|as|the|a|an|here)\b\W*)*"
    r"(?:(?:expected|correct|right)\b(?! (?:if|when|where|unless|only|or))|because\b|since\b|given that\b)",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(rf"\b(?:which is|namely|returns?|symbol)(?:[^\w.;]|\b(?:{_FILLER})\b)*$", re.IGNORECASE)
_ENDS = re.compile(r"[^\w,;.!?]*(?:[,;.!?](?!\w)|$)")
"""After words that often come before something else (`return 2 decimals`) a value is only what ends the clause."""
_YES_OR_NO = re.compile(r"\b(?:answer|expected(?: answer| value)?)(?: is|:| should be)\W*$", re.IGNORECASE)
_CONDITION_BEFORE = re.compile(r"\b(?:if|when|where|unless|otherwise)\b[^.;]*$", re.IGNORECASE)
_CONDITION_AFTER = re.compile(r"\W*(?:\w+\W+)?(?:if|when|where|unless|only|otherwise)\b", re.IGNORECASE)
_GOES_ON = re.compile(r"['\"`”’]?\s*(?:,|/|\||-|–|\bor\b|\bto\b)\s*['\"`“‘]?\w", re.IGNORECASE)
_EXAMPLE = re.compile(
    r"(?:\bsuch as|\be\.\s?g\.?|\bfor example|\bfor instance|\bexamples?:|\blike)[^.;:]{0,40}$", re.IGNORECASE
)
_CHOICE = re.compile(
    r"\b(?:one of|either|choose|among|options?|allowed(?: values)?|possible values|any of|whether)\b", re.IGNORECASE
)
_ALTERNATIVE = re.compile(r",|/|\||;|\bor\b", re.IGNORECASE)
_LIST_BREAK = re.compile(r",\s*(?:or\b|and\b)?|/|\||\bor\b|\band\b", re.IGNORECASE)
_LIMIT_BEFORE = re.compile(
    r"(?:\d%?\s*(?:-|–|to|through|and)|\bout of|\bscale of|\bup to|\bat (?:most|least)|\bm(?:ax|in)(?:imum)?(?: of)?|"
    r"\b(?:less|more|greater|fewer) than|\bover|\bunder|\babove|\bbelow|[<>≤≥]=?)\s*$",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(r"%?\s*(?:-|–|\bto\b|\bthrough\b|\bup to\b)\s*\d", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\W*$", re.IGNORECASE)
_AND_AFTER = re.compile(r"%?\s*\band\b\s*\d", re.IGNORECASE)

_MOST = 100
"""Mentions of one value in a text that are looked at. Chosen, not measured: what reveals it is seldom later."""


def is_common(value: object) -> bool:
    """Whether it is a number that is met everywhere."""
    return number_of(value) in COMMON


def trivial_text(text: str) -> bool:
    """Whether a text occurs by chance: fewer than three letters or digits, or a word such as `other`."""
    return len(squeezed(text)) < 3 or squeezed(text) in TRIVIAL


def is_trivial(value: Scalar) -> bool:
    """Whether an occurrence of the value means nothing: truth values, common numbers, trivial texts."""
    if isinstance(value, bool):
        return True
    return is_common(value) if number_of(value) is not None else trivial_text(str(value))


def same(given: object, value: Scalar) -> bool:
    """Whether a piece of data is this value, spelling and type apart."""
    if isinstance(given, bool) or isinstance(value, bool):
        return given is value
    if (number := number_of(value)) is not None:
        return number_of(given) == number
    return isinstance(given, str) and squeezed(given) == squeezed(str(value)) != ""


def words_of(identifier: str) -> str:
    """A name in code as words: `isBcl2_inhibitor` -> `is Bcl2 inhibitor`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier.replace("_", " ").replace("-", " "))


def mentions(text: str, value: Scalar) -> list[Mention]:
    """The places where the text names the value, at most the first hundred.

    Numbers are compared as numbers and never found inside other numbers or names. Texts are found as whole words,
    whatever their case and accents, and with other punctuation or spaces between letters and digits (`BCL2` as
    `Bcl-2`); those of fewer than three letters or digits exactly as they are. Dates (ISO texts) are found in the usual
    spellings.
    """
    number = number_of(value)
    spans: Iterable[Span]
    if isinstance(value, bool):
        spans = _truth_spans(text, value)
    elif number is not None:
        spans = prepared(text).numbers.get(number, ())
    else:
        where = prepared(text)
        text, spans = where.text.text, find_text(where, str(value))
    return [_judged(text, *span, number=number is not None) for span in itertools.islice(spans, _MOST)]


def part_of_name(text: str, value: Scalar) -> str | None:
    """The part of a name of several words that the text names, capitalised and not only because a sentence begins:
    `Shakespeare` for `William Shakespeare`. The first word alone and words of fewer than four letters are none.
    """
    words = str(value).split()
    if not 2 <= len(words) <= 5 or not all(word[0].isupper() for word in (words[0], words[-1])):
        return None
    if not all(word.replace("-", "").replace("'", "").rstrip(".").isalpha() for word in words):
        return None
    for word in words[:0:-1]:
        for mention in mentions(text, word) if len(word) >= 4 and word[0].isupper() else ():
            if mention.found[0].isupper() and not mention.opens:
                return mention.found
    return None


def _judged(text: str, start: int, end: int, *, number: bool) -> Mention:
    before, after = text[max(0, start - 120) : start], text[end : end + 60]
    opening = re.sub(r"['\"`“‘(]+$", "", before)
    conditional = _CONDITION_BEFORE.search(before) or _CONDITION_AFTER.match(after)
    in_range = number and bool(
        _LIMIT_BEFORE.search(opening)
        or _RANGE_AFTER.match(after)
        or (_BETWEEN.search(opening) and _AND_AFTER.match(after))
    )
    goes_on = _GOES_ON.match(after)
    introduced = _STATED.search(opening) or (_INTRODUCED.search(opening) and _ENDS.match(after))
    stated = (introduced and not goes_on) or _STATED_AFTER.match(after)
    sentence, rest = re.split(r"[.;]\s", before)[-1], re.split(r"[.;]\s", after)[0]
    choice = _CHOICE.search(sentence)
    return Mention(
        found=text[start:end],
        stated=bool(stated) and not conditional and not in_range,
        example=_EXAMPLE.search(before) is not None,
        offered=choice is not None and _ALTERNATIVE.search(sentence[choice.end() :] + rest) is not None,
        among=_members_of_list(before, after),
        opens=re.search(r"(?:^|[.!?])\W*$", before) is not None,
        in_range=in_range,
    )


def _members_of_list(before: str, after: str) -> int:
    left = re.split(r"[.;:(]|\be\.\s?g\.|\bsuch as\b|\blike\b", before)[-1]
    right = re.split(r"[.;)]", after)[0]
    if re.search(r"\bor\b|/|\|", left + right, re.IGNORECASE) is None and (left + right).count(",") < 2:
        return 1
    pieces = [piece.strip(" \n'\"`“”‘’") for piece in _LIST_BREAK.split(f"{left}\0{right}")]
    index = next(number for number, piece in enumerate(pieces) if "\0" in piece)
    alone = pieces[index] == "\0" or (index == 0 and pieces[0].endswith("\0"))
    return len([piece for piece in pieces if piece]) if alone else 1


def _truth_spans(text: str, value: bool) -> Iterator[tuple[int, int]]:
    for found in re.finditer(r"\btrue\b" if value else r"\bfalse\b", text, re.IGNORECASE):
        yield found.span()
    for found in re.finditer(r"\byes\b" if value else r"\bno\b", text, re.IGNORECASE):
        if _YES_OR_NO.search(text[max(0, found.start() - 80) : found.start()]) or re.match(
            r"\W*(?:because|since)\b", text[found.end() : found.end() + 40]
        ):
            yield found.span()


K = TypeVar("K", bound=Hashable)
_Index = Mapping[Hashable, Sequence[int]]


@frozen(eq=False)
class Targets:
    """Values in their order, indexed by how they begin and by what they are equal to."""

    values: Sequence[Scalar]
    _by_head: _Index = field(init=False, repr=False)

    @_by_head.default
    def _index_heads(self) -> _Index:
        pairs: list[tuple[Hashable, int]] = []
        for index, value in enumerate(self.values):
            number = number_of(value)
            begins = () if isinstance(value, bool) else beginnings(str(value))
            pairs += [(head, index) for head in ([number] if number is not None else begins or (ANY,))]
        return indexed(pairs)

    @cached_property
    def _by_key(self) -> _Index:
        return indexed((key, number) for number, value in enumerate(self.values) for key in keys_of_data(value)[:1])

    def keys(self, *, of_data: bool) -> frozenset[Hashable]:
        """How a text begins that may name one of the values, `ANY` where any text may; and what data has that is equal
        to one."""
        return frozenset((*self._by_head, *self._by_key) if of_data else self._by_head)

    @cached_property
    def _beginnings(self) -> Wanted:
        return Wanted.of(self._by_head)

    def candidates(self, text: str) -> list[Scalar]:
        """The values that the text may name, by how they begin; it is searched for no others."""
        begun = prepared(text).among(self._beginnings)
        numbers = {number for head in (ANY, *begun) for number in self._by_head.get(head, ())}
        return [self.values[number] for number in sorted(numbers)]

    def named_in(self, text: str) -> dict[Scalar, list[Mention]]:
        """The values that the text names, in their order, and where."""
        return {value: spots for value in self.candidates(text) if (spots := mentions(text, value))}

    def equal_to(self, given: object) -> list[Scalar]:
        """The values that are the same as a piece of data, spelling and type apart, in their order."""
        numbers = {number for key in keys_of_data(given) for number in self._by_key.get(key, ())}
        return [self.values[number] for number in sorted(numbers)]


ANY = None
"""Stands for the beginning of values that any text may name."""


def indexed(pairs: Iterable[tuple[K, int]]) -> Mapping[K, Sequence[int]]:
    """Key -> the numbers that stand with it, in their order."""
    index: dict[K, list[int]] = {}
    for key, number in pairs:
        index.setdefault(key, []).append(number)
    return index


def keys_of_data(given: object) -> list[tuple[str, object]]:
    """What two pieces of data have in common that are the same. An expected value has the first one only."""
    if isinstance(given, bool):
        return [("truth value", given)]
    number = number_of(given)
    keys: list[tuple[str, object]] = [("number", number)] if number is not None else []
    if isinstance(given, str) and (text := squeezed(given)):
        keys.append(("text", text))
    return keys
