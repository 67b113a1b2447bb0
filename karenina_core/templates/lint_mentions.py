"""Where a text names a value: the same text, number or date, however it is spelt, and what the text says about it."""

from __future__ import annotations

import datetime
import itertools
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from attrs import frozen

__all__ = [
    "Mention",
    "Scalar",
    "is_common",
    "is_trivial",
    "mentions",
    "number_of",
    "same",
    "shown",
    "squeezed",
    "trivial_text",
    "words_of",
]

Scalar = str | int | float | bool


@frozen
class Mention:
    """One place in a text where the value stands."""

    found: str
    """As it stands in the text."""
    stated: bool = False
    """The text says that this is the answer: `should be 42`, `42 is correct`."""
    example: bool = False
    """It is given as an example."""
    offered: bool = False
    """The text says that it is one of several values to choose from: `one of`, `whether`."""
    among: int = 1
    """How many members the list with `or` has in which it stands: 3 for `days, weeks or months`."""
    in_range: bool = False
    """It is the end of a range or a limit: `from 0 to 100`, `at most 100`."""


COMMON = frozenset(map(Decimal, (-1, 0, 1, 2, 10, 100, 1000)))
"""Numbers that stand in descriptions for reasons of their own."""

TRIVIAL = frozenset(
    (
        *("yes", "no", "true", "false", "none", "null", "nil", "na", "all", "any", "both", "either", "neither"),
        *("other", "others", "unknown", "unclear", "unspecified", "notstated", "notmentioned", "notgiven"),
        *("notapplicable", "notspecified", "response", "answer", "value", "name", "number", "text", "word"),
    )
)
"""Texts, squeezed, that stand in descriptions for reasons of their own."""

_FILLER = (
    r"the|a|an|exactly|precisely|about|approximately|roughly|value|answer|result|number|text|string|word|is|be|to|of|"
    r"as|equal|equals|here|always|namely"
)
_STATED = re.compile(
    r"\b(?:expected|(?:should|must|has to|ought to) (?:be|say|read|equal|give|state|contain)|correct|right answer|"
    r"true (?:value|answer)|ground[- ]?truth|gold(?:en)?(?: standard)?|reference (?:answer|value)|answer is|answer[:=]|"
    rf"solution(?: is)?|equals?|equal to|i\.e\.)(?:[^\w.;]|\b(?:{_FILLER})\b)*$",
    re.IGNORECASE,
)
_STATED_AFTER = re.compile(
    r"[^\w.;]*(?:(?:is|was|being|as|the|a|an|here)\b\W*)*"
    r"(?:(?:expected|correct|right)\b(?! (?:if|when|where|unless|only|or))|because\b|since\b|given that\b)",
    re.IGNORECASE,
)
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
_UNITS = r"(?:k|m|µ|μ|u|n|p|d|c|G|M|T)?(?:g|l|L|m|s|h|b|B|Da|bp|b|Hz|eV|V|W|K|M|mol|min|C)|%|°C|°"
_NUMBER = re.compile(
    r"(?<![\w.,/*#])(?<![A-Za-z][-–])(?:(?<!\w)[-+−](?=[\d.]))?"
    r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}(?!\d))?"
    rf"(?=(?:{_UNITS})?(?![\w]))(?![.,/:]\d)(?!-[A-Za-z])"
)
_NUMERIC_TEXT = re.compile(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?\s*")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ].*)?")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def squeezed(text: str) -> str:
    """Letters and digits only, without case and width; the text itself where it has none."""
    plain_text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]", "", plain_text) or plain_text.strip()


