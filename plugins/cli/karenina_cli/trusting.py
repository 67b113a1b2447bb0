"""What `karenina trust` does and prints."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from karenina_runs.benchmark import Benchmark
from karenina_runs.trust.bundle import Piece, code_of, digest
from karenina_runs.trust.store import Record, TrustStore

from karenina_core.errors import BenchmarkError, plural
from karenina_core.values.benchmark import BenchmarkData

from .output import Part, Table, inline, own_stdout, print_parts

LONGEST = 2_000
"""Lines of a text that is compared line by line: the time grows as their square. Chosen, not measured."""
NOTHING = "It contains no code, so it needs no trust."


def show(path: Path, *, code: bool) -> None:
    """Raises BenchmarkError where the file cannot be read."""
    with own_stdout() as out:
        benchmark, store = Benchmark.load(path), TrustStore.of_user()
        pieces = code_of(benchmark)
        parts: list[Part] = [f"{path}: {_state(pieces, store)}", *_summary(pieces)]
        before = None if store.holds(digest(pieces)) else store.before(path, benchmark.name)
        if before is not None and pieces:
            parts += [f"Changes since {before.file} was trusted ({before.added}):", *_changes(before, pieces)]
        if code:
            parts += [f"--- {_name(piece)}\n{piece.text}" for piece in pieces]
        print_parts(parts, out)


def add(path: Path) -> None:
    """Raises BenchmarkError, and ConfigError where it cannot be kept."""
    with own_stdout() as out:
        benchmark: BenchmarkData = Benchmark.load(path)
        pieces = code_of(benchmark)
        if pieces:
            TrustStore.of_user().add(pieces, path, benchmark.name)
        print_parts([f"{path}: {_state(pieces, TrustStore.of_user())}", *_summary(pieces)], out)


def remove(path: Path) -> None:
    """Raises nothing where the file is not there or cannot be read: then what it was is trusted no longer."""
    with own_stdout() as out:
        try:
            found = digest(code_of(Benchmark.load(path)))
        except BenchmarkError:
            found = None
        count = TrustStore.of_user().remove(path, found)
        print_parts([f"{path}: {'no longer trusted' if count else 'was not trusted'}"], out)


def _state(pieces: Sequence[Piece], store: TrustStore) -> str:
    if not pieces:
        return NOTHING
    return f"{'trusted' if store.holds(digest(pieces)) else 'not trusted'}, SHA-256 {digest(pieces)}"


def _summary(pieces: Sequence[Piece]) -> list[Part]:
    if not pieces:
        return []
    counts = {kind: [piece for piece in pieces if piece.kind == kind] for kind in sorted({p.kind for p in pieces})}
    rows = [
        (
            plural(len(found), kind),
            str(sum(map(len, (p.text.splitlines() for p in found)))),
            str(sum(p.size for p in found)),
        )
        for kind, found in counts.items()
    ]
    imported = sorted({name for piece in pieces for name in piece.imports()})
    return [
        Table(("what", "lines", "bytes"), rows),
        f"Imports: {', '.join(inline(name) for name in imported) or 'nothing'}",
        *(f"Model of {_name(piece)}: {inline(piece.text, 400)}" for piece in counts.get("model", ())),
    ]


def _changes(before: Record, pieces: Sequence[Piece]) -> Iterator[str]:
    old = {(piece.kind, piece.owner): piece for piece in before.pieces}
    new = {(piece.kind, piece.owner): piece for piece in pieces}
    for key in sorted({*old, *new}):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        name = f"{key[0]} {key[1]}"
        lines = [piece.text.splitlines() if piece is not None else [] for piece in (was, now)]
        if key[0] == "function" or max(map(len, lines)) > LONGEST:
            yield f"{name}: {'new' if was is None else 'removed' if now is None else 'changed'}, not shown here"
        else:
            ends = (f"{name}, trusted", f"{name}, now")
            yield "\n".join(difflib.unified_diff(lines[0], lines[1], *ends, lineterm=""))


def _name(piece: Piece) -> str:
    return f"{piece.kind} {piece.owner}"
