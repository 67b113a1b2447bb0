"""How texts, numbers and dates are found in a text, however they are spelt.

A text is prepared once (`prepared`) and asked about many values; no regular expression is made for a value, and a text
is searched for a value only where its letters and digits begin as those of the value do (`beginnings`). So a ground
truth with thousands of members takes time in proportion to its size.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from attrs import frozen

Span = tuple[int, int]

_HEADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""How many letters and digits a beginning may have by which values are looked up."""
_FEW = 64
"""Beginnings for which a text is searched one by one; for more of them all of its own are listed, which takes ten times
as long as a search for one. Chosen: a schema seldom has so many values."""
_MARK = re.compile(r"[\W_]")
_RUN = re.compile(r"[^\W\d_]+|\d+")
_GAP = re.compile(r"[\W_]*")
_DASHES = frozenset("-‐‑–")
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
_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: Decimal(value) for value, word in enumerate(_COUNTED.split())}
NUMBER_WORDS |= {word: Decimal(10 * value) for value, word in enumerate(_TENS.split(), 2)}
NUMBER_WORDS |= {"dozen": Decimal(12)}
_IN_WORDS = re.compile(
    rf"(?<![\w-])(?:({'|'.join(_TENS.split())})[- ]({'|'.join(_COUNTED.split()[1:10])})|({'|'.join(NUMBER_WORDS)}))"
    r"(?![\w-]|\s+(?:hundred|thousand|million|billion))",
    re.IGNORECASE,
)


def squeezed(text: str) -> str:
    """Letters and digits only, without case and width; the text itself where it has none."""
    plain_text = unicodedata.normalize("NFKC", text).casefold()
    return _MARK.sub("", plain_text) or plain_text.strip()


