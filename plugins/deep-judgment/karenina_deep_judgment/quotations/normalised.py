"""Texts without their typography, and the way back to where each character came from."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache

from attrs import field, frozen

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana and ideographs: no spaces between words."""
HANGUL = "\u1100-\u11ff\uac00-\ud7a3"
"""Particles follow words of any script without a space."""

CHARACTERS: dict[str, str] = {
    **dict.fromkeys("‘’‚‛ʼ′‹›´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–−﹣", "-"),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e", ""),
    **dict.fromkeys("\u2066\u2067\u2068\u2069", ""),
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms of ASCII
    **{chr(0xFB00 + i): text for i, text in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))},
    "…": "...",
    "µ": "μ",
    "`": "",
}
"""Characters that look alike or not at all, and their replacements."""
LINK = r"\[(?=[^\[\]\n]{1,300}\]\(\S)|\]\((?:https?:|www\.|mailto:|[#/.])[^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"
FOOTNOTE = r"\[\^[\w-]{1,20}\](?!:)"
ESCAPE = r"\\(?=[!-/:-@\[-`{-~])"
INLINE = r"</?(?:b|i|u|em|strong|mark|small|span|code)(?:\ [\w-]+=\"[^\"<>]*\")*>"
BLOCK = r"</?(?:br|p|div|[uo]l|li|table|thead|tbody|t[rdh]|h[1-6])(?:\ [\w-]+=\"[^\"<>]*\")*\ ?/?>"
LETTER = rf"[^\W{UNSPACED}{HANGUL}]"
EMPHASIS = (
    rf"(?<!{LETTER})(?<![*])(?<!\w\\)\*{{1,3}}(?=[^\s*=])|(?<=[^\s*])\*{{1,3}}(?![*=])(?!{LETTER})"  # not in 5*3
    rf"|(?<={LETTER})\*\*(?=[^\W_][\w .%/-]{{0,100}}(?<!\ )\*\*(?!\*)(?!{LETTER}))"  # BCL**2**
    rf"|(?<!{LETTER})(?<!\w\\)_{{1,3}}(?=[^\W_])|(?<=[^\W_])_{{1,3}}(?!{LETTER})"  # not in names: a_b
)
CANDIDATE = r"(?=[^A-Za-z0-9.,;\ ]|\ [\s—―-])"
"""What everything that changes begins with, but for compositions; most of the text is not tried by the other rules."""
CLOSING = rf"(?<=[^\s*])\*\*(?={LETTER})"
PAIR = re.compile(rf"(?<!{LETTER})(?<![*\\])\*\*(?=[^\W_][\w .%/-]{{0,100}}(?<!\ )(\*\*)(?={LETTER}))")
"""Both marks of **400**mg; only together do they differ from the powers in x**2."""
LONG_DASH = r"\ ?[—―]\s*+|(?<=[^\W\d_])\ ?--\ ?(?=[^\W\d_])"
LINE_MARKS = re.compile(r"(?:\#{1,6}[ \t]+|(?:>[ \t]?)+(?![ \t]*[\d.])|[-*•‣◦▪][ \t]+|\+[ \t]+(?![\d.]))+")
"""Marks of headings, quotations and lists. What could be a sign of the number behind it stays."""
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


@frozen(eq=False)
class Normalised:
    """A text with white space, quotes, dashes and markdown marks made alike; letters keep their case."""

    text: str
    _pieces: tuple[tuple[int, int, int, bool], ...] = field(repr=False)
    """`(offset here, start and end there, copied as it was)` in order."""
    _offsets: tuple[int, ...] = field(repr=False)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `start` to `end` (exclusive, at least one) are in the original text."""
        offset, there, _, copied = self._piece(start)
        first = there + (start - offset if copied else 0)
        offset, there, beyond, copied = self._piece(end - 1)
        return first, there + end - offset if copied else beyond

    def _piece(self, position: int) -> tuple[int, int, int, bool]:
        return self._pieces[bisect_right(self._offsets, position) - 1]


def normalise(text: str) -> Normalised:
    """What remains of a text without its typography. Costs 0.2 to 1.5 ms per 10 KB: do it once per text."""
    parts: list[str] = []
    pieces: list[tuple[int, int, int, bool]] = []
    length = position = 0

    def add(part: str, start: int, end: int, copied: bool) -> None:
        nonlocal length
        if part.startswith(" ") and parts and parts[-1].endswith(" "):
            part, start = part[1:], start + copied
        if part:
            pieces.append((length, start, end, copied))
            parts.append(part)
            length += len(part)

    for start, end, replacement in _changes(text):
        add(text[position:start], position, start, True)
        add(replacement, start, end, False)
        position = end
    add(text[position:], position, len(text), True)
    return Normalised("".join(parts), tuple(pieces), tuple(piece[0] for piece in pieces))


def _changes(text: str) -> Iterator[tuple[int, int, str]]:
    """`(start, end, replacement)` of everything that does not stay as it is, from left to right."""
    pattern, replacement = _rules(_composable(text))
    closing = {found.start(1) for found in PAIR.finditer(text)}
    position = 0
    if marks := LINE_MARKS.match(text):
        yield 0, marks.end(), ""
        position = marks.end()
    while found := pattern.search(text, position):
        start, position = found.span()
        if found.lastgroup == "closing" and start not in closing:
            continue
        if found.lastgroup == "space" and "\n" in found.group() and (marks := LINE_MARKS.match(text, position)):
            position = marks.end()
        yield start, position, replacement(found)


def _composable(text: str) -> str:
    """A pattern for what the canonical composition changes; empty for nearly every text."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return ""
    used = set(text)
    marks = "".join(sorted(c for c in used if unicodedata.category(c)[0] == "M" or "\u1160" <= c <= "\u11ff"))
    single = "".join(sorted(c for c in used if unicodedata.normalize("NFC", c) != c))
    found = [rf"[^\s{re.escape(marks)}][{re.escape(marks)}]+"] if marks else []
    found += [f"[{re.escape(single)}]"] if single else []
    return "|".join(found)


@lru_cache(maxsize=8)
def _rules(composed: str) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    """One pattern for all that changes, and what each match becomes."""
    rules = {
        "dash": LONG_DASH,
        "space": r"[^\S ]\s*+|\ \s++",
        "nothing": f"{LINK}|{FOOTNOTE}|{ESCAPE}|{INLINE}|{EMPHASIS}",
        "closing": CLOSING,
        "block": BLOCK,
        "character": f"[{re.escape(''.join(CHARACTERS))}]",
    }
    known = "|".join(f"(?P<{name}>{rule})" for name, rule in rules.items())
    first = f"(?P<composed>{composed})|" if composed else ""
    pattern = re.compile(f"{first}{CANDIDATE}(?:{known})")

    def replacement(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "composed":
                return unicodedata.normalize("NFC", found.group())
            case "dash":
                return " - "
            case "space" | "block":
                return " "
            case "character":
                return CHARACTERS[found.group()]
        return ""

    return pattern, replacement


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
