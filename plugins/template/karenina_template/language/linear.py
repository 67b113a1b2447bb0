r"""Regular expressions in linear time: those that RE2 can search for, with what Python's `re` would find.

RE2 never tries again, so the time for a text grows as the text does, whatever the pattern. It has no look-around and
no references to groups, counts to 1,000, and its classes are those of ASCII. So a pattern is read by Python's own
parser and written for RE2 part by part; one that has a part which would find something else there has no linear form.
There are two forms: the narrow one is for texts whose letters and digits are all ASCII, the wide one for all others.
"""

from __future__ import annotations

import re
import re._constants as codes  # type: ignore[import-not-found]  # typeshed leaves both out; hypothesis uses them too
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import lru_cache
from typing import Any

from attrs import define, frozen

SPACES = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
NO_SPACES = (
    r"\x00-\x08\x0e-\x1b!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}"
)
ASCII = {
    codes.CATEGORY_DIGIT: "0-9",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_WORD: "0-9A-Za-z_",
    codes.CATEGORY_NOT_WORD: r"\W",
    codes.CATEGORY_SPACE: r"\t-\r ",
    codes.CATEGORY_NOT_SPACE: r"\x00-\x08\x0e-\x1f!-\x{10ffff}",
}
NARROW = ASCII | {codes.CATEGORY_SPACE: SPACES, codes.CATEGORY_NOT_SPACE: NO_SPACES}
WIDE = {
    codes.CATEGORY_DIGIT: r"\p{Nd}",
    codes.CATEGORY_NOT_DIGIT: r"\P{Nd}",
    codes.CATEGORY_WORD: r"\p{L}\p{N}_",
    codes.CATEGORY_SPACE: SPACES,
    codes.CATEGORY_NOT_SPACE: NO_SPACES,
}
"""What is written in brackets for a class of `re`."""
OTHER_CASES = {"i": "iI\u0130\u0131", "k": "kK\u212a", "s": "sS\u017f"}
"""ASCII letters that are the same as others without regard to case, in texts that are not ASCII."""
OTHER_LETTERS = re.compile(r"[^\W\x00-\x7f]")
KINDS = re.ASCII | re.UNICODE
STEPS = 100_000_000
"""Parts of the pattern times characters of the text. RE2 took 6 to 25 ns for each where it took longest
(`a[ab]{900}c` in random letters), so up to about two seconds; usually it takes a nanosecond for a byte."""
MEMORY = 1 << 20
"""Bytes for one form and what RE2 notes of the texts that it has read. Chosen, not measured."""


@define(eq=False)
class Found:
    """A match, with the methods of those of `re`."""

    text: str
    span: Callable[..., tuple[int, int]]
    """Of a group, or of all of it, in characters; (-1, -1) for a group that has no part in it."""
    count: int
    """Of groups."""

    def start(self) -> int:
        return self.span(0)[0]

    def end(self) -> int:
        return self.span(0)[1]

    def group(self, number: int = 0) -> str | None:
        start, end = self.span(number)
        return None if start < 0 else self.text[start:end]

    def groups(self, default: str | None = None) -> tuple[str | None, ...]:
        found = map(self.group, range(1, self.count + 1))
        return tuple(default if text is None else text for text in found)


@frozen
class Linear:
    """A pattern for RE2."""

    _engine: Any
    _to_the_end: bool
    """Whether it has a `$`, which in `re` is before a last line break too."""
    _groups: int
    _longest: int
    """Characters of a text that it may read."""

    def reads(self, text: str) -> bool:
        """Whether what it finds in this text is what `re` finds, and soon."""
        return len(text) <= self._longest and not (self._to_the_end and text.endswith("\n"))

    def search(self, text: str) -> Found | None:
        """The first match."""
        coded = text.encode()
        return self._found(text, coded, match) if (match := self._engine.search(coded)) else None

    def fullmatch(self, text: str) -> Found | None:
        """The match of the whole text."""
        coded = text.encode()
        return self._found(text, coded, match) if (match := self._engine.fullmatch(coded)) else None

    def _found(self, text: str, coded: bytes, match: Any) -> Found:
        as_it_is = len(coded) == len(text)
        return Found(text, match.span if as_it_is else _Places(coded).spans(match, self._groups), self._groups)

    def matches(self, text: str) -> Generator[Found, None, int | None]:
        """The matches from left to right, up to one of no characters: after such a one, `re` goes on in its own way.
        Returns where that one is."""
        coded, groups = text.encode(), self._groups
        places = _Places(coded) if len(coded) != len(text) else None
        for match in self._engine.finditer(coded):
            start, end = match.span()
            span = places.spans(match, groups) if places else match.span
            if start == end:
                return span(0)[0]
            yield Found(text, span, groups)
        return None

    def rounds(self, text: str) -> Generator[None, None, int | None]:
        """As often as there are `matches`, for those who only count them."""
        coded = text.encode()
        for match in self._engine.finditer(coded):
            start, end = match.span()
            if start == end:
                return len(coded[:start].decode())
            yield
        return None