def number_of(value: object) -> Decimal | None:
    """The value as a finite number, also where it is a text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _NUMERIC_TEXT.fullmatch(value):
        return None
    number = Decimal(value if isinstance(value, int) else str(value).strip())
    return number if number.is_finite() else None


# Texts in which is searched


@frozen(eq=False)
class Searchable:
    """A text with the places where its letters and digits, without what is between them, begin in some way."""

    text: str

    @functools.cached_property
    def starts(self) -> Mapping[str, Sequence[int]]:
        starts: dict[str, list[int]] = {}
        for head, start in self.heads():
            starts.setdefault(head, []).append(start)
        return starts

    @functools.cached_property
    def joined(self) -> str:
        """Its letters and digits alone."""
        return "".join(_RUN.findall(self.text))

    @functools.cached_property
    def _begins(self) -> frozenset[int]:
        """Where in `joined` a run of letters or digits begins."""
        return frozenset(itertools.accumulate(map(len, _RUN.findall(self.text)), initial=0))

    def begins(self, head: str) -> bool:
        """Whether its letters and digits begin like this somewhere: whether `heads` has it."""
        start = self.joined.find(head)
        while start >= 0 and start not in self._begins:
            start = self.joined.find(head, start + 1)
        return start >= 0

    def heads(self) -> Iterator[tuple[str, int]]:
        runs = list(_RUN.finditer(self.text))
        joined, begin = "".join(run[0] for run in runs), 0
        for run in runs:
            for length in _HEADS:
                if begin + length <= len(joined):
                    yield joined[begin : begin + length], run.start()
            begin += len(run[0])


@frozen(eq=False)
class Wanted:
    """What is looked for in texts: how values begin (`beginnings`), and numbers."""

    heads: frozenset[str]
    numbers: frozenset[Decimal]

    @classmethod
    def of(cls, keys: Iterable[Hashable]) -> Wanted:
        """The texts and the numbers among these keys."""
        heads = frozenset([key for key in keys if isinstance(key, str)])
        return cls(heads, frozenset([key for key in keys if isinstance(key, Decimal)]))


@frozen(eq=False)
class PreparedText:
    """A text and what is needed to find values in it."""

    raw: str

    @functools.cached_property
    def text(self) -> Searchable:
        """Without differences of width (NFKC); texts are quoted from here, numbers from `raw`."""
        return Searchable(unicodedata.normalize("NFKC", self.raw))

    @functools.cached_property
    def folded(self) -> Searchable:
        """`text` without case and accents, just as long."""
        text = self.text.text
        folded = text.casefold()
        if len(folded) != len(text):  # mark by mark, so that spans fit what is quoted
            cases = ((mark.casefold(), mark.lower(), mark) for mark in text)
            folded = "".join(next(case for case in three if len(case) == 1) for three in cases)
        folded = folded if folded.isascii() else "".join(map(_without_accent, folded))
        return Searchable(folded) if folded != text else self.text

    @functools.cached_property
    def numbers(self) -> Mapping[Decimal, Sequence[Span]]:
        """Where in `raw` a number occurs; 5 % also as 0.05, and numbers from three on also in words."""
        spans: dict[Decimal, list[Span]] = {}
        for found in _NUMBER.finditer(self.raw):
            value = Decimal(found[0].replace(",", "").replace("−", "-"))
            per_cent = self.raw[found.end() : found.end() + 3].lstrip()[:1] == "%"
            for number in {value, value / 100} if per_cent else {value}:
                spans.setdefault(number, []).append(found.span())
        for found in _IN_WORDS.finditer(self.raw):
            value = sum((NUMBER_WORDS[word.casefold()] for word in found.groups() if word), Decimal(0))
            if value > 2:  # "one of" and the like
                spans.setdefault(value, []).append(found.span())
        return spans

    def among(self, wanted: Wanted) -> set[Hashable]:
        """Those of these `beginnings` of values and of these numbers that can be found in it."""
        found = set[Hashable]()
        if wanted.numbers:
            found.update(wanted.numbers.intersection(self.numbers))
        for where in self._searched if wanted.heads else ():
            if len(wanted.heads) > _FEW:
                found.update(wanted.heads.intersection([head for head, _ in where.heads()]))
                continue
            joined = where.joined
            found.update([head for head in wanted.heads if head in joined and where.begins(head)])
        return found

    @functools.cached_property
    def _searched(self) -> Sequence[Searchable]:
        return (self.text, self.folded) if self.folded is not self.text else (self.text,)


@functools.lru_cache(maxsize=64)
def prepared(raw: str) -> PreparedText:
    """The text, of which what is asked for is made once."""
    return PreparedText(raw)


def _without_accent(mark: str) -> str:
    """A Latin letter without its accents; other scripts have marks that make another letter."""
    bare = unicodedata.normalize("NFD", mark)[0]
    return bare if "a" <= bare <= "z" else mark


# Values that are searched


def beginnings(value: str) -> tuple[str, ...]:
    """What `heads` of a text must hold one of where the text names the value; empty where any text may."""
    value = unicodedata.normalize("NFKC", value).strip()
    head = _head(_RUN.findall(_as_searched(value)))
    date = _DATE.fullmatch(value)
    return (*([head] if head else ()), *([_head([str(int(date[1]))])] if date else ()))


def _head(runs: Sequence[str]) -> str:
    joined = "".join(runs)
    return joined[: _HEADS[bisect_right(_HEADS, len(joined)) - 1]] if joined else ""


def find_text(where: PreparedText, value: str) -> Iterator[Span]:
    """Where a text or an ISO date occurs: in any case, with or without accents, and with other marks between its runs
    of letters and digits (`BCL2` as `Bcl-2`), but exactly as it is where it has fewer than three of them.
    """
    value = unicodedata.normalize("NFKC", value).strip()
    yield from _spelled(where.folded if len(squeezed(value)) > 2 else where.text, _as_searched(value))
    if (date := _DATE.fullmatch(value)) is None:
        return
    year, month, day = map(int, date.groups())
    starts, abbreviated = where.folded.starts, [name[:3] for name in _MONTHS[month - 1 : month]]
    parts = ([f"{year}"], [f"{day}", f"{day:02d}"], [f"{month}", f"{month:02d}", *abbreviated])
    whole = _head([f"{year:04d}{month:02d}{day:02d}"]) in starts
    # Only a text that has what every spelling of the date has is worth a regular expression.
    if whole or all(any(spelling in starts for spelling in spellings) for spellings in parts):
        for found in re.finditer(_date_spelling(year, month, day), where.text.text, re.IGNORECASE):
            yield found.span()


def _as_searched(value: str) -> str:
    if len(squeezed(value)) < 3:
        return value
    folded = value.casefold()
    return folded if folded.isascii() else "".join(map(_without_accent, folded))


def _spelled(where: Searchable, value: str) -> Iterator[Span]:
    text, words, runs = where.text, value.split(), list(_RUN.finditer(value))
    starts = set(where.starts.get(_head([run[0] for run in runs]), ()) if runs else ())
    if value[: runs[0].start()] if runs else value:  # it may begin with the marks before its letters and digits
        start = text.find(words[0])
        while start >= 0:
            starts.add(start)
            start = text.find(words[0], start + 1)
    if sum(len(run[0]) for run in runs) < 3:
        runs = []
    last = 0
    for start in sorted(starts):
        if start < last or _in_word(text, start - 1):
            continue
        for end in (_exact_end(text, start, words), _loose_end(text, start, runs)):
            if end is not None and not _in_word(text, end):
                yield start, end
                last = end
                break


def _in_word(text: str, index: int) -> bool:
    return 0 <= index < len(text) and (text[index].isalnum() or text[index] == "_")


def _exact_end(text: str, start: int, words: list[str]) -> int | None:
    """The end of the words that begin there, with any white space between them."""
    for number, word in enumerate(words):
        if number:
            gap = start
            while text[start : start + 1].isspace():
                start += 1
            if start == gap:
                return None
        if not text.startswith(word, start):
            return None
        start += len(word)
    return start


def _loose_end(text: str, start: int, runs: list[re.Match[str]]) -> int | None:
    """The end of the runs of letters and digits that begin there, with few other marks between them."""
    if not runs or not text.startswith(runs[0][0], start):
        return None
    end = start + len(runs[0][0])
    for previous, run in itertools.pairwise(runs):
        found = _GAP.match(text, end)
        gap = found[0] if found else ""
        if previous.end() == run.start():
            fits = gap == "" or (len(gap) == 1 and (gap in _DASHES or gap.isspace()))
        else:
            both_digits = previous[0].isdecimal() and run[0].isdecimal()
            fits = (1 <= len(gap) <= 3) if both_digits else len(gap) <= 4  # 1.5 is not 15
        end += len(gap)
        if not fits or not text.startswith(run[0], end):
            return None
        end += len(run[0])
    return end


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
