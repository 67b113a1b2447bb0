"""A comparison in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import astuple
from karenina_cli.output import Part, Table, inline

from .gates import Gate
from .values import Comparison
from .wording import HEAD, changed, changes, headline, line, notes_on, sides

__all__ = ["MOST", "parts"]

MOST = 20
"""Flipped questions that are shown; the JSON document has all."""


def parts(comparison: Comparison, gates: Sequence[Gate]) -> list[Part]:
    """What is printed, in this order: the rows, ties, gates, flipped questions and notes."""
    title = ", ".join(f"{label} {name}" for label, name in sides(comparison))
    parts: list[Part] = [Table(HEAD, [astuple(line(row)) for row in comparison.rows], title)] if comparison.rows else []
    parts += [*_ties(comparison), *_gates(gates), *_flipped(comparison)]
    parts += (
        [Table(("",), [(inline(text, 500),) for text in found], "Notes")] if (found := notes_on(comparison)) else []
    )
    return [*parts, f"{headline(comparison)} (differences: B - A; p-values adjusted: {comparison.correction})"]


def _ties(comparison: Comparison) -> list[Part]:
    rows = [
        (name, f"{low}" if low == high else f"{low} to {high}", tie.metric, tie.parsing)
        for tie in comparison.ties
        for name, (low, high) in tie.ranks.items()
    ]
    return [Table(("model", "rank", "metric", "judge"), rows, "Ranks that the comparisons leave open")] if rows else []


def _gates(gates: Sequence[Gate]) -> list[Part]:
    rows = [("passed" if gate.passed else "FAILED", gate.name, gate.about, gate.message) for gate in gates]
    return [Table(("", "gate", "about", "why"), rows, "Gates")] if rows else []


def _flipped(comparison: Comparison) -> list[Part]:
    head, rows = changed(comparison, MOST)
    cells = [(*row[:-2], inline(row[-2], 60), inline(row[-1], 60)) for row in rows]
    more = len(comparison.flipped) - len(rows)
    return [
        *([Table(head, cells, f"Changed: {changes(comparison)}")] if rows else []),
        *([f"  and {more} more; --json has all"] if more else []),
    ]
