"""Is this quotation in that text? Typography and spelling may differ a little; no number, sign or negation may.

A quotation is accepted where its words, numbers and symbols follow each other in the text in the same order, and the
passage is at least as similar to it as the threshold asks. What may differ:

- white space, quotation marks, dashes and marks of markdown (`normalised`), and punctuation;
- case, hyphens and diacritics, but not in names with digits and not in units (`words`);
- one letter that was inserted, dropped or swapped with its neighbour, in words of seven letters or more;
- an aside of the text that the quotation leaves out, within a sentence: a parenthesis, or what is between two
  commas or dashes, without a negation, a condition or a quantity in it (`asides`).

It must consist of whole words and whole numbers: "40 mg" is not in "140 mg", "effective" is not in "non-effective", and
"5" is in none of "-5", "2.5", "<5" and "5 %" (`cuts`). It must not begin just behind a negation (`sense`). In scripts
that write no spaces between words, every character counts as a word. Rows of a table and items of a list are joined
only where the quotation shows that they are several: with a line break, "|", ";" or the mark of an item. Lines `key:
value` that follow each other are rows too.

The similarity is `rapidfuzz.fuzz.ratio` as a fraction: twice the characters in common, in order, divided by the lengths
of the quotation and of the passage, both normalised and without case, diacritics and hyphens. Of an aside that was left
out of the passage a third of the length counts (`ELIDED`). 1.0 is all but typography, 0.8 a quotation that leaves out
one and a half times as much as it has.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from operator import and_

from attrs import frozen

from .asides import Aside, aside_at, is_torn
from .normalised import Normalised, Words, folded, normalise
from .sense import is_negation, loses_negation

LONGEST_ALIGNED = 5_000
"""Longer quotations must occur verbatim: to compare two texts takes time with the product of their lengths."""
MOST_TRIES = 1_000  # chosen, as the next: prose has the words of a quotation at a few places
MOST_ALIGNED = 20  # passages
MOST_STEPS = 20_000
"""Pairs of a word of the quotation and one of the text that are looked at, about 0.1 s; prose takes some hundreds."""
WINDOW = 400
"""Words that asides may put between two words of a quotation, beside twice their distance in it."""
ELIDED = 1 / 3
"""How much of an aside counts that a quotation leaves out. What may be left out at all is decided before (`asides`), so
this need not protect the sense. Counted in full, short sentences with an ordinary aside are refused at 0.8 (`the mayor
(a baker) won`): of the 40 in the tests 29, counted half 4, a third none, and no distorted one is accepted for it."""
SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s")
SUBSTANCE = re.compile(r"[^\W_]")
BORDER = re.compile(
    r"(?<![:,;])(?<!\band)(?<!\bor)\n(?=[ \t>]*[-*+•‣◦▪][ \t])|\n(?=[ \t>]*\|)|(?<=\|)[ \t\r]*\n|<(?:li|tr)\b"
)
"""Before an item of a list or a row of a table, and behind a row. The number of an item is a word like others.

