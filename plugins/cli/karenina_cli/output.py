"""Everything that is printed passes through here: texts of models and files are data, never terminal commands."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from shutil import get_terminal_size
from textwrap import fill
from typing import IO, Any, NamedTuple

import click

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, what reorders text, lone surrogates, and invisible tags."""


BRACKETS = (("[[", "]]"), ("{{", "}}"), ("<<", ">>"), ("\u27e6", "\u27e7"))
"""What is put around marked pieces where a terminal shows no styles: the first pair that the text does not hold."""
WHOLE = 24
"""Characters of a word that a table on a terminal does not break; where it would have to, it is no table."""
COMMAND = re.compile(r"(?:^|: )(?:karenina|pip install) ")
GAP = 2
"""Blanks between two columns."""


class Table(NamedTuple):
    """Rows of cells under a title. Cells may hold anything."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


class Passage(NamedTuple):
    """A text of a model or a file, two blanks from the edge. Marked pieces stand out, with or without colours."""

    pieces: Sequence[tuple[str, bool]]

    @property
    def marked(self) -> bool:
        return any(mark and text for text, mark in self.pieces)


Part = str | Table | Passage


def printable(text: str) -> str:
    """The text with everything that a terminal could obey, or that hides text, written out as an escape."""

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        if code < 0x100:
            return f"\\x{code:02x}"
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    shown = UNSAFE.sub(escaped, text.replace("\r\n", "\n"))
    if shown.isascii():
        return shown
    from karenina_calls.ports.text import with_invisible

    return with_invisible(shown, escaped)


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


def filled(*parts: Part) -> list[Part]:
    """All but tables without rows."""
    return [part for part in parts if not isinstance(part, Table) or part.rows]


def print_parts(parts: Iterable[Part], out: IO[str]) -> None:
    """Print texts and tables, with rich where `out` is a terminal. A table without rows is not printed."""
    terminal = out.isatty()
    for part in filled(*parts):
        if isinstance(part, str):
            click.echo(_wrapped(printable(part)) if terminal else printable(part), file=out)
        elif isinstance(part, Passage) and terminal:
            _wrap_with_rich(part, out)
        elif isinstance(part, Passage):
            for line in _bracketed(part).split("\n"):
                click.echo(f"  {printable(line)}" if line else "", file=out)
        else:
            (_draw_with_rich if terminal else _draw_plainly)(part, out)


def _wrapped(text: str) -> str:
    """The text in lines that fit the terminal, broken between words. What begins with blanks, or ends with a command to
    type, is to be copied and stays one line."""
    width = max(get_terminal_size().columns, 20)
    lines = [
        line
        if len(line) <= width or line.startswith(" ") or COMMAND.search(line)
        else fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def print_found(document: Any, parts: Iterable[Part], out: IO[str], *, as_json: bool) -> None:
    """Print what a command found: as one JSON document, or as texts and tables."""
    if as_json:
        print_json(document, out)
    else:
        print_parts(parts, out)


def print_json(document: Any, out: IO[str]) -> None:
    """Print one JSON document. It is ASCII only, so that no terminal and no encoding can make anything else of it."""
    click.echo(json.dumps(_finite(document), indent=2, allow_nan=False, default=str), file=out)


def note(text: str) -> None:
    """A line for the user on stderr."""
    shown = printable(text)
    click.echo(_wrapped(shown) if sys.stderr.isatty() else shown, err=True)


def _finite(value: Any) -> Any:
    """The same data with numbers that JSON cannot hold as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _draw_plainly(table: Table, out: IO[str]) -> None:
    rows = [[inline(printable(cell), 10_000) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if table.title:
        click.echo(printable(table.title), file=out)
    for row in rows if any(table.columns) else rows[1:]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {line.rstrip()}", file=out)
    click.echo(file=out)


def _bracketed(passage: Passage) -> str:
    """The text with brackets around marked pieces; without them where it holds all of them already."""
    text = "".join(piece for piece, _ in passage.pieces)
    for opening, closing in BRACKETS:
        if opening not in text and closing not in text:
            return "".join(f"{opening}{piece}{closing}" if mark else piece for piece, mark in passage.pieces)
    return text


def _wrap_with_rich(passage: Passage, out: IO[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = _console(out)
    text = Text(overflow="fold")
    if console.color_system is None:
        text.append(printable(_bracketed(passage)))
    else:
        for piece, mark in passage.pieces:
            text.append(printable(piece), "bold reverse" if mark else None)
    console.print(Padding(text, (0, 0, 0, 2), expand=False))


def _draw_with_rich(table: Table, out: IO[str]) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as Drawn
    from rich.text import Text

    console = _console(out)
    columns = [[printable(cell) for cell in column] for column in zip(table.columns, *table.rows, strict=True)]
    words = [max((cell_len(word) for cell in cells for word in cell.split()), default=0) for cells in columns]
    whole = [max(cell_len(line) for cell in cells for line in cell.split("\n")) for cells in columns]
    widths = [min(width, WHOLE) for width in words]
    # Each has its words; what is left goes to longer words first, and then to the narrowest that have more to say.
    free = console.width - sum(widths) - GAP * (len(widths) + 1)
    if free < 0:
        _draw_as_records(table, console)
        return
    for wanted in (words, whole):
        while free and (narrow := [at for at, width in enumerate(widths) if width < wanted[at]]):
            widths[min(narrow, key=widths.__getitem__)] += 1
            free -= 1
    drawn = Drawn(box=box.SIMPLE, show_header=any(table.columns), padding=(0, 1, 0, 0))
    for column, width in zip(table.columns, widths, strict=True):
        drawn.add_column(Text(column), overflow="fold", width=width)
    for row in table.rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    if table.title:  # as wide as the terminal, not as the table
        console.print(Text(printable(table.title)))
    console.print(drawn)


def _draw_as_records(table: Table, console: Any) -> None:
    """A paragraph for each row, for terminals that are too narrow for the table."""
    from rich.padding import Padding
    from rich.text import Text

    if table.title:
        console.print(Text(printable(table.title)))
    for head, *cells in table.rows:
        console.print(Padding(Text(inline(printable(head), 10_000), overflow="fold"), (0, 0, 0, 2), expand=False))
        filled = [(name, cell) for name, cell in zip(table.columns[1:], cells, strict=True) if cell.strip()]
        text = Text(overflow="fold")
        for number, (name, cell) in enumerate(filled):
            text.append("; " if number else "").append(f"{name} " if name else "", "dim")
            text.append(inline(printable(cell), 10_000))
        if filled:
            console.print(Padding(text, (0, 0, 0, 4), expand=False))
    console.print()


def _console(out: IO[str]) -> Any:
    from rich.console import Console

    return Console(file=out, markup=False, highlight=False, emoji=False)
