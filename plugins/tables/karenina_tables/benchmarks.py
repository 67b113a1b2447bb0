"""From a sheet to a benchmark.

A table is a view of a benchmark. What has no column (rubrics, few-shot examples, members that other programs wrote) is
kept as JSON in the column `karenina`: for each question its item of the JSON-LD file, and in the first row the rest of
the document. It is there only where it says more than the columns do, and where both differ, the columns count.

A benchmark that came from a sheet remembers in `metadata["table"]` its columns, how cells were written that mean the
same as what would be written now, and notes. So what nobody changed is written as it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from karenina_vocabulary.kinds import PrimitiveRegistry

from karenina_core.errors import BenchmarkError, PluginError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question

from .cells import as_json, is_blank, parsed, text_of
from .columns import REST, Layout, layout_of, names_questions
from .questions import Reader, kept_or_read, mark_of, readable_id, written_rows
from .sheets import Problems, Row, Sheet
from .texts import WESTERN, read_delimited, read_lines
from .workbooks import read_workbook

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

RECORD = "table"
"""Of a benchmark's metadata: what makes the sheet again."""
FEED = "dataFeedElement"
DOCUMENT = Path("table.jsonld")
"""The name under which the column's content is read and written; no such file is made."""


def load(path: Path, data: bytes, app: Karenina, options: Mapping[str, Any]) -> BenchmarkData:
    """The benchmark in a table. Raises BenchmarkError."""
    given = options.get("columns") or {}
    sheet = read_sheet(path, data, options.get("sheet"), given)
    layout = layout_of(sheet.columns, given, sheet.label)
    layout = evolve(layout, mark=mark_of([row.cells for row in sheet.rows], layout, sheet.facts.get("delimiter")))
    problems = Problems(sheet.label)
    groups = _groups(sheet, layout, problems)
    problems.check()
    primitives = _primitives(app)
    reader = Reader(layout, primitives, problems)
    taken = {question_id for question_id, _ in groups if question_id}
    read: list[Question] = []
    for given, rows in groups:
        question_id = given or readable_id(text_of(reader.cell(rows[0], "question")), taken)
        taken.add(question_id)
        if (question := reader.read(rows, question_id)) is not None:
            read.append(question)
    problems.check()
    base, kept = _rest(sheet, layout, groups, app)
    if base is None:
        base = BenchmarkData(name=path.stem or "table")
    questions = [
        kept_or_read(kept[number], question, rows, layout, sheet.textual) if number in kept else question
        for number, (question, (_, rows)) in enumerate(zip(read, groups, strict=True))
    ]
    record = _record(base.name, sheet, layout, list(zip(questions, (rows for _, rows in groups), strict=True)))
    try:
        warnings = (*base.warnings, *_doubts(sheet))
        return evolve(base, questions=questions, metadata={**base.metadata, RECORD: record}, warnings=warnings)
    except ValueError as error:
        raise BenchmarkError(f"{sheet.label}: {error}") from error


def _doubts(sheet: Sheet) -> Iterator[str]:
    if sheet.facts.get("encoding") == WESTERN:
        yield (
            f"{sheet.label} is not UTF-8, and was read as {WESTERN}, of Western Europe; where letters are wrong, save "
            "it as 'CSV UTF-8' or as .xlsx"
        )


def read_sheet(path: Path, data: bytes, name: str | None = None, given: Collection[str] = ()) -> Sheet:
    """The sheet in a file, by its suffix. Its columns are named in the first row that names one for the question, or
    one of those `given`. Raises BenchmarkError.
    """
    suffix = path.suffix.lower()
    named = partial(names_questions, given=given)
    if suffix == ".xlsx":
        try:
            return read_workbook(data, path.name, name, REST, named)
        except PluginError as error:
            raise BenchmarkError(f"{path.name} cannot be read: {error}") from error
    if name is not None:
        raise BenchmarkError(f"{path.name} has no sheets with names; leave {name!r} out")
    return read_lines(data, path.name) if suffix == ".jsonl" else read_delimited(data, path.name, suffix, named)


def _primitives(app: Karenina) -> dict[str, type]:
    found = {}
    for name, entry in app.registry(PrimitiveRegistry).items():
        try:
            found[name] = entry.load()
        except PluginError:
            continue  # a field that asks for it says that it is not there
    return found


