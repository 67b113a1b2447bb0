"""What the traits came to, trait by trait, with all pairs side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_cli.show.traits import scale_text, type_text
from karenina_cli.summary import percent
from karenina_compare.measures import TRAIT

from karenina_core.values.fields import is_number

from .pairs import Pair
from .texts import number, span

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
