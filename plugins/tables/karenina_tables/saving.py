"""From a benchmark to a sheet: with the columns and the spellings that it came with, as far as they say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields, frozen

from karenina_core.errors import BenchmarkError, PluginError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question

from .benchmarks import DOCUMENT, FEED, RECORD
from .cells import Cell, Percent, from_json, text_of
from .columns import CUSTOM, FACETS, REST, Layout
from .questions import Cells, Reader, fields_of, mark_of, number_texts, readable_id, written_rows
from .sheets import Problems, Row
from .texts import write_delimited, write_lines
from .workbooks import write_workbook
from .written import COMMA, is_ambiguous

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

COMPARED = [field for field in fields(BenchmarkData) if field.eq]
DATES = ("dateCreated", "dateModified")
ALL_FACETS = {facet: facet for facet in FACETS}


@frozen
class Memory:
    """What a benchmark remembers of its sheet. Whatever is damaged in it counts for nothing."""

    found: Mapping[str, Any]
    percent: bool = False
    """Whether a cell can show a number in percent."""

    @property
    def layout(self) -> Layout | None:
        columns = self.found.get("columns")
        if not isinstance(columns, Mapping) or "question" not in columns.values():
            return None
        mark = self.found.get("decimal")
        return Layout({str(column): str(target) for column, target in columns.items()}, mark if mark == COMMA else "")

    @property
    def above(self) -> list[list[Cell]]:
        """The rows over the names of columns."""
        found = self.found.get("above")
        rows = [row for row in found if isinstance(row, list | tuple)] if isinstance(found, list | tuple) else []
        with suppress(ValueError):
            return [[from_json(cell) for cell in row] for row in rows]
        return []

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
        pair: Any = self.of("cells", question_id, number).get(column)
        if isinstance(pair, Sequence) and len(pair) == 2 and text_of(now) == pair[1]:
            with suppress(ValueError):
                before = from_json(pair[0])
                return before if self.percent or not isinstance(before, Percent) else now
        return now


def save(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes:
    """The content of a table. Raises BenchmarkError."""
    remembered = benchmark.metadata.get(RECORD)
    suffix = path.suffix.lower()
    memory = Memory(remembered if isinstance(remembered, Mapping) else {}, suffix == ".xlsx")
    layout = _complete(memory.layout or Layout({}), benchmark)
    rest = list(_leftovers(benchmark, layout, memory, app))
    if any(rest) and layout.column(REST) is None:
        layout = evolve(layout, targets={**layout.targets, REST: REST})
    delimiter = memory.found.get("delimiter")
    delimiter = "\t" if suffix == ".tsv" else delimiter if delimiter in (";", "|", "\t") else ","
    rows, notes = _rows(benchmark, layout, memory, rest)
    marks = layout.mark, mark_of(rows, layout, delimiter if suffix in (".csv", ".tsv") else None)
    if marks[0] != marks[1] and any(is_ambiguous(text) for text in number_texts(rows, layout)):
        plain = evolve(memory, found={name: part for name, part in memory.found.items() if name != "cells"})
        rows, notes = _rows(benchmark, evolve(layout, mark=""), plain, rest)
    columns = list(layout.targets)
    try:
        if suffix == ".jsonl":
            return write_lines(columns, rows)
        if suffix == ".xlsx":
            return write_workbook(columns, rows, notes, str(memory.found.get("sheet", "")), REST, memory.above)
        records = (*memory.above, columns, *([row.get(column) for column in columns] for row in rows))
        lines = "\n" if memory.found.get("lines") == "\n" else "\r\n"
        return write_delimited(records, delimiter, lines, memory.found.get("encoding"))
    except (ValueError, PluginError) as error:
        raise BenchmarkError(f"{path.name} cannot be written: {error}") from error


def _rows(
    benchmark: BenchmarkData, layout: Layout, memory: Memory, rest: Sequence[Mapping[str, Any]]
) -> tuple[list[Cells], list[Mapping[str, Any]]]:
    """The rows of all questions, and the notes at them, first those at the names of columns."""
    rows: list[Cells] = []
    notes: list[Mapping[str, Any]] = [_notes(memory.of("notes", "", 0), layout)]
    for question, left in zip((*benchmark.questions, None), rest, strict=True):
        name = question.id if question else ""
        meant: list[Cells] = written_rows(question, layout) if question else [{}] if left else []
        for number in range(max(len(meant), memory.rows(name))):
            now = meant[number] if number < len(meant) else {}
            row = {column: memory.cell(name, number, column, now.get(column)) for column in layout.targets}
            if left and number == 0:
                row[layout.column(REST) or REST] = left
            rows.append(row)
            notes.append(_notes(memory.of("notes", name, number), layout))
    return rows, notes


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
    fitting = [fields_of(question, layout) for question in questions]
    more = evolve(layout, targets=ALL_FACETS)
    fields = [found or fields_of(question, more) for found, question in zip(fitting, questions, strict=True)]
    facets = _facets(fields)
    missing = _facets([found for fit, found in zip(fitting, fields, strict=True) if fit is None])
    wanted = [("id", not targets or any(_renamed(question) for question in questions)), ("question", True)]
    wanted.append(("answer", not targets or (not facets and any(question.raw_answer for question in questions))))
    numbers = layout.numbers or [""]
    wanted += [(f"{facet}{number}", True) for number in numbers for facet in FACETS if facet in missing]
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
    return Layout(targets, layout.mark)


def _facets(fields: Sequence[list[Cells] | None]) -> set[str]:
    return {facet for found in fields for cells in found or () for facet in cells}


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
