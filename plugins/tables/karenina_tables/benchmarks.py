"""From a sheet to a benchmark, and back.

A table is a view of a benchmark. What has no column (rubrics, few-shot examples, members that other programs wrote) is
kept as JSON in the column `karenina`: for each question its item of the JSON-LD file, and in the first row the rest of
the document. It is there only where it says more than the columns do, and where both differ, the columns count.

A benchmark that came from a sheet remembers in `metadata["table"]` its columns, how cells were written that mean the
same as what would be written now, and notes. So what nobody changed is written as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields, frozen
from karenina_vocabulary.kinds import PrimitiveRegistry

from karenina_core.errors import BenchmarkError, PluginError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question

from .cells import as_json, from_json, is_blank, parsed, text_of
from .columns import CUSTOM, FACETS, REST, Layout, layout_of
from .questions import Cells, Reader, fields_of, kept_or_read, readable_id, written_rows
from .sheets import Problems, Row, Sheet
from .texts import read_delimited, read_lines, write_delimited, write_lines
from .workbooks import read_workbook, write_workbook

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

RECORD = "table"
FEED = "dataFeedElement"
FORMAT = "benchmark_format_version"
COMPARED = [field for field in fields(BenchmarkData) if field.eq]
DATES = ("dateCreated", "dateModified")
DOCUMENT = Path("table.jsonld")
"""The name under which the column's content is read and written; no such file is made."""


def load(path: Path, data: bytes, app: Karenina, options: Mapping[str, Any]) -> BenchmarkData:
    """The benchmark in a table. Raises BenchmarkError."""
    sheet = read_sheet(path, data, options.get("sheet"))
    layout = layout_of(sheet.columns, options.get("columns") or {}, sheet.label)
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
        return evolve(base, questions=questions, metadata={**base.metadata, RECORD: record})
    except ValueError as error:
        raise BenchmarkError(f"{sheet.label}: {error}") from error


def read_sheet(path: Path, data: bytes, name: str | None = None) -> Sheet:
    """The sheet in a file, by its suffix. Raises BenchmarkError."""
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        try:
            return read_workbook(data, path.name, name, REST)
        except PluginError as error:
            raise BenchmarkError(f"{path.name} cannot be read: {error}") from error
    if name is not None:
        raise BenchmarkError(f"{path.name} has no sheets with names; leave {name!r} out")
    return read_lines(data, path.name) if suffix == ".jsonl" else read_delimited(data, path.name, suffix)


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
                problems.add(row.number, column, f"{what} {value!r:.80} is in row {before} already; change one")
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
    about = {"name": name, "columns": dict(layout.targets), **sheet.facts}
    return about | ({"cells": cells} if cells else {}) | ({"notes": notes} if notes else {})


def _plain_notes(notes: Mapping[str, Any]) -> dict[str, list[str]]:
    return {column: list(note) for column, note in notes.items()}


def _same(old: Any, new: Any, textual: bool) -> bool:
    return text_of(old) == text_of(new) and (textual or type(old) is type(new) or old is None or new is None)


# and back


@frozen
class Memory:
    """What a benchmark remembers of its sheet. Whatever is damaged in it counts for nothing."""

    found: Mapping[str, Any]

    @property
    def layout(self) -> Layout | None:
        columns = self.found.get("columns")
        if not isinstance(columns, Mapping) or "question" not in columns.values():
            return None
        return Layout({str(column): str(target) for column, target in columns.items()})

    def of(self, part: str, question_id: str, number: int) -> Mapping[str, Any]:
        here: Any = self.found.get(part)
        for key in (question_id, str(number)):
            here = here.get(key) if isinstance(here, Mapping) else None
        return here if isinstance(here, Mapping) else {}

    def rows(self, question_id: str) -> int:
        """One more than the last row of the question that it knows."""
        here = self.found.get("cells")
        known = here.get(question_id) if isinstance(here, Mapping) else None
        return (
            max((int(key) + 1 for key in known if str(key).isdecimal()), default=0) if isinstance(known, Mapping) else 0
        )

    def cell(self, question_id: str, number: int, column: str, now: Any) -> Any:
        """How the cell was written, where it means the same now."""
        pair = self.of("cells", question_id, number).get(column)
        if isinstance(pair, Sequence) and len(pair) == 2 and text_of(now) == pair[1]:
            try:
                return from_json(pair[0])
            except ValueError:
                return now
        return now


