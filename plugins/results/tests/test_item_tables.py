"""One row an item: in data frames with lists as lists, in a short CSV, and without columns that nothing fills."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.columns import RESULT, SHORT
from karenina_results.columns.short import ALWAYS
from karenina_results.exporting import export
from karenina_results.formats.csv_file import CsvFile, joined_texts, read_rows, split_texts
from karenina_runs.results.results import VerificationResultSet
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import Karenina, ModelIdentity, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.values.convert import unstructure
from karenina_core.values.result import GenerationPart, MetadataPart

ME = ModelIdentity("x", "m")
WHO = [column.name for column in ALWAYS]


def result(number: int = 1, **facts: Any) -> VerificationResult:
    about = {"outcome": "passed", "keywords": ("a", "b; c"), **facts.pop("metadata", {})}
    metadata: Any = {**about, "result_id": f"{number:016x}", "question_id": f"q{number}", "question_text": "?"}
    return VerificationResult(
        metadata=MetadataPart(template_id="t", answering=ME, parsing=ME, **metadata),
        generation=GenerationPart(raw_llm_response="=1+1"),
        template=TemplatePart(parsed_gt_response={"n": 1}, parsed_llm_response={"n": [1, 2]}),
        **facts,
    )


def test_a_frame_has_a_row_for_every_item_and_lists_as_lists() -> None:
    results = VerificationResultSet([result(1), result(2, metadata={"outcome": "error", "error": "down"})])
    frame = results.to_dataframe()
    assert list(frame["question_id"]) == ["q1", "q2"]
    assert list(frame["outcome"]) == ["passed", "error"]
    assert frame["keywords"][0] == ["a", "b; c"]
    assert frame["parsed_llm_response"][0] == {"n": [1, 2]}
    assert frame.explode("keywords").groupby("keywords").size().to_dict() == {"a": 2, "b; c": 2}
    assert [name for name in WHO if name in frame] == WHO
    assert not {"raw_answer", "cost_usd", "input_tokens", "caveats"} & set(frame)


def test_polars_and_arrow_have_lists_of_texts() -> None:
    results = VerificationResultSet([result()])
    assert results.to_dataframe(backend="polars")["keywords"].to_list() == [["a", "b; c"]]
    assert results.to_dataframe(backend="pyarrow").column("keywords").to_pylist() == [["a", "b; c"]]


def test_traits_are_columns() -> None:
    rubric = RubricPart(rubric_evaluation_performed=True, llm_trait_scores={"clarity": 4, "none": None})
    assert VerificationResultSet([result(rubric=rubric), result(2)]).to_dataframe()["rubric_clarity"][0] == 4


@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(st.lists(strategies.results(), max_size=3))
def test_no_column_is_empty_but_those_that_are_always_there(results: list[VerificationResult]) -> None:
    for choice in ("short", "full"):
        frame = VerificationResultSet(results).to_dataframe(columns=choice)  # type: ignore[arg-type] # of a loop
        assert len(frame) == len(results)
        empty = [name for name in frame if frame[name].isna().all() and name not in WHO]
        assert not empty


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there are no columns 'ful' .did you mean 'full'"):
        VerificationResultSet([result()]).view("items").to_dataframe(columns="ful")


@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(st.lists(strategies.results(), max_size=3))
def test_a_short_csv_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, results: list[VerificationResult]
) -> None:
    file = tmp_path_factory.mktemp("csv") / "short.csv"
    CsvFile().write(results, file, {})
    columns = SHORT.columns_for(results)
    wanted = [
        dict(zip([column.name for column in columns], row, strict=True)) for row in SHORT.written_rows(results, columns)
    ]
    rows = list(read_rows(file))
    assert [{name: row[name] for name in WHO} for row in rows] == [{name: row[name] for name in WHO} for row in wanted]
    traits = [name for name in (rows[0] if rows else ()) if name.startswith("rubric_")]
    assert [[row[name] for name in traits] for row in rows] == [[row[name] for name in traits] for row in wanted]


@given(st.lists(st.text(max_size=8), max_size=4))
def test_a_list_in_a_cell_is_read_as_it_was(texts: list[str]) -> None:
    assert split_texts(joined_texts(texts)) == texts


def written(tmp_path: Path) -> Path:
    import json

    file = tmp_path / "results.jsonl"
    file.write_text("".join(f"{json.dumps(unstructure(result(n)))}\n" for n in (1, 2)), "utf-8")
    return file


def test_a_table_is_short_unless_all_columns_are_asked_for(tmp_path: Path) -> None:
    source, app = written(tmp_path), Karenina.default()
    for choice, least, most in ((None, 10, 25), ("short", 10, 25), ("full", len(RESULT.columns), 200)):
        file = export(source, None, tmp_path / f"{choice}.csv", app, columns=choice)
        with file.open(encoding="utf-8", newline="") as opened:
            header, *rows = csv.reader(opened)
        assert (least <= len(header) <= most, len(rows)) == (True, 2), choice
    with pytest.raises(ConfigError, match="the format json has no columns to choose"):
        export(source, None, tmp_path / "x.json", app, columns="full")


def test_a_workbook_has_the_same_columns_and_no_formula(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    file = export(written(tmp_path), None, tmp_path / "out.xlsx", Karenina.default())
    sheet = openpyxl.load_workbook(file).active
    header, first, _ = ([cell.value for cell in row] for row in sheet.iter_rows())
    row = dict(zip(header, first, strict=True))
    assert (row["question_id"], row["success"], row["raw_llm_response"]) == ("q1", True, "=1+1")
    assert split_texts(row["keywords"]) == ["a", "b; c"]
    assert {cell.data_type for cells in sheet.iter_rows() for cell in cells} <= {"s", "n", "b", "inlineStr"}
    long = VerificationResultSet([result(metadata={"raw_answer": "x" * 40_000})])
    from karenina_tables.result_workbooks import CUT, XlsxFile

    XlsxFile("full").write(long, tmp_path / "long.xlsx", {})
    cells = [
        cell.value for cells in openpyxl.load_workbook(tmp_path / "long.xlsx").active.iter_rows() for cell in cells
    ]
    assert any(isinstance(value, str) and value.endswith(f"xxx{CUT}") for value in cells)