A colon introduces the first item, and a comma or an "and" at the end of one carries the sentence on to the next.
"""
KEY_VALUE = re.compile(r"[ \t]*[*_]{0,2}[^\W\d_][^\n:.!?;]{0,39}:[*_]{0,2}[ \t]+\S")
"""A line such as `Dose: 400 mg`; a key of more than 40 characters is prose."""
HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
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
    """1.0 where nothing differs but typography, case, hyphens and diacritics."""
    left_out: tuple[tuple[int, int], ...] = ()
    """Asides within it that the quotation does not have, from the first character to behind the last one."""


@frozen
class _Step:
    """A word that was found, and the way to it."""

    before: _Step | None
    pair: tuple[int, int]
    aside: Aside | None = None
    """What was left out just before it."""


@frozen
class _Path:
    """How a quotation follows a text: a pair of numbers for every word, and the asides in between."""

    pairs: tuple[tuple[int, int], ...]
    """Words of the quotation, and of the text."""
    behind: int
    """The number of the word of the text behind the last one."""
    asides: tuple[Aside, ...] = ()

    @classmethod
    def of(cls, last: _Step | None, behind: int) -> _Path:
        steps = []
        while last is not None:
            steps.append(last)
            last = last.before
        steps.reverse()
        asides = tuple(step.aside for step in steps if step.aside is not None)
        return cls(tuple(step.pair for step in steps), behind, asides)


class _Asked:
    """A quotation that is looked for."""

    def __init__(self, text: str, normalised: Normalised) -> None:
        self.text = text
        self.normalised = normalised
        self.plain = normalised.text.strip()

    @cached_property
    def words(self) -> Words:
        return Words(self.normalised.text)

    def before(self, word: int) -> str:
        """The text between a token (not the first) and the one before it, as it was written."""
        words = self.words
        (_, end), (start, _) = (
            self.normalised.original(words.starts[one], words.ends[one]) for one in (word - 1, word)
        )
        return self.text[end:start]


class Source:
    """A text that is quoted from. What searching it costs beyond the search itself is paid once, when it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _normalised(self) -> Normalised:
        return normalise(self.text)

    @cached_property
    def _words(self) -> Words:
        return Words(self._normalised.text)

    @cached_property
    def _borders(self) -> tuple[int, ...]:
        return tuple(sorted({*_row_ends(self.text), *(found.start() for found in BORDER.finditer(self.text))}))

    def find(self, quotation: str, threshold: float = 0.8) -> Passage | None:
        """Where the quotation occurs; None where it does not, or where it has too little in it to prove anything.

        Of several passages the most similar one is taken. A higher threshold (0 to 1) never accepts more.
        """
        quotation = quotation.strip()
        if not self._shows_something(quotation):
            return None
        for start, end in _whole(self.text, quotation):
            return Passage(start, end, 1.0)
        asked = _Asked(quotation, normalise(quotation))
        if not self._shows_something(asked.plain):
            return None
        for start, end in islice(_whole(self._normalised.text, asked.plain), MOST_ALIGNED):
            first = self._words.first_from(start)
            path = _Path(tuple((word, first + word) for word in range(len(asked.words))), first + len(asked.words))
            if not self._joins(asked, path):
                return Passage(*self._normalised.original(start, end), 1.0)
        if len(asked.plain) > LONGEST_ALIGNED:
            return None
        # the most similar of the first passages that the quotation follows; it does not depend on the threshold
        passages = (self._passage(asked, path) for path in _Search(asked.words, self._words).paths())
        best: Passage | None = None
        for found in islice((passage for passage in passages if passage is not None), MOST_ALIGNED):
            if best is None or found.similarity > best.similarity:
                best = found
            if best.similarity == 1.0:
                break
        return best if best is not None and best.similarity >= threshold else None

    def _shows_something(self, quotation: str) -> bool:
        """A single character is found in any text; it counts where the text has no other (an answer like `**B**`)."""
        found = SUBSTANCE.findall(quotation)
        return len(found) > 1 or (bool(found) and len(self.text) < 100 and SUBSTANCE.findall(self.text) == found)

    def _passage(self, asked: _Asked, path: _Path) -> Passage | None:
        """The passage of the original text, unless it tears something apart or joins what is apart."""
        from rapidfuzz.fuzz import ratio

        text, words = self._words.text, self._words
        start, end = words.starts[path.pairs[0][1]], words.ends[path.behind - 1]
        if _is_cut_off(text, start, end):
            return None
        own = asked.words.text[asked.words.starts[0] : asked.words.ends[-1]]
        kept, position = "", start
        for aside in path.asides:
            kept += text[position : aside.start]
            position = aside.end
        kept += text[position:end]
        if len(SENTENCE_END.findall(kept)) > len(SENTENCE_END.findall(own)):
            return None  # "No. It works" is not "No it works"
        if self._joins(asked, path):
            return None
        own, kept = _bare(own), _bare(kept)
        both = len(own) + len(kept)
        elided = sum(len(_bare(text[aside.start : aside.end])) for aside in path.asides)
        similarity = ratio(own, kept) / 100 * both / (both + ELIDED * elided)
        left_out = tuple(self._normalised.original(aside.start, aside.end) for aside in path.asides)
        return Passage(*self._normalised.original(start, end), similarity, left_out)

    def _joins(self, asked: _Asked, path: _Path) -> bool:
        """Whether it joins rows or items that the quotation does not set apart, or leaves out an aside that crosses
        their border."""
        if any(self._borders_in(aside.start, aside.end) for aside in path.asides):
            return True
        starts = self._words.starts
        for border in self._borders_in(starts[path.pairs[0][1]], self._words.ends[path.behind - 1]):
            behind = bisect_left(starts, border, key=lambda start: self._normalised.original(start, start + 1)[0])
            word = next((own for own, its in path.pairs if its >= behind), 0)
            if word and not BREAK.search(asked.before(word)):
                return True
        return False

    def _borders_in(self, start: int, end: int) -> Sequence[int]:
        """The borders within a passage of the normalised text."""
        first, last = self._normalised.original(start, end)
        return self._borders[bisect_right(self._borders, first) : bisect_left(self._borders, last)]


