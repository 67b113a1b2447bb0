"""Texts as HTML: every text of a model or a file passes through `plain`. What all items have is made here and not in a
template, for a report has a hundred such pieces for every item."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from .outcomes import OutcomeKind
from .texts import cut, number, redaction, shown

SHORT = 200
"""Characters of a text that may be kept: names of stages, fields and the like are on the page thousands of times."""
NUMERIC = ' class="n"'
NAME = ' scope="row" dir="auto"'
CELL, FIRST_CELL = 4000, 2000
"""Characters of a cell of a table."""


def plain(text: str) -> Markup:
    """A text as the page may show it, escaped."""
    return _short(text) if len(text) <= SHORT else escape(shown(text))


@lru_cache(maxsize=4096)
def _short(text: str) -> Markup:
    return escape(shown(text))


def begin() -> None:
    """Forget what earlier pages kept: the secrets of the environment may be others now."""
    redaction.cache_clear()
    for kept in (_short, _short_text, _short_cell, _head):
        kept.cache_clear()


def finalized(found: Any) -> Any:
    """What a template prints: texts pass through `plain`."""
    if type(found) is str:  # as most is
        return plain(found)
    return plain(found) if isinstance(found, str) and not isinstance(found, Markup) else found


def written_out(found: Any) -> str:
    """What a template of items prints: text that needs no second escape, for there are a hundred pieces in an item."""
    if type(found) is str:
        return _short_text(found) if len(found) <= SHORT else str(plain(found))
    return str(found if isinstance(found, Markup) else plain(str(found)))


@lru_cache(maxsize=4096)
def _short_text(text: str) -> str:
    return str(_short(text))


def badge(kind: OutcomeKind, detail: str = "") -> Markup:
    """An outcome with its sign."""
    more = f' <span class="detail">({plain(detail)})</span>' if detail else ""
    sign = f'<span aria-hidden="true">{plain(kind.sign)}</span>'
    return Markup(f'<span class="badge {plain(kind.name)}">{sign} {plain(kind.label)}{more}</span>')


def long(text: str) -> Markup:
    """A text that may have many lines; of a very long one the beginning."""
    kept, left_out = cut(text)
    more = f"{number(left_out)} more characters are not on this page; karenina show prints them."
    rest = f'\n<p class="muted">{more}</p>' if left_out else ""
    return Markup(f'<div class="text" dir="auto">{plain(kept)}</div>{rest}')


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> Markup:
    """A table whose first column names the row; `numeric` are the columns of numbers, from 0. Empty without rows."""
    if not rows:
        return Markup("")
    kinds = [NAME, *(NUMERIC if place in numeric else ' dir="auto"' for place in range(1, max(map(len, rows))))]
    lines = [
        "".join(
            [
                _short_cell(kind, text) if len(text) <= SHORT else _cell(kind, text)
                for kind, text in zip(kinds, row, strict=False)
            ]
        )
        for row in rows
    ]
    body = "</tr>\n<tr>".join(lines)
    return Markup(f"{_head(caption, tuple(columns), tuple(numeric))}<tr>{body}</tr>\n</tbody>\n</table></div>")


@lru_cache(maxsize=256)
def _head(caption: str, columns: tuple[str, ...], numeric: tuple[int, ...]) -> str:
    name = plain(caption)
    head = "".join(
        f'<th scope="col"{NUMERIC if place in numeric else ""}>{plain(column)}</th>'
        for place, column in enumerate(columns)
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{name}"><table>\n<caption>{name}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n"
    )


def trait_row(trait: Any) -> Markup:
    """The row of one trait, as `item_view` has it, in the table of an item."""
    provenance = trait.provenance
    beside = f'<span class="sub">{plain(provenance)}</span>' if provenance and provenance != "global" else ""
    look = "" if trait.good is None else ' class="good"' if trait.good else ' class="bad"'
    state = f'<strong class="warn">{plain(trait.state)}</strong>' if trait.failed else plain(trait.state)
    return Markup(
        f'<tr class="{"broken" if trait.failed else ""}">'
        f'<th scope="row" dir="auto">{plain(trait.name[:200])}{beside}</th>'
        f'<td>{plain(trait.type)}</td><td dir="auto"{look}>{plain(trait.score[:2000])}</td>'
        f"<td>{state}</td>"
        f'<td dir="auto">{plain(trait.reason[:2000])}</td></tr>'
    )


def _cell(kind: str, text: str) -> str:
    if kind == NAME:
        return f"<th{kind}>{plain(text[:FIRST_CELL])}</th>"
    more = f"… ({number(len(text) - CELL)} more characters)" if len(text) > CELL else ""
    return f"<td{kind}>{plain(text[:CELL])}{more}</td>"


_short_cell = lru_cache(maxsize=4096)(_cell)
