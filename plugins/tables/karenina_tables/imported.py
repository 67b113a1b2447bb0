"""What `karenina benchmark import` says of a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karenina_cli.output import Part, Table, inline
from karenina_runs.benchmark import Benchmark

from karenina_core.errors import plural

from .benchmarks import RECORD
from .cells import parsed, text_of
from .fields import TYPES
from .questions import DECLARATIVE


def import_parts(benchmark: Benchmark, ready: int, output: Path) -> list[Part]:
    """What its columns and cells were taken for, and what to type next. `ready` questions have a template."""
    record = benchmark.metadata[RECORD]
    targets = record["columns"]
    return [
        Table(("column", "taken for"), list(targets.items()), f"Columns{_of_sheet(record)}"),
        Table(("expected", "fields", "for example"), _kinds(benchmark), "Read as"),
        f"{plural(len(benchmark), 'question')}, {ready} of them with an answer template: {output}",
        _next(targets, ready, output),
    ]


def _of_sheet(record: Mapping[str, Any]) -> str:
    return f" of the sheet {record['sheet']!r}" if "sheet" in record else ""


def _kinds(benchmark: Benchmark) -> list[tuple[str, str, str]]:
    """The kinds of values that are expected, how many there are, and the first of each."""
    found: dict[str, list[Any]] = {}
    for question in benchmark:
        spec = parsed(question.answer_template or "") if question.template_language == DECLARATIVE else None
        for field in spec.get("fields", ()) if isinstance(spec, dict) else ():
            found.setdefault(TYPES.get(field["type"], ("choice",))[0], []).append(field["ground_truth"])
    return [(kind, str(len(values)), inline(text_of(values[0]), 60)) for kind, values in found.items()]


def _next(targets: Mapping[str, str], ready: int, output: Path) -> str:
    """What to type next."""
    if ready:
        return f"Next: karenina benchmark validate {output}"
    column = next((column for column, target in targets.items() if target == "answer"), None)
    how = (
        f'If {column!r} holds short values, add --map "{column}=expected".'
        if column
        else 'Add a column expected, or name it: --map "COLUMN=expected".'
    )
    return f"No column holds expected values, so no answer can be checked by code. {how}"
