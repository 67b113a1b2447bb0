"""A comparison for readers: tables in the terminal, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import astuple
from karenina_cli.options.gates import gate_state
from karenina_cli.output import Part, Table, inline, printable
from karenina_runs.summaries.gates import Gate

from karenina_core.plugin.command_line import Section

from .values import Comparison
from .wording import GATES, HEAD, TIED, TIES, changed, changes, headline, line, notable, notes_on, sides, tied

MOST = 20
"""Flipped questions that are shown; the JSON document has all."""
SPECIAL = re.compile(r"[&<>|`*_\[\]~#\\@$]|://|www\.", re.IGNORECASE)
"""Everything that Markdown, HTML or the pages of code hosts could read as markup, a link, a mention or a formula."""
ROWS = 40
"""Rows, gates and notes that are shown: hosts of code cut comments at 65,536 characters."""
EXCERPT = 120
"""Characters of an answer."""
OURS = ("change", "A → B")
"""Columns that hold nothing but our own words and numbers."""
Shown = TypeVar("Shown")


def parts(comparison: Comparison, gates: Sequence[Gate]) -> list[Part]:
    """What is printed in the terminal, in this order: the rows, ties, gates, flipped questions and notes."""
    title = ", ".join(f"{label} {name}" for label, name in sides(comparison))
    judged = [(gate_state(gate), gate.name, gate.about, gate.message) for gate in gates]
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


def literal(text: object, limit: int = 300) -> str:
    """The text in one line, shown as it is anywhere, also in a cell of a table."""
    shown = inline(printable(str(text)), limit)
    escaped = SPECIAL.sub(lambda found: "".join(f"&#{ord(letter)};" for letter in found[0]), shown)
    return f"<code>{escaped}</code>" if escaped else ""


def markdown(comparison: Comparison, gates: Sequence[Gate], sections: Sequence[Section] = ()) -> str:
    """What it came to, the rows, gates, ties, changed questions, sections of other packages and notes. Names and
    answers are data: they cannot become markup or mentions."""
    failed, title = sum(not gate.passed for gate in gates), "Comparison"
    if gates:
        title = (
            f"❌ {failed} of {len(gates)} gates failed" if failed else f"✅ {len(gates)} of {len(gates)} gates passed"
        )
    blocks = [f"## {title}", f"{', '.join(f'{label} {literal(name)}' for label, name in sides(comparison))}."]
    blocks += [f"{headline(comparison)}."]
    if comparison.rows:
        cells = [astuple(line(row)) for row in _first(comparison.rows, notable)]
        blocks.append(_table(HEAD, [[literal(who), literal(metric), *rest] for who, metric, *rest in cells]))
        blocks += _more(comparison.rows)
        explanation = f"Differences are B - A with {100 * comparison.level:g} % intervals; "
        blocks.append(f"{explanation}p-values are adjusted for the number of rows ({comparison.correction}).")
    shown = _first(gates, lambda all_: sorted(all_, key=lambda gate: gate.passed))
    if shown:
        states = {"FAILED": "**failed**", "WARNING": "**warning**"}
        rows = [
            [states.get(state := gate_state(g), state), g.name, literal(g.about), literal(g.message)] for g in shown
        ]
        blocks += ["### Gates", _table(GATES, rows), *_more(gates)]
    if ranks := [[literal(name), rank, *map(literal, about)] for name, rank, *about in tied(comparison)]:
        blocks += [f"### {TIED}", _table(TIES, ranks[:ROWS]), *_more(ranks)]
    head, flips = changed(comparison, MOST)
    if flips:
        shown_flips = [
            [cell if name in OURS else literal(cell, EXCERPT) for name, cell in zip(head, row, strict=True)]
            for row in flips
        ]
        more = len(comparison.flipped) - len(flips)
        blocks += [f"<details><summary>Changed questions: {changes(comparison)}</summary>", _table(head, shown_flips)]
        blocks += [*([f"And {more} more; `--json` has all."] if more else []), "</details>"]
    blocks += [block for section in sections for block in _section(section)]
    if found := notes_on(comparison):
        blocks += ["### Notes", "\n".join(f"- {literal(text, 500)}" for text in found[:ROWS]), *_more(found)]
    return "\n\n".join(blocks) + "\n"


def _section(section: Section) -> list[str]:
    title = [f"### {literal(section.title)}"] if section.title else []
    rows = [[literal(cell) for cell in cells] for cells in section.rows[:ROWS]]
    table = [_table(section.columns, rows), *_more(section.rows)] if rows else []
    before, after = ([literal(text, 500) for text in lines] for lines in (section.before, section.after))
    return [*title, *before, *table, *after]


def _first(parts: Sequence[Shown], ordered: Callable[[Sequence[Shown]], Sequence[Shown]]) -> Sequence[Shown]:
    """All of them as they are; of too many, the first in the order of what matters."""
    return parts if len(parts) <= ROWS else ordered(parts)[:ROWS]


def _more(parts: Sequence[object]) -> list[str]:
    return [f"And {len(parts) - ROWS} more; `--json` has all."] if len(parts) > ROWS else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
