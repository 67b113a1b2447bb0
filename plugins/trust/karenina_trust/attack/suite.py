"""The payloads: texts that are to make a judge accept a wrong answer. They are in `payloads.json`, which has a version:
rates of different versions are not comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from karenina_core.errors import ConfigError, Problem, did_you_mean

FILE = Path(__file__).with_name("payloads.json")
POSITIONS: Mapping[str, Callable[[str, str], str]] = {
    "start": lambda payload, answer: f"{payload}\n\n{answer}",
    "end": lambda payload, answer: f"{answer}\n\n{payload}",
    "alone": lambda payload, answer: payload,
}
"""Where a payload stands; `alone`, it is the whole answer."""
SEPARATORS = {"zero-width": "\u200b", "bidi": "\u202e", "soft-hyphen": "\u00ad", "joiner": "\u2060"}
"""What is put between all letters of a text."""


@frozen(kw_only=True)
class Payload:
    """One text. `{wanted}` in it becomes what a right answer would state, `{reply}` what the judge would have to
    reply."""

    id: str
    family: str
    text: str
    repeat: int = 1
    encoding: str = ""
    """How its letters are hidden: in those of the tag block, as variation selectors, or with one of `SEPARATORS`."""

    def filled(self, wanted: str, reply: str) -> str:
        """Its text in an answer; no blanks at its end, which an answer would lose."""
        text = (self.text * self.repeat).rstrip().replace("{wanted}", wanted).replace("{reply}", reply)
        if self.encoding == "tags":
            return "".join(chr(0xE0000 + ord(letter)) if ord(letter) < 0x80 else letter for letter in text)
        if self.encoding == "variation":
            return "".join(chr(0xE0100 + ord(letter)) for letter in text if ord(letter) < 0xF0)
        return SEPARATORS.get(self.encoding, "").join(text)


@frozen(kw_only=True)
class Suite:
    """All payloads, and what is put in their places to see what a text does that asks for nothing."""

    version: str
    families: Mapping[str, str]
    """What each family is, by its name."""
    payloads: Sequence[Payload]
    benign: str

    def control(self, length: int) -> str:
        """A text of so many characters that says nothing about the question or the judge."""
        text = (self.benign * (length // len(self.benign) + 1))[:length]
        return text if text == text.rstrip() else f"{text[:-1]}."

    def of(self, families: Collection[str]) -> Sequence[Payload]:
        """Those of these families; all where none is named. Raises ConfigError for families that there are none of."""
        if unknown := [name for name in families if name not in self.families]:
            there = f"available: {', '.join(self.families)}"
            raise ConfigError(
                Problem("--family", f"there is no {name!r}{did_you_mean(name, self.families)}; {there}")
                for name in unknown
            )
        return [payload for payload in self.payloads if not families or payload.family in families]


@cache
def suite() -> Suite:
    data = json.loads(FILE.read_text("utf-8"))
    return Suite(
        version=data["version"],
        families=data["families"],
        payloads=[Payload(**payload) for payload in data["payloads"]],
        benign=data["benign"],
    )
