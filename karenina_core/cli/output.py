"""Everything that is printed passes through here: texts of models and files are data, never terminal commands."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any, NamedTuple

import click

__all__ = ["Part", "Table", "inline", "note", "own_stdout", "print_json", "print_parts", "printable"]

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, what reorders text, lone surrogates, and invisible tags."""


class Table(NamedTuple):
    """Rows of cells under a title. Cells may hold anything."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


Part = str | Table


def printable(text: str) -> str:
    """The text with everything that a terminal could obey, or that hides text, written out as an escape."""
    return UNSAFE.sub(lambda match: _escape(ord(match[0])), text.replace("\r\n", "\n"))


def inline(text: object, limit: int = 200) -> str:
    """Any text in one line of at most `limit` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


@contextmanager
def own_stdout() -> Iterator[IO[str]]:
    """The standard output, kept for the caller: what plugins and templates print meanwhile goes to stderr."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield out


def print_parts(parts: Iterable[Part], out: IO[str]) -> None:
    """Print texts and tables, with rich where `out` is a terminal."""
    draw = _draw_with_rich if out.isatty() else _draw_plainly
    for part in parts:
        if isinstance(part, str):
            click.echo(printable(part), file=out)
        else:
            draw(part, out)


def print_json(document: Any, out: IO[str]) -> None:
    """Print one JSON document. It is ASCII only, so that no terminal and no encoding can make anything else of it."""
    click.echo(json.dumps(_finite(document), indent=2, allow_nan=False, default=str), file=out)


def note(text: str) -> None:
    """A line for the user on stderr."""
    click.echo(printable(text), err=True)


def _finite(value: Any) -> Any:
    """The same data with numbers that JSON cannot hold as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _draw_plainly(table: Table, out: IO[str]) -> None:
    rows = [[inline(printable(cell), 10_000) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if table.title:
        click.echo(printable(table.title), file=out)
    for row in rows if any(table.columns) else rows[1:]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {line.rstrip()}", file=out)
    click.echo(file=out)


def _draw_with_rich(table: Table, out: IO[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=box.SIMPLE, show_header=any(table.columns), title_justify="left")
    drawn.title = Text(printable(table.title)) if table.title else None
    for column in table.columns:
        drawn.add_column(Text(column), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    Console(file=out, markup=False, highlight=False, emoji=False).print(drawn)
