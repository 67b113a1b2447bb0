"""Labels through a sheet: blank cells for people to fill in, and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from karenina_calls.files.bounded import read_bounded
from karenina_runs.files.atomic_files import write_atomically
from karenina_tables.cells import Cell, is_blank, text_of
from karenina_tables.sheets import Problems, Row, Sheet
from karenina_tables.texts import read_delimited, write_delimited
from karenina_tables.workbooks import read_workbook, write_workbook

from karenina_core.errors import BenchmarkError, ConfigError

from .answers import FIELD, TRAIT, VERDICT, Answer
from .asking import Unreadable, open_targets, value_of, wanted
from .file import Label, LabelFile, now

__all__ = ["read_sheet", "write_sheet"]

ITEM, QUESTION, REFERENCE, ANSWER, ANNOTATOR = "item", "question", "reference answer", "answer", "annotator"
SUFFIXES = (".csv", ".tsv", ".xlsx")


def write_sheet(path: Path, file: LabelFile, answers: Iterable[Answer], annotator: str, kinds: Sequence[str]) -> int:
    """Write a row for each answer that this person is still to label; returns how many.

    As in the terminal, neither models nor what judges said are in it. Raises ConfigError.
    """
    rows = list(open_targets(file, answers, annotator, kinds))
    columns = list(dict.fromkeys(_column(target) for answer, _ in rows for target in wanted(answer, kinds)))
    shown = [ITEM, QUESTION, *([REFERENCE] if "verdict" in kinds else []), ANSWER, ANNOTATOR, *columns]
    cells = [
        {ITEM: answer.id, QUESTION: answer.question, REFERENCE: answer.reference, ANSWER: answer.text,
         ANNOTATOR: annotator}
        for answer, _ in rows
    ]  # fmt: skip
    try:
        if _suffix(path) == ".xlsx":
            data = write_workbook(shown, cells, [{}] * (len(cells) + 1), "labels", hidden="")
        else:
            records: list[list[Cell]] = [shown, *([row.get(column) for column in shown] for row in cells)]
            data = write_delimited(records, "\t" if _suffix(path) == ".tsv" else ",", "\n")
        write_atomically(path, data)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another (--export FILE)") from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot hold these answers: {error}") from error
    return len(rows)


def read_sheet(path: Path, answers: Mapping[str, Answer], drawn: frozenset[str] | None, annotator: str) -> list[Label]:
    """The labels in a sheet; blank cells are none, and `?` is that the person cannot say.

    `drawn` are the answers of the plan, None where there is none. Raises BenchmarkError with every row that is wrong.
    """
    try:
        data = read_bounded(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    suffix = _suffix(path)
    if suffix == ".xlsx":
        sheet = read_workbook(data, path.name, None, named=lambda record: ITEM in record)
    else:
        sheet = read_delimited(data, path.name, suffix, lambda record: ITEM in record)
    return _labels(sheet, answers, drawn, annotator)


def _labels(sheet: Sheet, answers: Mapping[str, Answer], drawn: frozenset[str] | None, annotator: str) -> list[Label]:
    if ITEM not in sheet.columns:
        raise BenchmarkError(f"{sheet.label} has no column {ITEM!r}; karenina label RUN --export FILE writes one")
    problems, found, at = Problems(sheet.label), list[Label](), now()
    for row in sheet.rows:
        item = text_of(row.cells.get(ITEM)).strip()
        who = text_of(row.cells.get(ANNOTATOR)).strip() or annotator
        targets = {name: target for name in row.cells if (target := _target(name)) is not None}
        if not any(not is_blank(row.cells[name]) for name in targets):
            continue
        if item not in answers:
            problems.add(row.number, ITEM, f"{item!r} is not an answer of this run; leave the column as it is")
        elif drawn is not None and item not in drawn:
            problems.add(row.number, ITEM, f"{item!r} was not drawn; its label would say nothing of the others")
        elif not who:
            problems.add(row.number, ANNOTATOR, "it is blank; say who labelled, or give --annotator NAME")
        else:
            found += _of_row(row, answers[item], who, at, targets, problems)
    problems.check()
    return found


def _of_row(row: Row, answer: Answer, who: str, at: str, targets: Mapping[str, str], problems: Problems) -> list[Label]:
    found, known = [], set(wanted(answer, ("verdict", "fields", "traits")))
    for name, target in targets.items():
        text = text_of(row.cells[name])
        if not text.strip():
            continue
        if target not in known:
            problems.add(row.number, name, "no judge of this run says anything about it; leave the cell blank")
            continue
        try:
            value = value_of(text, target, answer)
        except Unreadable as error:
            problems.add(row.number, name, str(error))
        else:
            found.append(Label(item=answer.id, annotator=who, target=target, value=value, at=at))
    return found


def _column(target: str) -> str:
    return target.replace(":", " ", 1)


def _target(column: str) -> str | None:
    kind, _, name = column.partition(" ")
    if column == VERDICT:
        return VERDICT
    return f"{kind}:{name}" if name and f"{kind}:" in (FIELD, TRAIT) else None


def _suffix(path: Path) -> str:
    if (suffix := path.suffix.lower()) not in SUFFIXES:
        raise ConfigError(f"{path} is not a sheet: a sheet is a file with one of the suffixes {', '.join(SUFFIXES)}")
    return suffix
