"""A comparison in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import astuple
from karenina_cli.output import Part, Table, inline

from .gates import Gate
from .values import Comparison
from .wording import GATES, HEAD, TIED, TIES, changed, changes, headline, line, notes_on, sides, tied

MOST = 20
"""Flipped questions that are shown; the JSON document has all."""


def parts(comparison: Comparison, gates: Sequence[Gate]) -> list[Part]:
    """What is printed, in this order: the rows, ties, gates, flipped questions and notes."""
    title = ", ".join(f"{label} {name}" for label, name in sides(comparison))
    judged = [("passed" if gate.passed else "FAILED", gate.name, gate.about, gate.message) for gate in gates]
    head, rows = changed(comparison, MOST)
    more = len(comparison.flipped) - len(rows)
    return [
        Table(HEAD, [astuple(line(row)) for row in comparison.rows], title),
        Table(TIES, tied(comparison), TIED),
        Table(GATES, judged, "Gates"),
        Table(
            head,
            [(*row[:-2], *(inline(text, 60) for text in row[-2:])) for row in rows],
            f"Changed: {changes(comparison)}",
        ),
        *([f"  and {more} more; --json has all"] if more else []),
        Table(("",), [(inline(text, 500),) for text in notes_on(comparison)], "Notes"),
        f"{headline(comparison)} (differences: B - A; p-values adjusted: {comparison.correction})",
    ]
