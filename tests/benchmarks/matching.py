"""What it costs to look quotations up in a long answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from statistics import median

from karenina_deep_judgment.quotations.matching import Source

from .measure import Row
from .yardstick import took, yardstick

__all__ = ["matching_rows"]

SYLLABLES = ("ve", "ne", "to", "clax", "bi", "nds", "mi", "chon", "dri", "al", "pro", "te", "in", "ka", "li", "pha")
CHARACTERS = 100_000
BUDGET = 2.0
ONCE = 40.0
QUOTATIONS = 100


def answer(characters: int, seed: int) -> str:
    """Prose with numbers, punctuation and some markdown."""
    draw = random.Random(seed)
    words = [
        "".join(draw.choices(SYLLABLES, k=draw.randint(1, 4)))
        + draw.choice(("", "", "", "", "", "", ",", ".", ";", " 40 mg"))
        for _ in range(characters // 5)
    ]
    return "\n".join(" ".join(words[i : i + 15]) for i in range(0, len(words), 15))[:characters]


def matching_rows(rounds: int) -> list[Row]:
    """Median CPU per quotation in 100 KB, of those that are there, almost there and not there; and what a text costs
    once, before its first quotation that is not verbatim."""
    text = answer(CHARACTERS, 1)
    words = text.split(" ")
    draw = random.Random(2)
    places = draw.sample(range(len(words) - 400), QUOTATIONS)
    verbatim = [" ".join(words[i : i + 15]).strip(".,;") for i in places]
    long = [" ".join(words[i : i + 300]).strip(".,;") for i in places]
    kinds = {
        "quotation, verbatim": verbatim,
        "quotation, other marks": [q.replace(",", "").replace(";", "") for q in verbatim],
        "quotation, one word wrong": [q.replace(q.split()[7], "aspirin", 1) for q in verbatim],
        "quotation, 2000 characters": [q.replace(",", "") for q in long],
        "quotation, 2000, wrong": [f"{q.replace(',', '')} aspirin" for q in long],
    }
    source = Source(text)
    source.find("not there at all")
    rows = [_row(name, source, quotations, rounds) for name, quotations in kinds.items()]
    return [*rows, _once(text, rounds)]


def _row(name: str, source: Source, quotations: Sequence[str], rounds: int) -> Row:
    def found() -> list[float]:
        return [took(partial(source.find, quotation)).cpu for quotation in quotations]

    turns, times = zip(*((yardstick().cpu, found()) for _ in range(rounds)), strict=True)
    seen = [one for round_ in times for one in round_]
    about = f"max {max(seen):.2f}; in {CHARACTERS // 1000} KB"
    return Row(name, median(seen), BUDGET, None, about, yardstick=median(turns))


def _once(text: str, rounds: int) -> Row:
    def found() -> float:
        return took(lambda: Source(text).find("not there at all")).cpu

    turns, seen = zip(*((yardstick().cpu, found()) for _ in range(rounds)), strict=True)
    about = f"min {min(seen):.1f}, max {max(seen):.1f}"
    return Row("100 KB, once per item", median(seen), ONCE, None, about, yardstick=median(turns))
