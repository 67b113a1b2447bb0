"""Questions as rows of cells, and back. A question has one row, or one for every field of its template."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from attrs import evolve, frozen
from karenina_template.declarative_templates import template_problems

from karenina_core.values.question import Question

from .cells import Cell, is_blank, parsed, plain_cell, read_list, text_of, write_list
from .columns import CUSTOM, FACETS, Layout
from .fields import NUMBERS, CellProblem, may_be_number, read_field, written_field
from .sheets import Problems, Row
from .written import decimal_mark

DECLARATIVE = "karenina-template"
LONGEST_ID = 40
"""Characters; chosen: a table on a terminal shows it whole."""
PARTS = {
    **{"name": "field", "literal_values": "type", "ground_truth": "expected", "verify_with": "compare"},
    **{"type": "type", "description": "description"},
}
"""Part of a field in the declarative language -> facet."""
Cells = dict[str, Cell]


def readable_id(text: str, taken: set[str]) -> str:
    """The first words of a text, with a number where another question has them, too."""
    words = re.findall(r"[^\W_]+", text.casefold())
    name = ""
    for word in words:
        if name and len(name) + 1 + len(word) > LONGEST_ID:
            break
        name = f"{name}-{word}"[: LONGEST_ID + 1] if name else word[:LONGEST_ID]
    name = name or "question"
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def _person(cell: Cell) -> Any:
    """An object of JSON, or the text."""
    if isinstance(cell, dict):
        return cell
    found = parsed(text_of(cell))
    return found if isinstance(found, dict) else text_of(cell).strip()


def _finished(cell: Cell) -> bool:
    word = text_of(cell).strip().casefold()
    if word not in ("yes", "no", "true", "false"):
        raise ValueError(f"{word!r:.80} is neither yes nor no")
    return word in ("yes", "true")


READERS: Mapping[str, tuple[str, Callable[[Cell], Any]]] = {
    "answer": ("raw_answer", text_of),
    "template": ("answer_template", text_of),
    "keywords": ("keywords", lambda cell: tuple(read_list(cell if not isinstance(cell, list) else json.dumps(cell)))),
    "author": ("author", _person),
    "sources": ("sources", lambda cell: cell if isinstance(cell, list) else _sources(text_of(cell))),
    "notes": ("answer_notes", text_of),
    "finished": ("finished", _finished),
}
"""Target -> field of a question, and what reads its cell. Blank cells are not read."""


def _sources(text: str) -> list[Any]:
    """A list of JSON, or one a line or between `|` or `;`: addresses may have commas."""
    if isinstance(found := parsed(text), list):
        return found
    return [part.strip() for part in re.split(r"[\n|;]", text) if part.strip()]


@frozen
class Reader:
    """Makes questions of rows. Without any primitives, fields are not compared with those that there are."""

    layout: Layout
    primitives: Mapping[str, type]
    problems: Problems

    def read(self, rows: Sequence[Row], question_id: str) -> Question | None:
        """The question that begins in the first row; None and problems where its cells cannot be read."""
        first, before = rows[0], len(self.problems.found)
        fields: dict[str, Any] = {"id": question_id, "question": text_of(self.cell(first, "question")).strip()}
        for target, (name, read) in READERS.items():
            if not is_blank(cell := self.cell(first, target)):
                try:
                    fields[name] = read(cell)
                except ValueError as error:
                    self.problems.add(first.number, self.layout.column(target), str(error))
        specs = self._fields(rows)
        if specs and "answer_template" in fields:
            self.problems.add(first.number, self.layout.column("template"), "the question has fields, too; clear one")
        elif specs:
            fields["answer_template"] = json.dumps({"fields": specs}, ensure_ascii=False)
        fields["custom_metadata"] = {
            column: plain_cell(first.cells[column]) for column in self.layout.custom if column in first.cells
        }
        if "raw_answer" not in fields and len(specs) == 1:
            fields["raw_answer"] = _expected(specs[0])
        if not fields["question"]:
            self.problems.add(first.number, self.layout.column("question"), "is empty; write the question")
        return Question(**fields) if len(self.problems.found) == before else None

    def cell(self, row: Row, target: str) -> Cell:
        return row.cells.get(self.layout.column(target) or "")

    def _fields(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        slots = [
            (row, group, cells)
            for row in rows
            for group in self.layout.groups
            if (cells := {facet: row.cells[column] for facet, column in group.items() if column in row.cells})
        ]
        specs, places = [], []
        for row, group, cells in slots:
            try:
                specs.append(read_field(cells, whole=len(slots) == 1, mark=self.layout.mark))
                places.append((row, group))
            except CellProblem as error:
                self.problems.add(row.number, group.get(error.facet, group["expected"]), str(error))
        if len(specs) < len(slots):
            return []
        checked = specs and self.primitives
        for problem in template_problems(json.dumps({"fields": specs}), self.primitives) if checked else ():
            match = re.match(r"fields\[(\d+)\]\.?(\w*)", problem.path)
            row, group = places[int(match[1]) if match else 0]
            facet = PARTS.get(match[2] if match else "", "expected")
            self.problems.add(row.number, group.get(facet, group["expected"]), problem.message)
        return specs


def _expected(spec: Mapping[str, Any]) -> str:
    truth = spec["ground_truth"]
    return (
        write_list(truth)
        if isinstance(truth, list)
        else ("no", "yes")[truth]
        if truth in (True, False) and spec["type"] == "bool"
        else text_of(truth)
    )


def mark_of(rows: Sequence[Mapping[str, Cell]], layout: Layout, delimiter: str | None) -> str:
    """What stands before the decimals in these rows; nothing where they do not say it."""
    return decimal_mark(number_texts(rows, layout), delimiter)


def number_texts(rows: Sequence[Mapping[str, Cell]], layout: Layout) -> Iterator[str]:
    """What may be a number, and is a text."""
    for row in rows:
        for group in layout.groups:
            cells = {facet: row[column] for facet, column in group.items() if column in row}
            if may_be_number(cells):
                yield from (text for facet in NUMBERS if isinstance(text := cells.get(facet), str))


# and back


def written_rows(question: Question, layout: Layout) -> list[Cells]:
    """The cells of the question's rows. What has no column, or does not fit into it, is left out."""
    first: Cells = {}
    write: Mapping[str, Callable[[], Cell]] = {
        "id": lambda: question.id,
        "question": lambda: question.question,
        "answer": lambda: question.raw_answer,
        "keywords": lambda: write_list(question.keywords),
        "author": lambda: question.author if not isinstance(question.author, Mapping) else _json(question.author),
        "sources": partial(_written_sources, question.sources),
        "notes": lambda: question.answer_notes,
        "finished": lambda: None if question.finished is None else ("no", "yes")[question.finished],
    }
    for column, target in layout.targets.items():
        if target in write:
            first[column] = write[target]()
        elif column in layout.custom and column in question.custom_metadata:
            first[column] = question.custom_metadata[column]
    rows = [first]
    groups = layout.groups
    fields = fields_of(question, layout)
    if fields is not None:
        for number, cells in enumerate(fields):
            place, slot = divmod(number, len(groups))
            if place == len(rows):
                rows.append({})
            rows[place].update({groups[slot][facet]: cell for facet, cell in cells.items()})
    elif source := layout.column("template"):
        first[source] = question.answer_template
    return [{column: cell for column, cell in row.items() if cell not in (None, "")} for row in rows]