@define
class _Places:
    """Where the characters of a coded text are, asked for from left to right."""

    coded: bytes
    place: int = 0
    character: int = 0

    def spans(self, match: Any, groups: int) -> Callable[..., tuple[int, int]]:
        if not groups:
            start, end = match.span()
            only = self._reach(start), self._reach(end)
            return lambda number=0: only
        spans = [match.span(number) for number in range(groups + 1)]
        characters = {-1: -1}
        for place in sorted({place for span in spans for place in span} - {-1}):
            characters[place] = self._reach(place)
        found = [(characters[start], characters[end]) for start, end in spans]
        return lambda number=0: found[number]

    def _reach(self, place: int) -> int:
        self.character += len(self.coded[self.place : place].decode())
        self.place = place
        return self.character


class _Other(Exception):
    """A part of a pattern that RE2 does not have, or reads in another way."""


def linear(pattern: str, flags: int, text: str) -> Linear | None:
    """The form of the pattern that finds in this text what `re` finds, if there is one. `re` has to accept it."""
    wide = False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a character
            return None
        wide = OTHER_LETTERS.search(text) is not None
    form = _form(pattern, flags, wide)
    return form if form is not None and form.reads(text) else None


@lru_cache(maxsize=2048)
def _form(pattern: str, flags: int, wide: bool) -> Linear | None:
    try:
        import re2  # type: ignore[import-untyped]  # it brings no types, and is not made for every system

        options = re2.Options()
    except (ImportError, AttributeError):  # other packages have a module of this name
        return None
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        read = parser.parse(pattern, flags)
        writer = _Writer(wide)
        written = writer.sequence(read, read.state.flags)
        engine = re2.compile(written.encode(), options)
        return Linear(engine, writer.to_the_end, engine.groups, STEPS // engine.programsize)
    except (_Other, UnicodeEncodeError, RecursionError, FutureWarning, re2.error):
        return None  # of a set within a set, `re` warns


class _Writer:
    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.to_the_end = False

    def sequence(self, parts: Iterable[tuple[Any, Any]], flags: int) -> str:
        return "".join(self._part(code, value, flags) for code, value in parts)

    def _part(self, code: Any, value: Any, flags: int) -> str:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            return f"[{'^' if code is codes.NOT_LITERAL else ''}{self._character(value, flags)}]"
        if code is codes.ANY:
            return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
        if code is codes.IN:
            return self._class(value, flags)
        if code is codes.BRANCH:
            return f"(?:{'|'.join(self.sequence(branch, flags) for branch in value[1])})"
        if code is codes.SUBPATTERN:
            group, on, off, inner = value
            off |= KINDS if on & KINDS else 0
            return f"({'' if group else '?:'}{self.sequence(inner, flags & ~off | on)})"
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            return self._repeated(value, flags) + ("?" if code is codes.MIN_REPEAT else "")
        if code is codes.AT:
            return self._place(value, flags)
        raise _Other

    def _repeated(self, value: Any, flags: int) -> str:
        least, most, inner = value
        if not inner.getwidth()[0]:
            raise _Other  # rounds of no characters end a repetition in their own way
        return f"(?:{self.sequence(inner, flags)}){{{least},{'' if most is codes.MAXREPEAT else most}}}"

    def _place(self, place: Any, flags: int) -> str:
        if place is codes.AT_END and not flags & re.MULTILINE:
            self.to_the_end = True
        elif place is codes.AT_NON_BOUNDARY:
            raise _Other  # RE2 finds it between the bytes of one character
        elif place is codes.AT_BOUNDARY and self.wide and not flags & re.ASCII:
            raise _Other
        lines = flags & re.MULTILINE
        places: Mapping[Any, str] = {
            codes.AT_BEGINNING: "(?m:^)" if lines else r"\A",
            codes.AT_BEGINNING_STRING: r"\A",
            codes.AT_END: "(?m:$)" if lines else r"\z",
            codes.AT_END_STRING: r"\z",
            codes.AT_BOUNDARY: r"\b",
        }
        return places[place]

    def _class(self, parts: Iterable[tuple[Any, Any]], flags: int) -> str:
        kinds = ASCII if flags & re.ASCII else WIDE if self.wide else NARROW
        members = []
        negated = ""
        for code, value in parts:
            if code is codes.NEGATE:
                negated = "^"
            elif code is codes.LITERAL:
                members.append(self._character(value, flags))
            elif code is codes.RANGE:
                members.append(self._range(value, flags))
            elif code is codes.CATEGORY and value in kinds:
                members.append(kinds[value])
            elif parts == [(code, codes.CATEGORY_NOT_WORD)]:
                negated, members = "^", [kinds[codes.CATEGORY_WORD]]
            else:
                raise _Other
        return f"[{negated}{''.join(members)}]"

    def _range(self, ends: tuple[int, int], flags: int) -> str:
        first, last = ends
        written = rf"\x{{{first:x}}}-\x{{{last:x}}}"
        if not flags & re.IGNORECASE:
            return written
        if last > 127:
            raise _Other
        return "".join(self._character(number, flags) for number in range(first, last + 1))

    def _character(self, number: int, flags: int) -> str:
        """In brackets."""
        character = chr(number)
        same = character
        if flags & re.IGNORECASE:
            if number > 127 and not character == character.lower() == character.upper():
                raise _Other
            lower = character.lower()
            same = lower + lower.upper() if number < 128 else character
            if not flags & re.ASCII:
                same = OTHER_CASES.get(lower, same)
        return "".join(rf"\x{{{ord(one):x}}}" for one in same)