def number_of(value: object) -> Decimal | None:
    """The value as a finite number, also where it is a text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _NUMERIC_TEXT.fullmatch(value):
        return None
    number = Decimal(value if isinstance(value, int) else str(value).strip())
    return number if number.is_finite() else None


def is_common(value: object) -> bool:
    """Whether it is a number that is met everywhere."""
    return number_of(value) in COMMON


def trivial_text(text: str) -> bool:
    """Whether a text occurs by chance: fewer than three letters or digits, or a word such as `other`."""
    return len(squeezed(text)) < 3 or squeezed(text) in TRIVIAL


def is_trivial(value: Scalar) -> bool:
    """Whether meeting the value somewhere says nothing: truth values, common numbers, trivial texts."""
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


def shown(value: object, limit: int = 60) -> str:
    """The value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def words_of(identifier: str) -> str:
    """A name in code as words: `isBcl2_inhibitor` -> `is Bcl2 inhibitor`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier.replace("_", " ").replace("-", " "))


def mentions(text: str, value: Scalar) -> list[Mention]:
    """The places where the text names the value, at most the first hundred.

    Numbers are compared as numbers and never found inside other numbers or names. Texts are found as whole words,
    whatever their case, and with other punctuation or spaces between letters and digits (`BCL2` as `Bcl-2`); those
    of fewer than three letters or digits exactly as they are. Dates (ISO texts) are found in the usual spellings.
    """
    number = number_of(value)
    if isinstance(value, bool):
        spans = _truth_spans(text, value)
    elif number is not None:
        spans = _number_spans(text, number)
    else:
        text = unicodedata.normalize("NFKC", text)
        spans = _text_spans(text, unicodedata.normalize("NFKC", str(value)).strip())
    return [_judged(text, *span, number=number is not None) for span in itertools.islice(spans, _MOST)]


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
    stated = (_STATED.search(opening) and not goes_on) or _STATED_AFTER.match(after)
    return Mention(
        found=text[start:end],
        stated=bool(stated) and not conditional and not in_range,
        example=_EXAMPLE.search(before) is not None,
        offered=_is_offered(before, after),
        among=_members_of_list(before, after),
        in_range=in_range,
    )


def _is_offered(before: str, after: str) -> bool:
    sentence = re.split(r"[.;]\s", before)[-1]
    choice = _CHOICE.search(sentence)
    rest = re.split(r"[.;]\s", after)[0]
    return choice is not None and _ALTERNATIVE.search(sentence[choice.end() :] + rest) is not None


def _members_of_list(before: str, after: str) -> int:
    left = re.split(r"[.;:(]|\be\.\s?g\.|\bsuch as\b|\blike\b", before)[-1]
    right = re.split(r"[.;)]", after)[0]
    if re.search(r"\bor\b|/|\|", left + right, re.IGNORECASE) is None:
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


def _number_spans(text: str, number: Decimal) -> Iterator[tuple[int, int]]:
    for found in _NUMBER.finditer(text):
        value = Decimal(found[0].replace(",", "").replace("−", "-"))
        per_cent = text[found.end() : found.end() + 3].lstrip()[:1] == "%"
        if value == number or (per_cent and value / 100 == number):
            yield found.span()


def _text_spans(text: str, value: str) -> Iterator[tuple[int, int]]:
    folded = text.casefold()
    if len(folded) != len(text):  # spans must fit the text that is quoted
        folded = text.lower() if len(text.lower()) == len(text) else text
    spelling = _spelling(value.casefold() if len(squeezed(value)) > 2 else value)
    searched = folded if len(squeezed(value)) > 2 else text
    for found in re.finditer(rf"(?<!\w)(?:{spelling})(?!\w)", searched):
        yield found.span()
    if date := _DATE.fullmatch(value):
        for found in re.finditer(_date_spelling(*map(int, date.groups())), text, re.IGNORECASE):
            yield found.span()


def _spelling(value: str) -> str:
    """A pattern for the text, with some freedom between its runs of letters and of digits."""
    exact = r"\s+".join(re.escape(word) for word in value.split())
    runs = list(re.finditer(r"[^\W\d_]+|\d+", value))
    if not runs or sum(len(run[0]) for run in runs) < 3:
        return exact or r"(?!)"
    loose = re.escape(runs[0][0])
    for previous, run in itertools.pairwise(runs):
        if previous.end() == run.start():
            loose += r"[-\s‐‑–]?"
        else:  # 1.5 is not 15
            loose += r"[\W_]{1,3}" if previous[0].isdigit() and run[0].isdigit() else r"[\W_]{0,4}"
        loose += re.escape(run[0])
    return f"{exact}|{loose}"


def _date_spelling(year: int, month: int, day: int) -> str:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return r"(?!)"
    name = _MONTHS[month - 1]
    word = rf"(?:{name}|{name[:3]}|{name[:4]})\.?"
    days = rf"0?{day}(?:st|nd|rd|th)?"
    forms = (
        rf"{year}[-/. ]0?{month}[-/. ]0?{day}",
        rf"0?{day}[-/. ]0?{month}[-/. ]{year}",
        rf"0?{month}[-/]0?{day}[-/]{year}",
        f"{year:04d}{month:02d}{day:02d}",
        rf"{days}\s*(?:of\s+)?{word},?\s*{year}",
        rf"{word}\s*{days},?\s*{year}",
        rf"{year},?\s*{word}\s*{days}",
    )
    return rf"(?<![\w])(?:{'|'.join(forms)})(?!\w)"