def fields_of(question: Question, layout: Layout) -> list[Cells] | None:
    """The cells of every field; None where the template has more than fields for which there are columns."""
    if question.template_language != DECLARATIVE or question.placeholder_template:
        return None
    spec = parsed(question.answer_template or "")
    fields = spec.get("fields") if isinstance(spec, dict) and set(spec) == {"fields"} else None
    if not isinstance(fields, list) or not fields:
        return None
    if not layout.groups or not all(isinstance(field, dict) for field in fields):
        return None
    places = zip(fields, cycle(layout.groups), strict=False)
    cells = [written_field(field, len(fields) == 1, group, layout.mark) for field, group in places]
    return [found for found in cells if found] if all(cells) else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)


def _written_sources(sources: Any) -> Cell:
    if sources is None or isinstance(sources, str):
        return sources
    items = list(sources)
    text = "\n".join(items) if all(isinstance(item, str) for item in items) else ""
    return text if items and _sources(text) == items else _json(items)


def kept_or_read(base: Question, read: Question, rows: Sequence[Row], layout: Layout, textual: bool) -> Question:
    """`base`, with what the rows, which were read as `read`, say otherwise."""
    old, new = (_by_target(written_rows(question, layout), layout, textual) for question in (base, read))
    there = _by_target([row.cells for row in rows], layout, textual)
    changed = {
        target
        for target in old.keys() | new.keys() | there.keys()
        if old.get(target) not in (new.get(target), there.get(target))
    }
    fields: dict[str, Any] = {name: getattr(read, name) for name in ("id", "question") if name in changed}
    for target, (name, _) in READERS.items():
        if target in changed:
            fields[name] = getattr(read, name)
    if "template" in changed:
        fields |= {"template_language": read.template_language, "placeholder_template": False}
    custom = dict(base.custom_metadata)
    for column in layout.custom:
        if f"{CUSTOM} {column}" in changed:
            custom.pop(column, None)
            custom |= {key: value for key, value in read.custom_metadata.items() if key == column}
    return evolve(base, **fields, custom_metadata=custom)


def _by_target(rows: Sequence[Mapping[str, Cell]], layout: Layout, textual: bool) -> dict[str, list[str]]:
    """The cells of each target as texts. Those of fields count as the template, those of custom columns by column."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for column, cell in row.items():
            target = layout.targets[column]
            facet = target.partition(" ")[0]
            key = "template" if facet in FACETS else f"{CUSTOM} {column}" if target == CUSTOM else target
            found.setdefault(key, []).append(text_of(cell) if textual else json.dumps(cell, default=text_of))
    return found
