"""A text as words, numbers and symbols, in the form in which a quotation is compared with it."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from .normalised import UNSPACED

__all__ = ["TOKEN", "Words", "folded"]

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
LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
"""Letters with diacritics that Unicode does not take apart."""
DIACRITICS = re.compile("(?<=[a-zα-ω])[\u0300-\u036f]+")
"""Of Latin and Greek letters only: elsewhere a mark may be a vowel (Devanagari) or make another letter (Cyrillic)."""
LONGEST_SYMBOL = 4
"""Letters of the longest unit whose case distinguishes it from another: kBit, mmol; 5 mM is not 5 mm."""
SHORTEST_MISSPELT = 7
"""Letters of the shortest word of the text in which one letter may be missing, doubled or swapped: shorter words become
other words too easily (trial and trail, desert and dessert)."""


def folded(text: str) -> str:
    """The text without case and without diacritics."""
    text = text.casefold()
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", text.translate(LETTERS))
    return unicodedata.normalize("NFC", DIACRITICS.sub("", text))


class Words:
    """The tokens of a normalised text, by their number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts, self.ends = array("L"), array("L")
        """Of each token within the text."""
        self.keys: list[str] = []
        """What each token is compared by: its text, folded."""
        known: dict[str, str] = {}
        for token in TOKEN.finditer(text):
            self.starts.append(token.start())
            self.ends.append(token.end())
            written = token.group()
            if written not in known:
                known[written] = folded(written)
            self.keys.append(known[written])

    def __len__(self) -> int:
        return len(self.keys)

    def written(self, number: int) -> str:
        return self.text[self.starts[number] : self.ends[number]]

    def gap(self, number: int) -> str:
        """The text between a token (not the first) and the one before it."""
        return self.text[self.ends[number - 1] : self.starts[number]]

    def compound(self, number: int) -> str | None:
        """A word and the next one as they would be without the hyphen between them; None where there is none."""
        if number + 1 >= len(self) or self.gap(number + 1) != "-":
            return None
        first, second = self.keys[number], self.keys[number + 1]
        return first + second if first.isalpha() and second.isalpha() else None

    def is_exact(self, number: int) -> bool:
        """Whether case and diacritics count: in names with digits (BCL2, Cys481) and in units (5 mM, 3 mg/kg)."""
        start, end = self.starts[number], self.ends[number]
        if self.text[start - 1 : start].isdigit() or self.text[end : end + 1].isdigit():
            return True
        follows = number > 0 and self.gap(number) in ("", " ") and not self.keys[number - 1][0].isalpha()
        return follows and end - start <= LONGEST_SYMBOL

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The numbers of the tokens by their keys."""
        found: dict[str, list[int]] = {}
        for number, key in enumerate(self.keys):
            found.setdefault(key, []).append(number)
        return found

    @cached_property
    def compounds(self) -> dict[str, list[int]]:
        """The numbers of the first words of compounds, by the compound without its hyphen."""
        found: dict[str, list[int]] = {}
        for number in range(len(self)):
            if (joined := self.compound(number)) is not None:
                found.setdefault(joined, []).append(number)
        return found

    def spellings(self, key: str) -> Sequence[str]:
        """How the text writes a word: as the key says, or where it has no such word, with one letter more or less, or
        with two neighbours swapped. No other letter, and the first one as it is: `symptomatic` is not `asymptomatic`,
        `afferent` not `efferent`.
        """
        if key in self.places:
            return (key,)
        if len(key) < SHORTEST_MISSPELT - 1 or not key.isalpha():
            return ()
        sizes = range(max(SHORTEST_MISSPELT, len(key) - 1), len(key) + 2)
        return [word for size in sizes for word in self._long.get((key[0], size), ()) if _is_slip(key, word)]

    @cached_property
    def _long(self) -> dict[tuple[str, int], list[str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for key in self.places:
            if len(key) >= SHORTEST_MISSPELT and key.isalpha():
                found.setdefault((key[0], len(key)), []).append(key)
        return found

    def first_from(self, position: int) -> int:
        """The number of the first token that begins at or behind a position of the text."""
        return bisect_left(self.starts, position)


def _is_slip(one: str, other: str) -> bool:
    """Whether a letter was inserted, dropped or swapped with its neighbour; a substituted letter is none."""
    from rapidfuzz.distance import OSA

    if OSA.distance(one, other, score_cutoff=1) != 1:
        return False
    return len(one) != len(other) or sorted(one) == sorted(other)