class _Search:
    """Looks for the ways in which a quotation follows a text, from left to right."""

    def __init__(self, asked: Words, source: Words) -> None:
        self.asked = asked
        self.source = source
        self.spellings = [frozenset(source.spellings(key)) for key in asked.keys]
        self.exact = [asked.is_exact(word) for word in range(len(asked))]
        self.steps = 0

    def paths(self) -> Iterator[_Path]:
        """At most one for each word of the text that a passage can begin with."""
        size = len(self.asked)
        rarest = min(range(size), key=lambda word: sum(map(len, self._places(word))))
        places = sorted({place for found in self._places(rarest) for place in found})
        failed: set[tuple[int, int]] = set()
        for first in sorted({place for found in self._places(0) for place in found}):
            nearest = bisect_left(places, first)
            if nearest == len(places) or places[nearest] > first + 2 * rarest + WINDOW:
                continue
            if (path := self._path(first, failed)) is not None:
                yield path
            if self.steps > MOST_STEPS:
                return

    def _places(self, word: int) -> list[Sequence[int]]:
        """Words of the text that this word, or a compound with it, can be."""
        asked, source = self.asked, self.source
        found: list[Sequence[int]] = [source.places[key] for key in self.spellings[word]]
        found.append(source.compounds.get(asked.keys[word], ()))
        compounds = (asked.compound(first) for first in (word - 1, word) if first >= 0)
        return found + [source.places.get(joined, ()) for joined in compounds if joined is not None]

    def _path(self, first: int, failed: set[tuple[int, int]]) -> _Path | None:
        """`failed` holds the pairs from which no way leads to the end of the quotation."""
        seen: set[tuple[int, int]] = set()
        ends: list[tuple[int, int, _Step | None]] = [(0, first, None)]
        while ends and self.steps <= MOST_STEPS:
            word, place, way = ends.pop()
            if word == len(self.asked):
                return _Path.of(way, place)
            if (word, place) in seen or (word, place) in failed or place >= len(self.source):
                continue
            seen.add((word, place))
            self.steps += 1
            if word and (aside := aside_at(self.source, place)) is not None:
                ends += [(*step, _Step(way, (word, aside.behind), aside)) for step in self._on(word, aside.behind)]
            ends += [(*step, _Step(way, (word, place))) for step in self._on(word, place)]
        failed |= seen
        return None

    def _on(self, word: int, place: int) -> Iterator[tuple[int, int]]:
        """What follows two words that are the same, or a word and a compound that are."""
        asked, source = self.asked, self.source
        if place >= len(source):
            return
        key = source.keys[place]
        if key in self.spellings[word]:
            same = key == asked.keys[word] or not is_negation(key)
            if self.exact[word] or source.is_exact(place):  # case, diacritics and spelling count
                same = asked.written(word) == source.written(place)
            if same:
                yield word + 1, place + 1
        if source.compound(place) == asked.keys[word]:
            yield word + 1, place + 2
        if asked.compound(word) == key:
            yield word + 2, place + 1


def _bare(text: str) -> str:
    """Without what does not count: case, diacritics, hyphens."""
    return HYPHEN.sub("", folded(text))


def _row_ends(text: str) -> Iterator[int]:
    """Where a row of a table without outer lines ends and another one follows, or a line `key: value` and another one.
    A single line with ` | ` or a colon in it may be prose."""
    start, before = 0, (False, False)
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end == -1 else end
        kinds = text.find(" | ", start, end) != -1, KEY_VALUE.match(text, start, end) is not None
        if any(map(and_, before, kinds)):
            yield start - 1
        start, before = end + 1, kinds


def _whole(text: str, quotation: str) -> Iterator[tuple[int, int]]:
    """Where the quotation occurs as whole words."""
    position = -1
    for _ in range(MOST_TRIES):
        position = text.find(quotation, position + 1)
        if position == -1:
            return
        end = position + len(quotation)
        if not _is_cut_off(text, position, end):
            yield position, end


def _is_cut_off(text: str, start: int, end: int) -> bool:
    return is_torn(text, start) or is_torn(text, end) or loses_negation(text, start, end)