def _groups(sheet: Sheet, layout: Layout, problems: Problems) -> list[tuple[str | None, list[Row]]]:
    """The rows of each question and its id. A row without a question, or with the one above, continues it."""
    id_, text = layout.column("id") or "", layout.column("question") or ""
    fields = [column for group in layout.groups for column in group.values()]
    found: list[tuple[str | None, list[Row]]] = []
    seen: dict[tuple[str, str], int] = {}
    for row in sheet.rows:
        own, asked = (text_of(row.cells.get(column)).strip() for column in (id_, text))
        if found:
            above, first = found[-1][0] or "", text_of(found[-1][1][0].cells.get(text)).strip()
            more = any(column in row.cells for column in fields)
            if own in ("", above) and (not asked or (asked == first and more)):
                found[-1][1].append(row)
                continue
        if not asked and not (own or set(row.cells) - {layout.column(REST)}):
            continue  # holds the rest of a benchmark without questions
        for column, value in ((id_, own), (text, asked if not own else "")):
            if value and (before := seen.setdefault((column, value), row.number)) != row.number:
                what = "the id" if column == id_ else "the question"
                problems.add(row.number, column, f"{what} {value!r:.80} is already in row {before}; change one")
        found.append((own or None, [row]))
    return found


def _rest(
    sheet: Sheet, layout: Layout, groups: Sequence[tuple[str | None, list[Row]]], app: Karenina
) -> tuple[BenchmarkData | None, dict[int, Question]]:
    """What the column `karenina` holds: the benchmark without its questions, and questions by their place."""
    column = layout.column(REST)
    if column is None:
        return None, {}
    root: dict[str, Any] = {}
    items: dict[int, Any] = {}
    number_of = {rows[0].number: number for number, (_, rows) in enumerate(groups)}
    for row in sheet.rows:
        if is_blank(cell := row.cells.get(column)):
            continue
        found = cell if isinstance(cell, dict) else parsed(text_of(cell))
        if not isinstance(found, dict) or not isinstance(found.get("benchmark", {}), dict):
            problem = "is not what was written there; leave this column as it is, or clear it"
            raise BenchmarkError(f"{sheet.label}, row {row.number}, column {column!r}: {problem}")
        root = found.get("benchmark", root)
        if "item" in found and row.number in number_of:
            items[number_of[row.number]] = found["item"]
    if not root and not items:
        return None, {}
    document = {"name": "table", "@type": "DataFeed", **root, FEED: list(items.values())}
    try:
        data = json.dumps(document, ensure_ascii=True).encode("ascii")
        base = app.first("karenina_load_benchmark", path=DOCUMENT, data=data, app=app, options={})
    except BenchmarkError as error:
        raise BenchmarkError(f"{sheet.label}, column {column!r}: {error}") from error
    if base is None:
        raise BenchmarkError(
            f"{sheet.label}, column {column!r} needs karenina-jsonld; type: pip install karenina-jsonld"
        )
    return base, dict(zip(items, base.questions, strict=True))


def _record(name: str, sheet: Sheet, layout: Layout, found: Sequence[tuple[Question, list[Row]]]) -> dict[str, Any]:
    """What makes the sheet again: `cells` has those that are written otherwise than now, and what they mean."""
    cells: dict[str, Any] = {}
    notes: dict[str, Any] = {"": {"0": _plain_notes(sheet.notes)}} if sheet.notes else {}
    for question, rows in found:
        meant = written_rows(question, layout)
        other: dict[str, Any] = {}
        for number in range(max(len(rows), len(meant))):
            new = meant[number] if number < len(meant) else {}
            old = rows[number].cells if number < len(rows) else {}
            differ = {
                column: [as_json(old.get(column)), text_of(new.get(column))]
                for column in layout.targets
                if layout.targets[column] != REST and not _same(old.get(column), new.get(column), sheet.textual)
            }
            if differ:
                other[str(number)] = differ
        if other:
            cells[question.id] = other
        if said := {str(n): _plain_notes(row.notes) for n, row in enumerate(rows) if row.notes}:
            notes[question.id] = said
    about = {"name": name, "columns": dict(layout.targets), **({"decimal": layout.mark} if layout.mark else {})}
    about |= sheet.facts
    return about | ({"cells": cells} if cells else {}) | ({"notes": notes} if notes else {})


def _plain_notes(notes: Mapping[str, Any]) -> dict[str, list[str]]:
    return {column: list(note) for column, note in notes.items()}


def _same(old: Any, new: Any, textual: bool) -> bool:
    return text_of(old) == text_of(new) and (textual or type(old) is type(new) or old is None or new is None)