def save(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes:
    """The content of a table. Raises BenchmarkError."""
    remembered = benchmark.metadata.get(RECORD)
    memory = Memory(remembered if isinstance(remembered, Mapping) else {})
    layout = _complete(memory.layout or Layout({}), benchmark)
    rest = list(_leftovers(benchmark, layout, memory, app))
    if any(rest) and layout.column(REST) is None:
        layout = Layout({**layout.targets, REST: REST})
    rows: list[Cells] = []
    notes: list[Mapping[str, Any]] = [_notes(memory.of("notes", "", 0), layout)]
    for question, left in zip((*benchmark.questions, None), rest, strict=True):
        name = question.id if question else ""
        meant: list[Cells] = written_rows(question, layout) if question else [{}] if left else []
        for number in range(max(len(meant), memory.rows(name))):
            now = meant[number] if number < len(meant) else {}
            row = {column: memory.cell(name, number, column, now.get(column)) for column in layout.targets}
            if left and number == 0:
                row[layout.column(REST) or REST] = left if path.suffix.lower() == ".jsonl" else text_of(left)
            rows.append(row)
            notes.append(_notes(memory.of("notes", name, number), layout))
    columns = list(layout.targets)
    try:
        return _written(path, columns, rows, notes, memory)
    except (ValueError, PluginError) as error:
        raise BenchmarkError(f"{path.name} cannot be written: {error}") from error


def _written(
    path: Path, columns: Sequence[str], rows: Sequence[Cells], notes: Sequence[Mapping[str, Any]], memory: Memory
) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        return write_workbook(columns, rows, notes, str(memory.found.get("sheet", "")), REST)
    if suffix == ".jsonl":
        return write_lines(columns, rows)
    delimiter = memory.found.get("delimiter")
    delimiter = "\t" if suffix == ".tsv" else delimiter if delimiter in (";", "|", "\t") else ","
    lines = "\n" if memory.found.get("lines") == "\n" else "\r\n"
    return write_delimited(columns, rows, delimiter, lines)


def _notes(found: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    return {
        column: (str(note[0]), str(note[1]))
        for column, note in found.items()
        if column in layout.targets and isinstance(note, Sequence) and len(note) == 2
    }


def _complete(layout: Layout, benchmark: BenchmarkData) -> Layout:
    """The layout with columns for all that can have one."""
    targets = dict(layout.targets)
    questions = benchmark.questions
    fields = [fields_of(q, layout.facets) or fields_of(q, tuple(FACETS)) for q in questions]
    facets = {facet for listed in fields for cells in listed or () for facet in cells}
    wanted = [("id", not targets or any(_renamed(question) for question in questions)), ("question", True)]
    wanted.append(("answer", not targets or (not facets and any(question.raw_answer for question in questions))))
    numbers = layout.numbers or [""]
    wanted += [
        (f"{facet}{number}", True) for number in numbers for facet in FACETS if facet in facets - set(layout.facets)
    ]
    wanted += [
        ("template", any(q.answer_template and found is None for q, found in zip(questions, fields, strict=True))),
        ("keywords", any(question.keywords for question in questions)),
        ("author", any(question.author is not None for question in questions)),
        ("sources", any(question.sources is not None for question in questions)),
        ("notes", any(question.answer_notes is not None for question in questions)),
        ("finished", any(question.finished is not None for question in questions)),
    ]
    for target, needed in wanted:
        if needed and target not in targets.values():
            targets[_free(target, targets)] = target
    for question in questions:
        for key, value in question.custom_metadata.items():
            if key not in targets and key.strip() and isinstance(value, str | int | float) and value != "":
                targets[key] = CUSTOM
    return Layout(targets)


def _free(name: str, taken: Mapping[str, str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _renamed(question: Question) -> bool:
    """Whether the id is not the one that the text alone would give."""
    first = readable_id(question.question, set())
    return question.id != first and not question.id.removeprefix(f"{first}-").isdecimal()


def _leftovers(benchmark: BenchmarkData, layout: Layout, memory: Memory, app: Karenina) -> Iterator[dict[str, Any]]:
    """For every question, and last for a benchmark without any, what the column `karenina` has to hold."""
    reader = Reader(layout, {}, Problems("table"))
    again = []
    for question in benchmark.questions:
        rows = [Row(0, row) for row in written_rows(question, layout)]
        again.append(reader.read(rows, question.id))
    columns = BenchmarkData(
        name=benchmark.name,
        questions=[found or Question(question="?", id=f"{number} ?") for number, found in enumerate(again)],
    )
    named = benchmark.name == memory.found.get("name")
    metadata = {name: value for name, value in benchmark.metadata.items() if name != RECORD}
    left = evolve(benchmark, metadata=metadata)
    if named and left.document is None and all(getattr(left, f.name) == getattr(columns, f.name) for f in COMPARED):
        yield from ({} for _ in (*columns, None))
        return
    root, plain = _document(left, app), _document(columns, app)
    items = root.pop(FEED)
    if benchmark.date_modified is not None:
        root["dateModified"] = benchmark.date_modified  # a table is the same benchmark
    dated = not memory.found
    whole = {} if named and _equal(root, plain, dated) else {"benchmark": root}
    for number, item in enumerate(items):
        same = again[number] is not None and _equal(item, plain[FEED][number], dated)
        yield (whole if number == 0 else {}) | ({} if same else {"item": item})
    yield {} if items else whole


def _document(benchmark: BenchmarkData, app: Karenina) -> dict[str, Any]:
    data = app.first("karenina_save_benchmark", benchmark=benchmark, path=DOCUMENT, app=app)
    if data is None:
        raise BenchmarkError("to write it as a table, karenina-jsonld is needed; type: pip install karenina-jsonld")
    found: dict[str, Any] = json.loads(data.decode("utf-8-sig"))
    return found


def _equal(node: Mapping[str, Any], plain: Mapping[str, Any], dated: bool) -> bool:
    """Whether a node says what that of the columns does, whose dates are those of now; `dated`: its own count."""

    def text(found: Mapping[str, Any], left_out: Sequence[str]) -> str:
        return json.dumps({key: value for key, value in found.items() if key not in left_out}, sort_keys=True)

    return text(node, () if dated else DATES) == text(plain, (FEED, *DATES))
