"""Is this quotation in that text? Typography may differ; no word, number, sign or negation may.

A quotation is accepted

- where it occurs verbatim, as it is or after both were normalised (white space, quotes, dashes, markdown marks; case
  counts), or
- where its words, numbers and symbols follow each other in the text without anything in between, and the passage is
  at least as similar to it (0 to 1, `rapidfuzz.fuzz.ratio`) as the threshold asks: then punctuation alone differs.

Either way it must consist of whole words and whole numbers: "40 mg" is not in "140 mg", "effective" is not in
"non-effective", and "5" is in none of "-5", "2.5", "<5" and "5 %". In scripts that write no spaces between words,
every character counts as a word.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from attrs import frozen

from .normalised import CHARACTERS, Normalised, normalise

__all__ = ["LONGEST_ALIGNED", "Passage", "Source"]

LONGEST_ALIGNED = 5_000
"""Longer quotations must occur verbatim: to compare two texts takes time with the product of their lengths."""
MOST_TRIES = 1_000
MOST_ALIGNED = 20
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana and ideographs: no spaces between words."""
TOKEN = re.compile(
    rf"""
      \d+(?:[.,:]\d+)*                                  # 400, 2.5, 1,000, 10:30
    | [^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)*      # not, can't
    | [{UNSPACED}]
    | (?<![^\W\d_])-(?=\ ?\.?\d)                        # a sign or a range: -5, 3-5
    | (?<=\w)-(?!\w)                                    # HER2-
    | (?<!\w)\.(?=\d)                                   # .5
    | [^\s\w,;:.!?()\[\]{{}}"'|•·\-\x00]                # every other symbol: + < % ° / €
    """,
    re.VERBOSE,
)
"""What must be the same in a quotation and in the text. All else is punctuation."""
TORN = re.compile(
    rf"""
      [^\W{UNSPACED}]\x00[^\W{UNSPACED}]                # in a word or a number
    | \w[-']\x00\w | \w\x00[-']\w                       # in a compound: non-|effective, can|'t
    | [-+±⁻.]\x00\.?\d                                  # behind a sign or a decimal point
    | (?:[<>≤≥≠≈~]\ ?|[\^/])\x00[-+]?\.?\d              # behind what bounds or divides a number
    | \d[.,:]\x00\d | \d\x00[.,:]\d                     # in 2.5
    | \d\x00(?:\ ?[%‰]|[°^/⁻])                          # before what gives a number its meaning
    | \d\ ?[^\W\d_]{{1,5}}\x00/                          # 400 mg|/day
    | \w\x00[-+](?!\w)                                  # HER2|-
    """,
    re.VERBOSE,
)
"""A text is torn where this fits around the cut, which is the \\x00."""
REACH = 8
"""Characters on either side of a cut that are looked at."""
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s")
SUBSTANCE = re.compile(r"[^\W_]")
ALIKE = str.maketrans({**CHARACTERS, "\0": " "})
WORD = re.compile(rf"[^\W{UNSPACED}]")


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

    def find(self, quotation: str, threshold: float = 0.8) -> Passage | None:
        """Where the quotation stands; None where it does not, or where it has too little in it to prove anything."""
        quotation = quotation.strip()
        if not self._shows_something(quotation):
            return None
        for start, end in _whole(self.text, quotation):
            return Passage(start, end, 1.0)
        plain = normalise(quotation).text.strip()
        if not self._shows_something(plain):
            return None
        for start, end in _whole(self._normalised.text, plain):
            return Passage(*self._normalised.original(start, end), 1.0)
        return self._aligned(plain, threshold) if len(plain) <= LONGEST_ALIGNED else None

    def _shows_something(self, quotation: str) -> bool:
        """A single character is found in any text; it counts where the text has no other (an answer like `**B**`)."""
        found = SUBSTANCE.findall(quotation[:10_000])
        return len(found) > 1 or (bool(found) and len(self.text) < 100 and SUBSTANCE.findall(self.text) == found)

    def _aligned(self, plain: str, threshold: float) -> Passage | None:
        """The first passage with the same words that is similar enough."""
        from rapidfuzz.fuzz import ratio

        words = _Words.of(plain)
        if not words.spans:
            return None
        own = plain[words.spans[0][0] : words.spans[-1][1]]
        text = self._normalised.text
        for start, end in self._same_words(words):
            passage = text[start:end]
            if _is_torn(text, start) or _is_torn(text, end):
                continue
            if len(SENTENCE_END.findall(passage)) > len(SENTENCE_END.findall(own)):
                continue  # "No. It works" is not "No it works"
            similarity = ratio(own, passage, score_cutoff=threshold * 100) / 100
            if similarity >= threshold:
                return Passage(*self._normalised.original(start, end), similarity)
        return None

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
        if not _is_torn(text, position) and not _is_torn(text, end):
            yield position, end


def _is_torn(text: str, position: int) -> bool:
    """Whether a cut at this position tears a word or a number apart, or a number from its sign or bound."""
    before, after = text[max(0, position - REACH) : position], text[position : position + REACH]
    if TORN.search("\0".join(side.translate(ALIKE) for side in (before, after))):
        return True
    if not after or not before:
        return False
    return _is_mark(after[0]) or (_is_mark(before[-1]) and WORD.match(after) is not None)


def _is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it: accents, vowel signs."""
    return character > "\u02ff" and unicodedata.category(character)[0] == "M"
