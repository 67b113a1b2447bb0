"""Texts and data without secrets, also where they are written in escaped form."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from attrs import frozen

from karenina_core import log
from karenina_core.secrets import MASK, NUMBER, WORDS, secrets_in

PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
TEXT_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')
FENCE = "```"
NESTED = 32
"""Backslashes at most that are read as one: JSON within JSON five times has so many. A limit keeps the search quick."""


@frozen
class _Secret:
    """One secret, and how it is found in texts that may have escaped it."""

    value: str
    source: str
    anchor: str
    """Its longest part that is written in one way everywhere: to look for that is quick."""
    pattern: re.Pattern[str] | None
    """None where the anchor is all of it."""
    in_names: bool
    """Whether it is taken out of names in JSON, too: no program has a name such as a random key."""

    @classmethod
    def of(cls, value: str, source: str) -> _Secret:
        anchor = max(PLAIN.findall(value), key=len, default="")
        pattern = None if anchor == value else re.compile(_pattern(value))
        return cls(value, source, anchor, pattern, not (NUMBER.fullmatch(value) or WORDS.fullmatch(value)))

    def is_in(self, text: str) -> bool:
        return self.anchor in text and (self.pattern is None or self.pattern.search(text) is not None)

    def out_of(self, text: str) -> str:
        return text.replace(self.value, MASK) if self.pattern is None else self.pattern.sub(MASK, text)


def _pattern(value: str) -> str:
    """What finds a text as it is, and as JSON, a `repr`, or the percent signs of an address have it."""
    forms, before = [], 0
    for char in value:
        if char == "\\":
            before += 1
        else:
            forms.append(_forms(char, before))
            before = 0
    return "".join([*forms, _backslashes(before, before)])


def _backslashes(before: int, least: int) -> str:
    """So many of them, each escaped up to `NESTED` times; at least one more where something escaped follows."""
    if not before and not least:
        return ""
    several = rf"\\{{{least},{(before + 1) * NESTED}}}"
    return f"(?:{several}|(?:%5[Cc]){{{before}}})" if before else several


def _forms(char: str, before: int) -> str:
    """A character after so many backslashes."""
    plain = _backslashes(before, before)
    if PLAIN.fullmatch(char):
        return plain + re.escape(char)
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = ["".join(rf"\\{{1,{NESTED}}}u{units[place : place + 4]}" for place in range(4, len(units), 4))]
    escaped = [f"u{units[:4]}{escaped[0]}", f"u{ord(char):08x}", *([f"x{ord(char):02x}"] if ord(char) < 256 else [])]
    short = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}.get(char, re.escape(char) if char in "\"'/" else "")
    percent = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    after = [f"(?i:{'|'.join(escaped)})", *([short] if short else [])]
    return f"(?:{plain}(?:{re.escape(char)}|(?i:{percent}))|{_backslashes(before, before + 1)}(?:{'|'.join(after)}))"


class Secrets:
    """Values that no text may hold, each with what it is the value of: a variable of the environment, or a setting."""

    def __init__(self, sources: Mapping[str, str] | None = None) -> None:
        self.sources = sources = sources or {}
        values = sorted((value for value in sources if value and value not in MASK), key=len, reverse=True)
        self._every = tuple(_Secret.of(value, sources[value]) for value in values)
        self._anchors = tuple(secret.anchor for secret in self._every)

    def __bool__(self) -> bool:
        return bool(self._every)

    def sources_in(self, text: str) -> list[str]:
        """What the secrets in a text are the values of."""
        return [secret.source for secret in self._every if secret.is_in(text)]

    def text(self, text: str, removed: set[str] | None = None) -> str:
        """The text with a mask in place of every secret; `removed` is given what they were the values of.

        What is JSON as a whole stays JSON with the same numbers; names in it lose only secrets that no name of a
        program can be.
        """
        for anchor in self._anchors:
            if anchor in text:
                return self._text(text, removed)
        return text  # as it is nearly always

    def may_be_in(self, *texts: str | None) -> bool:
        """Whether some text has the part of a secret that nothing escapes: quick, and seldom wrong."""
        for anchor in self._anchors:
            for text in texts:
                if text and anchor in text:
                    return True
        return False

    def _text(self, text: str, removed: set[str] | None) -> str:
        if not (there := [secret for secret in self._every if secret.is_in(text)]):
            return text
        if not _is_json(text):
            return _without(text, there, removed)

        def cleaned(found: re.Match[str]) -> str:
            literal, colon = found[0].removesuffix(found[1] or ""), found[1] or ""
            value = json.loads(literal, strict=False)
            clean = _without(value, there, removed, names=True) if colon else self.text(value, removed)
            return found[0] if clean == value else json.dumps(clean, ensure_ascii=literal.isascii()) + colon

        return TEXT_OF_JSON.sub(cleaned, text)

    def data(self, value: Any, removed: set[str] | None = None) -> Any:
        """The same for every text in JSON's own types; names as in `text`. The very same value where there is none."""
        if isinstance(value, str):
            return self.text(value, removed)
        if isinstance(value, Mapping):
            pairs = {self._name(name, removed): self.data(item, removed) for name, item in value.items()}
            same = all(pairs.get(name, pairs) is item for name, item in value.items())
            return value if same else pairs
        if isinstance(value, list | tuple):
            items = [self.data(item, removed) for item in value]
            same = all(one is other for one, other in zip(items, value, strict=True))
            return value if same else tuple(items) if isinstance(value, tuple) else items
        return value

    def _name(self, name: Any, removed: set[str] | None) -> Any:
        there = [secret for secret in self._every if isinstance(name, str) and secret.is_in(name)]
        return _without(name, there, removed, names=True) if there else name


def _without(text: str, there: Iterable[_Secret], removed: set[str] | None, *, names: bool = False) -> str:
    for secret in there:
        if (secret.in_names or not names) and secret.is_in(text):
            text = secret.out_of(text)
            if removed is not None:
                removed.add(secret.source)
    return text


def _is_json(text: str) -> bool:
    """Whether a text is an object or a list of JSON, also between the lines of a fence."""
    inner = text.strip()
    if inner.startswith(FENCE) and inner.endswith(FENCE):
        inner = inner.removesuffix(FENCE).partition("\n")[2].lstrip()
    if inner[:1] not in ("{", "["):
        return False
    try:
        json.loads(inner, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that takes every one of these values out of a text, see `Secrets.text`."""
    return _kept(frozenset(secrets)).text


@lru_cache(maxsize=64)
def _kept(values: frozenset[str]) -> Secrets:
    return Secrets(dict.fromkeys(values, ""))


_hidden: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """Never log these, for the rest of the process."""
    _hidden.update(secrets)
    log.redact_with(lambda text: redactor({*secrets_in(os.environ), *_hidden})(text))
