"""Is this quotation in that text? Typography may differ; no word, number, sign or negation may.

A quotation is accepted

- where it occurs verbatim, as it is or after both were normalised (white space, quotes, dashes, markdown marks; case
  counts), or
- where its words, numbers and symbols follow each other in the text without anything in between, and the passage is
  at least as similar to it (0 to 1, `rapidfuzz.fuzz.ratio`) as the threshold asks: then punctuation alone differs.

Either way it must consist of whole words and whole numbers: "40 mg" is not in "140 mg", "effective" is not in
"non-effective", and "5" is in none of "-5", "2.5", "<5" and "5 %" (`cuts`). In scripts that write no spaces between
words, every character counts as a word. Rows of a table and items of a list are joined only where the quotation shows
that they are several: with a line break, "|", ";" or the mark of an item.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from attrs import frozen

from .cuts import is_torn
from .normalised import UNSPACED, Normalised, normalise

__all__ = ["LONGEST_ALIGNED", "Passage", "Source"]

LONGEST_ALIGNED = 5_000
"""Longer quotations must occur verbatim: to compare two texts takes time with the product of their lengths."""
MOST_TRIES = 1_000
MOST_ALIGNED = 20
TOKEN = re.compile(
    rf"""
      \d+(?:[.,:]\d+)*                                  # 400, 2.5, 1,000, 10:30
    | [^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)*      # not, can't
    | (?<=\w)_+(?=\w)                                  # a_b
    | [{UNSPACED}]
    | (?<![^\W\d_])-(?=\ ?\.?\d)                        # a sign or a range: -5, 3-5
    | (?<=\w)-(?!\w)                                    # HER2-
    | (?<=\()-(?=\))                                   # HER2 (-)
    | !(?==) | (?<!\w)!(?=[\w(])                       # a != b, !enabled
    | (?<!\w)\.(?=\d)                                   # .5
    | [^\s\w,;:.!?()\[\]{{}}"'|•·\-\x00]                # every other symbol: + < % ° / €
    """,
    re.VERBOSE,
)
"""What must be the same in a quotation and in the text. All else is punctuation."""
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s")
SUBSTANCE = re.compile(r"[^\W_]")
BORDER = re.compile(
    r"(?<![:,;])(?<!\band)(?<!\bor)\n(?=[ \t>]*[-*+•‣◦▪][ \t])|\n(?=[ \t>]*\|)|(?<=\|)[ \t\r]*\n|<(?:li|tr)\b"
)
"""Before an item of a list or a row of a table, and behind a row. The number of an item is a word like others.

A colon introduces the first item, and a comma or an "and" at the end of one carries the sentence on to the next.
"""
ROW = re.compile(r"^[^\n]* \| [^\n]*\n(?=[^\n]* \| )", re.MULTILINE)
"""A row without outer lines: another one follows. A single line with ` | ` in it may be prose."""
BREAK = re.compile(r"[\n|;•‣◦▪]|\s[-–—]\s")
"""How a quotation shows that it crosses one."""


@frozen
class Passage:
    """Where a quotation was found."""

    start: int
    """The first character of the original text."""
    end: int
    """Behind the last one."""
    similarity: float
    """1.0 where it occurs verbatim, as it is or normalised."""


@frozen
class _Words:
    """The tokens of a normalised text, as one text to search in and as places."""

    joined: str
    starts: tuple[int, ...]
    """Of each token within `joined`."""
    spans: tuple[tuple[int, int], ...]
    """Of each token within the normalised text."""

    @classmethod
    def of(cls, text: str) -> _Words:
        spans, starts, position = [], [], 0
        for token in TOKEN.finditer(text):
            spans.append(token.span())
            starts.append(position)
            position += token.end() - token.start() + 1
        joined = "".join([f"\0{text[start:end]}" for start, end in spans])
        return cls(f"{joined}\0", tuple(starts), tuple(spans))


class _Asked:
    """A quotation that is looked for."""

    def __init__(self, text: str, normalised: Normalised) -> None:
        self.text = text
        self.normalised = normalised
        self.plain = normalised.text.strip()

    @cached_property
    def words(self) -> _Words:
        return _Words.of(self.normalised.text)

    def before(self, word: int) -> str:
        """What stands between a token (not the first) and the one before it, as it was written."""
        first, second = (self.normalised.original(*span) for span in self.words.spans[word - 1 : word + 1])
        return self.text[first[1] : second[0]]


class Source:
    """A text that is quoted from. What searching it costs beyond the search itself is paid once, when it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _normalised(self) -> Normalised:
        return normalise(self.text)

    @cached_property
    def _words(self) -> _Words:
        return _Words.of(self._normalised.text)

    @cached_property
    def _borders(self) -> tuple[int, ...]:
        rows = {found.end() - 1 for found in ROW.finditer(self.text)}
        return tuple(sorted(rows | {found.start() for found in BORDER.finditer(self.text)}))

    def find(self, quotation: str, threshold: float = 0.8) -> Passage | None:
        """Where the quotation stands; None where it does not, or where it has too little in it to prove anything."""
        quotation = quotation.strip()
        if not self._shows_something(quotation):
            return None
        for start, end in _whole(self.text, quotation):
            return Passage(start, end, 1.0)
        asked = _Asked(quotation, normalise(quotation))
        if not self._shows_something(asked.plain):
            return None
        for start, end in _whole(self._normalised.text, asked.plain):
            place = self._normalised.original(start, end)
            if not self._joins(asked, *place):
                return Passage(*place, 1.0)
        return self._aligned(asked, threshold) if len(asked.plain) <= LONGEST_ALIGNED else None

    def _shows_something(self, quotation: str) -> bool:
        """A single character is found in any text; it counts where the text has no other (an answer like `**B**`)."""
        found = SUBSTANCE.findall(quotation[:10_000])
        return len(found) > 1 or (bool(found) and len(self.text) < 100 and SUBSTANCE.findall(self.text) == found)

    def _aligned(self, asked: _Asked, threshold: float) -> Passage | None:
        """The first passage with the same words that is similar enough."""
        from rapidfuzz.fuzz import ratio

        words = asked.words
        if not words.spans:
            return None
        own = asked.normalised.text[words.spans[0][0] : words.spans[-1][1]]
        text = self._normalised.text
        for start, end in self._same_words(words):
            passage = text[start:end]
            if is_torn(text, start) or is_torn(text, end):
                continue
            if len(SENTENCE_END.findall(passage)) > len(SENTENCE_END.findall(own)):
                continue  # "No. It works" is not "No it works"
            similarity = ratio(own, passage, score_cutoff=threshold * 100) / 100
            place = self._normalised.original(start, end)
            if similarity >= threshold and not self._joins(asked, *place):
                return Passage(*place, similarity)
        return None

    def _joins(self, asked: _Asked, start: int, end: int) -> bool:
        """Whether this passage of the original text joins rows or items that the quotation does not set apart."""
        position, words = start, 0
        for border in self._borders[bisect_right(self._borders, start) : bisect_left(self._borders, end)]:
            words += len(TOKEN.findall(normalise(self.text[position:border]).text))
            position = border
            if 0 < words < len(asked.words.spans) and not BREAK.search(asked.before(words)):
                return True
        return False

    def _same_words(self, words: _Words) -> Iterator[tuple[int, int]]:
        """Passages of the normalised text with exactly these tokens."""
        position = -1
        for _ in range(MOST_ALIGNED):
            position = self._words.joined.find(words.joined, position + 1)
            if position == -1:
                return
            first = bisect_left(self._words.starts, position)
            yield self._words.spans[first][0], self._words.spans[first + len(words.spans) - 1][1]


def _whole(text: str, quotation: str) -> Iterator[tuple[int, int]]:
    """Where the quotation occurs as whole words."""
    position = -1
    for _ in range(MOST_TRIES):
        position = text.find(quotation, position + 1)
        if position == -1:
            return
        end = position + len(quotation)
        if not is_torn(text, position) and not is_torn(text, end):
            yield position, end
