"""What every pair of answering model and judge came to, and their traits, trait by trait, side by side."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, TypeAlias

from attrs import frozen
from karenina_cli.show.traits import scale_text, type_text
from karenina_cli.summary import percent
from karenina_compare.headline import Headline, Number, Numbers
from karenina_compare.measures import TRAIT

from karenina_core.values.fields import is_number

from .counts import Counts
from .texts import number, span

Ranks: TypeAlias = Mapping[tuple[str, str], tuple[int, int]]
"""(answering model, judge) -> the places that are left open."""


@frozen(kw_only=True)
class Pair:
    """One answering model with one judge."""

    index: int
    answering: str
    parsing: str
    label: str
    """Short enough for a plot; different for every pair."""
    line: Mapping[str, Any]
    """The pair's row of `karenina verify --json`: rates, counts, traits."""
    numbers: Numbers
    """The pair's rates with their intervals, and what is missing."""
    failures: Counter[tuple[str, str, str]]
    """`(outcome, group, reason) -> items` of what did not pass."""
    caveats: Counter[str]
    """Name -> items."""
    calls: int
    attempts: int
    cost_usd: float | None
    ranks: tuple[int, int] | None
    """The best and the worst place by pass rate that comparisons with the other models leave open."""
    tokens_unknown: bool
    """Whether the tokens of some call are unknown."""
    seconds: Sequence[float]
    """Of each item, from its first stage to its last."""
    answer_seconds: Sequence[float]
    """Of each answer that was generated for this judge; those that it shares with another are not here."""

    @property
    def measured(self) -> Mapping[str, Number]:
        """Every number of a trait, by its name."""
        return {number.name: number for number in self.numbers.traits}

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def slow_seconds(self) -> float | None:
        """Nine of ten items took at most this long."""
        ordered = sorted(self.seconds)
        return ordered[math.ceil(0.9 * len(ordered)) - 1] if ordered else None

    @property
    def median_answer_seconds(self) -> float | None:
        return median(self.answer_seconds) if self.answer_seconds else None


def pairs_of(counts: Counts, headline: Headline, ranks: Ranks | None = None) -> list[Pair]:
    """In the order in which they first occur. `headline` has the numbers of these results, `ranks` the places."""
    numbers = {(found.answering, found.parsing): found for found in headline.pairs}
    listed = []
    for index, (names, found) in enumerate(zip(counts.listing.pairs, counts.pairs, strict=True)):
        line = counts.tally.pairs[names].row(names, times=False)
        usage = found.usage.by_task()
        costs = [row["cost_usd"] for row in usage.values()]
        listed.append(
            Pair(
                index=index,
                answering=line["answering"],
                parsing=line["parsing"],
                label=counts.listing.labels[index],
                line=line,
                numbers=numbers[names],
                failures=found.failures,
                caveats=Counter(line["caveats"]),
                ranks=(ranks or {}).get(names),
                calls=sum(row["calls"] for row in usage.values()),
                attempts=sum(row["attempts"] for row in usage.values()),
                cost_usd=None if not costs or None in costs else sum(costs),
                tokens_unknown=any(row["usage_unavailable"] for row in usage.values()),
                seconds=found.seconds,
                answer_seconds=found.answer_seconds,
            )
        )
    return listed


Line = Mapping[str, Any]
SAME = ("trait", "type", "kind", "higher_is_better", "min", "max")


@frozen(kw_only=True)
class Cell:
    """One trait of one pair."""

    pair: Pair
    line: Line
    text: str
    """What the scores come to; empty where there is no score."""
    position: float | None = None
    """A rate, or the mean's place on its scale, from 0 to 1."""
    low: float | None = None
    high: float | None = None
    """The interval, as `position` is."""
    interval: str = ""
    """The interval as people read it."""

    @property
    def silent(self) -> int:
        """Items in which it was due, nothing failed, and no value was given."""
        return int(self.line["n"] - self.line["ok"] - self.line["errors"])


@frozen(kw_only=True)
class TraitProfile:
    """One trait over all pairs that have it."""

    name: str
    type: str
    kind: str | None
    hint: str
    """What the numbers mean: the scale, and which end is the better one."""
    cells: Sequence[Cell]

    @property
    def classes(self) -> list[str]:
        """Of literal traits and of scores that are texts: every class of any pair."""
        return list(dict.fromkeys(name for cell in self.cells for name in _counts(cell.line)))


def profiles(pairs: Sequence[Pair]) -> list[TraitProfile]:
    """In the order in which the traits are first met. Traits of one name whose scales differ are listed apart."""
    groups: dict[str, list[tuple[Pair, Line]]] = {}
    for pair in pairs:
        for line in pair.line["traits"]:
            same = {key: line.get(key) for key in SAME} | {"classes": list(line.get("classes") or ())}
            groups.setdefault(json.dumps(same, default=str), []).append((pair, line))
    listed = []
    for found in groups.values():
        first = found[0][1]
        better = {True: "higher is better", False: "lower is better"}.get(first["higher_is_better"], "")
        scale = scale_text(first).removeprefix(" of ")
        listed.append(
            TraitProfile(
                name=first["trait"],
                type=type_text(first["type"], first["kind"]),
                kind=first["kind"],
                hint=", ".join(part for part in (scale, better) if part),
                cells=[_cell(pair, line) for pair, line in found],
            )
        )
    return listed


def _cell(pair: Pair, line: Line) -> Cell:
    found = pair.measured.get(f"{TRAIT}{line['trait']}")
    ends = (found.interval.low, found.interval.high) if found and found.interval else None
    if (rate := line.get("rate")) is not None:
        low, high = ends or (None, None)
        text, interval = f"true {percent(rate)}", span(ends, percent)
        return Cell(pair=pair, line=line, text=text, position=rate, low=low, high=high, interval=interval)
    if (mean := line.get("mean")) is not None:
        start: Any = line.get("min")
        end: Any = line.get("max")
        known = is_number(start) and is_number(end) and start < end  # else means have no place on the scale
        values = (mean, *(ends or (None, None)))
        place, low, high = (
            min(max((at - start) / (end - start), 0), 1) if known and at is not None else None for at in values
        )
        text, interval = f"mean {number(float(mean))}", span(ends, number)
        return Cell(pair=pair, line=line, text=text, position=place, low=low, high=high, interval=interval)
    if counts := _counts(line):
        return Cell(pair=pair, line=line, text=", ".join(f"{name} {count}" for name, count in counts.items()))
    metrics = []
    for name, mean in (line.get("metrics") or {}).items():
        found = pair.measured.get(f"{TRAIT}{line['trait']}.{name}")
        limits = span((found.interval.low, found.interval.high), number) if found and found.interval else ""
        metrics.append(f"{name} {number(mean)}{f' ({limits})' if limits else ''}")
    return Cell(pair=pair, line=line, text=", ".join(metrics))


def _counts(line: Line) -> Mapping[str, int]:
    """Of classes, or of texts; nothing where there is no score."""
    if not line["ok"]:
        return {}
    others = {"other texts": line["other_texts"]} if line.get("other_texts") else {}
    return line.get("classes") or {**line.get("texts", {}), **others}
