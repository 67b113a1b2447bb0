"""Whether a passage that a judge quotes occurs in a text, and is long enough to show anything."""

from __future__ import annotations

import re
import unicodedata
from html import unescape

__all__ = ["occurs"]

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana and ideographs: no spaces between words, so every character counts as one."""
SPACED = re.compile(rf"[^\W_{UNSPACED}]")
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
APOSTROPHES = re.compile(r"(?<=[^\W_])[’‘ʼ´`′＇'](?=[^\W_])")
INLINE_TAG = re.compile(r"</?(?:a|abbr|b|code|em|font|i|kbd|mark|q|s|small|span|strong|sub|sup|u)\b[^<>]*>", re.I)
TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]*>")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
MARKS = re.compile(r"[*`]+|~~|\\(?=[^\w\s])|(?<![^\W_])_+|_+(?![^\W_])")
LEAST = 4
"""What a quotation must weigh: a word of a script with spaces weighs 2, a character of one without spaces 1."""


def occurs(quotation: str, text: str, least: int = LEAST) -> bool:
    """Whether the quotation is a passage of the text: the same whole words in a row.

    Case, accents, ligatures, apostrophes, punctuation, HTML tags and markdown marks do not count, for judges change
    them when they copy. A single word (or fewer than four characters of a script without spaces) is found in any text:
    it counts only where it is the whole text, unless `least` (see `LEAST`) is lower. So does a quotation without any
    letter or digit, which must be the text as it is. An empty one occurs nowhere.
    """
    if not WORD.search(quotation):
        return bool(quotation.strip()) and quotation.strip() == text.strip()
    return any(_in_a_row(_words(form(quotation)), _words(form(text)), least) for form in (str, _unmarked))


def _in_a_row(wanted: list[str], words: list[str], least: int) -> bool:
    weight = sum(2 if SPACED.match(word) else 1 for word in wanted)
    if weight < least:
        return bool(wanted) and wanted == words
    return f" {' '.join(wanted)} " in f" {' '.join(words)} "


def _words(text: str) -> list[str]:
    # Apostrophes first, because some of them decompose into a blank. Then twice, because folding the case of a
    # character may leave one that can be decomposed again.
    folded = unicodedata.normalize("NFKD", APOSTROPHES.sub("", text))
    folded = APOSTROPHES.sub("", unicodedata.normalize("NFKD", folded.casefold()))
    return WORD.findall("".join(c for c in folded if unicodedata.category(c) not in ("Mn", "Mc", "Me", "Cf")))


def _unmarked(text: str) -> str:
    """The text as it looks where HTML and markdown are shown."""
    text = unescape(TAG.sub(" ", INLINE_TAG.sub("", text)))
    return MARKS.sub("", LINK.sub(r"\1", text))
