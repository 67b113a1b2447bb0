"""CSV files: nothing in them runs in a spreadsheet, and every cell comes back as it was."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.columns import RESULT
from karenina_results.formats.csv_file import CsvFile, merge_rows, read_rows, write_rows
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import BenchmarkError
from karenina_core.values.result import GenerationPart, MetadataPart

EXPORT = ("export_timestamp", "karenina_version", "job_id")
ME = ModelIdentity("x", "m")


def result(number: int = 1, text: str = "", extensions: Any = None, **rubric: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q", template_id="t", result_id=f"{number:016x}", question_text="?", answering=ME, parsing=ME
    )
    return VerificationResult(
        metadata=metadata,
        generation=GenerationPart(raw_llm_response=text),
        rubric=RubricPart(rubric_evaluation_performed=True, **rubric),
        extensions=extensions or {},
    )


def cells(results: list[VerificationResult]) -> list[dict[str, Any]]:
    """What the one definition of columns says."""
    columns = RESULT.columns_for(results)
    names = [column.name for column in columns]
    return [dict(zip(names, row, strict=True)) for row in RESULT.written_rows(results, columns)]


def own(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in EXPORT} for row in rows]


def as_others_read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


# What goes in comes out


@given(st.lists(strategies.results(), max_size=3))
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_every_cell_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, results: list[VerificationResult]
) -> None:
    file = tmp_path_factory.mktemp("csv") / "results.csv"
    CsvFile("full").write(results, file, {})
    assert own(read_rows(file)) == cells(results)
    wide = {len(row) for row in as_others_read(file)}
    assert wide == {len(as_others_read(file)[0])}, "other programs must see the same columns in every row"


ODD = [
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "'",
    '"',
    ",",
    ";",
    " ",
    "\0",
    "\ufeff",
    "\u200b",
    "＝",
    "a",
    "1",
    "\u2028",
]


@given(st.text() | st.lists(st.sampled_from(ODD), max_size=6).map("".join))
@settings(deadline=None)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("csv") / "results.csv"
    written = [result(text=text)]
    CsvFile("full").write(written, file, {})
    (row,) = read_rows(file)
    assert row["raw_llm_response"] == cells(written)[0]["raw_llm_response"]


def test_nothing_is_distinct_from_an_empty_text(tmp_path: Path) -> None:
    CsvFile("full").write([result(text="")], tmp_path / "file", {})
    (row,) = read_rows(tmp_path / "file")
    assert row["raw_llm_response"] == ""
    assert row["error"] is None


# Spreadsheets

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\ttab",
    " =1+1",
    "\0=1",
    "\ufeff=1",
    "\u200b=1",
    "＝1",
    '=HYPERLINK("http://x","y")',
    "=cmd|' /C calc'!A0",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_begins_like_a_formula(tmp_path: Path, text: str) -> None:
    traits = {text: True}
    odd = result(text=text, llm_trait_scores=traits, extensions={text: {text: text}})
    file = tmp_path / "file"
    CsvFile("full").write([odd], file, {"run_name": text})
    for row in as_others_read(file):
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r", "\n", "＝")), cell
            assert not cell.lstrip("\0\ufeff\u200b \t\r\n").startswith(("=", "+", "@", "＝")), cell
            assert not cell.startswith("-") or cell.lstrip("-").replace(".", "").isdigit(), cell
    (row,) = read_rows(file)
    assert row["raw_llm_response"] == row["job_id"] == text
    assert row[f"rubric_{text}"] == "true"


def test_a_program_that_takes_semicolons_for_separators_splits_no_text(tmp_path: Path) -> None:
    """Where they separate, a part of a text that is not in quotation marks would be a cell of its own."""
    CsvFile("full").write([result(text="a;=1+1")], tmp_path / "file", {})
    assert '"a;=1+1"' in (tmp_path / "file").read_text("utf-8")


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    written = result(
        callable_trait_scores={"change": -3}, trait_scales={"change": {"type": "callable", "kind": "score"}}
    )
    scored = evolve(written, template=TemplatePart(verify_granular_result=-0.5, verify_result=False))
    CsvFile("full").write([scored], tmp_path / "file", {})
    header, row = as_others_read(tmp_path / "file")
    found = dict(zip(header, row, strict=True))
    assert (found["verify_granular_result"], found["verify_result"], found["replicate"]) == ("-0.5", "false", "1")
    assert found["rubric_change"] == "-3"


@pytest.mark.parametrize("name", ["x" * 300, "two\nlines", "carriage\rreturn", "nul\0", 'quoted "name"', "a,b"])
def test_traits_of_any_name_have_a_column(tmp_path: Path, name: str) -> None:
    CsvFile("full").write([result(llm_trait_scores={name: 4})], tmp_path / "file", {})
    (row,) = read_rows(tmp_path / "file")
    assert row[f"rubric_{name}"] == "4"


def test_the_columns_are_in_the_documented_order(tmp_path: Path) -> None:
    CsvFile("full").write([result(llm_trait_scores={"b": 1, "a": 2})], tmp_path / "file", {})
    columns = as_others_read(tmp_path / "file")[0]
    assert columns[:4] == ["question_id", "success", "error", "question_text"]
    assert columns[11:15] == ["keywords", "rubric_a", "rubric_b", "question_specific_rubrics"]
    assert columns[-3:] == list(EXPORT)


# Several parts


@given(st.lists(strategies.results(), max_size=3), st.integers(0, 4))
@settings(deadline=None, max_examples=settings().max_examples // 4)
def test_parts_that_are_put_together_are_the_same_as_one_file(
    tmp_path_factory: pytest.TempPathFactory, results: list[VerificationResult], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    write_rows(results[:cut], folder / "a", {})
    write_rows(results[cut:], folder / "b", {}, start=len(results[:cut]))
    target = io.StringIO(newline="")
    merge_rows([folder / "a", folder / "b"], target)
    (folder / "both").write_text(target.getvalue(), "utf-8", newline="")
    wanted = cells(results)
    assert [{**dict.fromkeys(row), **row} for row in own(read_rows(folder / "both"))] == wanted


# Files of others


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "is empty"), ("a,b\r\n1,2\r\n", "not a table of results"), ("\udcff\n", "cannot be read")],
)
def test_other_files_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "file").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BenchmarkError, match=complaint):
        list(read_rows(tmp_path / "file"))


def test_a_row_with_too_few_cells_is_named_and_one_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "file"
    CsvFile("full").write([result(1), result(2)], file, {})
    whole = file.read_text("utf-8")
    file.write_text(whole[: whole.rindex('"q"') + 2], "utf-8", newline="")
    assert len(list(read_rows(file))) == 1
    file.write_text(f'{whole}"q",true\r\n', "utf-8", newline="")
    with pytest.raises(BenchmarkError, match="row 3: 2 cells"):
        list(read_rows(file))


@pytest.mark.parametrize("row", ['"' * 200_000 + "x\n", '"a"b"' * 40_000 + "\n", ',"'.join(["x"] * 50_001) + "\n"])
def test_a_row_of_quotation_marks_is_refused_at_once(tmp_path: Path, row: str) -> None:
    """From each of them on, looking to the end would take minutes."""
    (tmp_path / "file.csv").write_text(row, "utf-8")
    began = time.thread_time()
    with pytest.raises(BenchmarkError, match=r"file\.csv"):
        list(read_rows(tmp_path / "file.csv"))
    assert time.thread_time() - began < 5
