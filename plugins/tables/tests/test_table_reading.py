"""What a sheet says, in examples: columns, fields of templates, and mistakes with their places."""

from __future__ import annotations

import codecs
import contextlib
import datetime
import io
import json
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from attrs import evolve
from karenina_tables.benchmarks import read_sheet
from karenina_tables.columns import layout_of
from karenina_tables.fields import read_field
from karenina_tables.questions import readable_id
from karenina_tables.workbooks import MOST_UNPACKED, write_workbook
from openpyxl.comments import Comment

from karenina_core import Benchmark, Question
from karenina_core.errors import BenchmarkError
from karenina_core.testing import ScriptedServer

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def written(text: str | bytes, name: str = "sheet.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def template(question: Question) -> Any:
    return json.loads(question.answer_template or "null")


def field(**cells: Any) -> Any:
    return read_field(cells)


# Columns


@pytest.mark.parametrize(
    ("columns", "targets"),
    [
        (("Question", "Reference answer", "Tags", "Reviewer"), ("question", "answer", "keywords", "custom")),
        (("prompt", "gold_answer", "URL", "answer notes"), ("question", "answer", "sources", "notes")),
        (("question", "type", "unit"), ("question", "custom", "custom")),
        (("question", "expected", "type"), ("question", "expected", "type")),
        (("question", "expected 1", "Type_1", "expected2"), ("question", "expected 1", "type 1", "expected 2")),
        (("question", "answer", "Answer "), ("question", "answer", "custom")),
    ],
)
def test_columns_are_guessed(columns: tuple[str, ...], targets: tuple[str, ...]) -> None:
    assert tuple(layout_of(columns, {}, "s").targets.values()) == targets


def test_a_column_of_a_long_name_means_nothing_and_holds_nothing_up() -> None:
    names = ["question", "#" * 1_000_000, "expected " + "." * 1_000_000 + "1"]
    assert [*layout_of(names, {}, "s").targets.values()] == ["question", "custom", "custom"]


def test_the_mapping_decides(make: Make) -> None:
    path = make("Frage;Antwort;tags\nWas spaltet Laktose?;Laktase;x\n")
    with pytest.raises(BenchmarkError, match=r"sheet.csv: no column is called question; .*Available: 'Frage', 'Antw"):
        Benchmark.load(path)
    benchmark = Benchmark.from_table(path, columns={"Frage": "question", "Antwort": "expected", "tags": "custom"})
    (question,) = benchmark
    assert (question.question, question.raw_answer) == ("Was spaltet Laktose?", "Laktase")
    assert (question.keywords, question.custom_metadata) == ((), {"tags": "x"})
    assert template(question)["fields"][0]["ground_truth"] == "Laktase"
    assert question.id == "was-spaltet-laktose"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Qestion": "question"}, "there is no column 'Qestion' (did you mean 'question'?)"),
        ({"question": "qestion"}, "'question' cannot be 'qestion' (did you mean 'question'?)"),
        ({"answer": "tolerance"}, "'answer' is the tolerance of a field, and no column holds its expected value"),
    ],
)
def test_a_mapping_that_cannot_be(given: dict[str, str], message: str, make: Make) -> None:
    with pytest.raises(BenchmarkError) as caught:
        Benchmark.from_table(make("question,answer\nx?,y\n"), columns=given)
    assert message in str(caught.value)


# Fields


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"expected": "lactase"}, ("str", "lactase", {"type": "ExactMatch"})),
        ({"expected": "23"}, ("int", 23, {"type": "NumericExact"})),
        (
            {"expected": 23, "tolerance": 1},
            ("float", 23, {"type": "NumericTolerance", "tolerance": 1, "mode": "absolute"}),
        ),
        (
            {"expected": "7.4", "tolerance": "5 %"},
            ("float", 7.4, {"type": "NumericTolerance", "tolerance": 0.05, "mode": "relative"}),
        ),
        (
            {"expected": 23, "tolerance": 1, "type": "whole number"},
            ("int", 23, {"type": "NumericTolerance", "tolerance": 1, "mode": "absolute"}),
        ),
        ({"expected": True}, ("bool", True, {"type": "BooleanMatch"})),
        ({"expected": "No", "type": "text"}, ("str", "No", {"type": "ExactMatch"})),
        ({"expected": "2024-05-31"}, ("date", "2024-05-31", {"type": "DateMatch"})),
        (
            {"expected": "2024-05-31", "tolerance": "3 days"},
            ("date", "2024-05-31", {"type": "DateTolerance", "tolerance": 3, "unit": "days"}),
        ),
        (
            {"expected": "a | b"},
            ("list_str", ["a", "b"], {"type": "SetContainment", "normalize": ["lowercase", "strip"]}),
        ),
        ({"expected": "a, b", "compare": "contains all"}, ("str", "a, b", None)),
        ({"expected": "up", "type": "choice: up | down"}, ("literal", "up", {"type": "LiteralMatch"})),
        (
            {"expected": 5, "compare": '{"type": "NumericRange", "min": 1}'},
            ("int", 5, {"type": "NumericRange", "min": 1}),
        ),
        ({"expected": "5", "compare": "At  least"}, ("int", 5, {"type": "NumericMinimum"})),
        ({"expected": "x", "compare": "SemanticMatch"}, ("str", "x", {"type": "SemanticMatch"})),
    ],
)
def test_cells_become_a_field(cells: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = field(**cells)
    assert (found["type"], found["ground_truth"]) == expected[:2]
    assert expected[2] is None or found["verify_with"] == expected[2]


def test_units_and_names_are_in_what_the_judge_reads() -> None:
    found = field(field="Dose per day", expected="5.5", unit="mg")
    assert found["name"] == "Dose_per_day"
    assert found["description"] == "What the response gives as its answer for: Dose per day (in mg)"


def test_aliases_pass_and_other_words_do_not(make: Make) -> None:
    path = make("question,expected,aliases\nWhich enzyme?,Lactase,LPH; Lactase-Phlorizin\n")
    replies = iter(["LPH", "lactase-phlorizin", "LACTASE", "maltase"])
    outcomes = []
    with ScriptedServer(lambda request: {"answer": next(replies)} if request.schema else "So it is.") as server:
        for _ in range(4):
            from karenina_core import ModelConfig, VerificationConfig

            model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
            config = VerificationConfig(answering_models=[model], parsing_models=[model])
            outcomes.append(str(Benchmark.load(path).run_verification(config)[0].outcome))
    assert outcomes == ["passed", "passed", "passed", "failed"]


def test_several_rows_and_several_columns_make_the_same_template(make: Make) -> None:
    rows = make("question,field,expected\nWhat and when?,drug,aspirin\n,year,1899\nWhat and when?,safe,yes\n")
    wide = "question,field 1,expected 1,field 2,expected 2,field 3,expected 3\n"
    columns = make(f"{wide}What and when?,drug,aspirin,year,1899,safe,yes\n", "wide.csv")
    one, other = Benchmark.load(rows), Benchmark.load(columns)
    assert one.questions == other.questions
    assert [item["name"] for item in template(one.questions[0])["fields"]] == ["drug", "year", "safe"]


def test_a_reference_answer_alone_is_no_template(make: Make) -> None:
    (question,) = Benchmark.load(make("question,answer\nWhy?,Because.\n"))
    assert (question.template, question.raw_answer) == (None, "Because.")


def test_the_language_of_a_template_column_is_found_out(make: Make) -> None:
    code = "class Answer(BaseAnswer):\n    x: int"
    path = make(f'question,template\na?,"{code}"\nb?,"{{""fields"": []}}"\n')
    assert [question.template_language for question in Benchmark.load(path)] == ["python", "karenina-template"]


# Mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "question,expected,type\na?,x,number\n",
            "sheet.csv, row 2, column 'expected': 'x' is not valid for the type number; correct it",
        ),
        ("question,expected,type\na?,x,nmber\n", "row 2, column 'type': there is no 'nmber' (did you mean 'number'?)"),
        ("question,expected,tolerance\na?,5,much\n", "row 2, column 'tolerance': 'much' is not a tolerance"),
        ("question,expected,tolerance\na?,5,-1\n", "column 'tolerance'"),
        (
            "question,expected,compare\na?,5,atleast\n",
            "column 'compare': there is no 'atleast' (did you mean 'at least'?)",
        ),
        (
            "question,expected,compare\na?,5,RegexMatch\n",
            "column 'compare': RegexMatch: parameter 'pattern' is missing",
        ),
        ("question,expected,tolerance\na?,5 mg,1 g\n", "column 'tolerance': '1 g' is not in mg; write it in mg"),
        ("question,expected,compare\na?,5,Fuzzy\n", "column 'compare': unknown primitive 'Fuzzy'"),
        (
            "question,expected,aliases\na?,5,five\n",
            "column 'aliases': are other words for a text, but '5' is taken for a whole number",
        ),
        ("question,expected,field\na?,5,verify\n", "row 2, column 'field': 'verify' is taken"),
        ("question,field,expected\na?,x,\n", "row 2, column 'expected': is empty"),
        (
            "question,field,expected\na?,x,1\n,,2\n",
            "row 3, column 'field': a template with several fields needs a name",
        ),
        ("question,field,expected\na?,x,1\n,x,2\n", "row 3, column 'field': 'x' occurs twice"),
        ("id,question\n1,a?\n1,b?\n", "row 3, column 'id': the id '1' is already in row 2"),
        ("question\na?\nb?\na?\n", "row 4, column 'question': the question 'a?' is already in row 2"),
        ("question,answer\n,x\n", "row 2, column 'question': is empty"),
        ("question,finished\na?,maybe\n", "row 2, column 'finished': 'maybe' is neither yes nor no"),
        ("question,question\na?,b\n", "row 1, column 'question': occurs twice"),
        ("question,\na?,b\n", "row 2: the cell in column B is in a column without a name"),
        ('question\n"a?\n', "row 2: unexpected end of data"),
        ("", "sheet.csv, row 1: names no columns"),
        ("question,karenina\na?,x\n", "row 2, column 'karenina': is not what was written there"),
        ('question,karenina\na?,"{""item"": 3}"\n', "column 'karenina': table.jsonld: cannot be used"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, message: str, make: Make) -> None:
    with pytest.raises(BenchmarkError) as caught:
        Benchmark.load(make(text))
    assert message in str(caught.value)


def test_all_mistakes_are_named_at_once(make: Make) -> None:
    with pytest.raises(BenchmarkError) as caught:
        Benchmark.load(make("question,expected,type\n" + "".join(f"{n}?,x,number\n" for n in range(30))))
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "... and 10 more problems")
    assert lines[3].startswith("sheet.csv, row 5, column 'expected'")


def test_a_row_of_json_lines_is_its_line(make: Make) -> None:
    with pytest.raises(BenchmarkError, match=r"rows.jsonl, row 3: not JSON"):
        Benchmark.load(make('{"question": "a?"}\n\n{oh}\n', "rows.jsonl"))
    with pytest.raises(
        BenchmarkError, match=r"rows.jsonl, row 2, column 'expected': 'x' is not valid for the type number"
    ):
        Benchmark.load(
            make('{"question": "a?"}\n{"question": "b?", "expected": "x", "type": "number"}\n', "rows.jsonl")
        )


@pytest.mark.parametrize(("encoding", "warned"), [("utf-8", 0), ("utf-8-sig", 0), ("cp1252", 1)])
def test_a_file_is_written_in_the_encoding_that_it_came_in(encoding: str, warned: int, make: Make) -> None:
    data = "question;reviewer\nWär?;Ä\n".encode(encoding)
    benchmark = Benchmark.load(make(data))
    assert (benchmark.questions[0].question, len(benchmark.warnings)) == ("Wär?", warned)
    assert benchmark.save(make(b"", "again.csv")).read_bytes() == data
    (question,) = benchmark
    odd = benchmark.with_questions([evolve(question, custom_metadata={"reviewer": "\u6c34"})])
    written = odd.save(make(b"", "odd.csv")).read_bytes()
    assert written.decode("utf-8-sig").splitlines()[1] == "Wär?;\u6c34"


def test_what_is_no_text_says_how_to_save(make: Make) -> None:
    for data in (b"question\nW\xe4r?\x00\n", b"question\nW\x81r?\n", codecs.BOM_UTF8 + b"question\n\xe4?\n"):
        with pytest.raises(BenchmarkError, match=r"not UTF-8 at byte \d+; save it as 'CSV UTF-8', or as .xlsx"):
            Benchmark.load(make(data))
    assert Benchmark.load(make("question\nWär?\n".encode("utf-16"))).questions[0].question == "Wär?"


def test_a_new_table_is_marked_as_unicode_where_spreadsheet_programs_would_not_know(make: Make) -> None:
    for text, marked in (("War?", False), ("Wär?", True)):
        path = Benchmark(name="b", questions=[Question(question=text, id="q")]).save(make(b"", "new.csv"))
        assert path.read_bytes().startswith(codecs.BOM_UTF8) is marked


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.xlsx"])
def test_titles_above_the_names_of_columns_stay(name: str, tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["Items of the clinic", None, None],
        [None, "What is right", None],
        ["Question", "Expected", "Dr A"],
        ["Which enzyme splits lactose?", "lactase", "ok"],
        ["Which gene?", "CFTR", None],
    ]
    path = tmp_path / name
    if name.endswith(".csv"):
        path.write_text("".join(";".join(cell or "" for cell in row) + "\n" for row in rows), "utf-8")
    else:
        book = openpyxl.Workbook()
        book.active.title = "Read me"
        book.active.append(["How to fill this in"])
        sheet = book.create_sheet("Items")
        for row in rows:
            sheet.append(row)
        sheet.merge_cells("B2:C2")
        sheet.column_dimensions["C"].hidden = True
        book.save(path)
    benchmark = Benchmark.load(path)
    assert [q.custom_metadata for q in benchmark] == [{"Dr A": "ok"}, {}]
    again = read_sheet(path, benchmark.save(tmp_path / f"again{path.suffix}").read_bytes())
    assert [list(filter(None, row)) for row in again.facts["above"]] == [["Items of the clinic"], ["What is right"]]
    assert again.columns == ("Question", "Expected", "Dr A")


def test_a_share_in_percent_is_read_as_its_cell_shows_it(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["question", "expected", "weight"])
    book.active.append(["Which share of air is oxygen?", 0.2095, 0.5])
    for cell in ("B2", "C2"):
        book.active[cell].number_format = "0.00%"
    book.save(tmp_path / "book.xlsx")
    benchmark = Benchmark.load(tmp_path / "book.xlsx")
    (found,) = template(benchmark.questions[0])["fields"]
    assert (found["ground_truth"], found["description"][-6:]) == (20.95, "(in %)")
    assert benchmark.questions[0].custom_metadata == {"weight": 0.5}
    benchmark.save(tmp_path / "b.jsonld")
    Benchmark.load(tmp_path / "b.jsonld").save(tmp_path / "again.xlsx")
    again = openpyxl.load_workbook(tmp_path / "again.xlsx").active
    assert [(again[cell].value, again[cell].number_format) for cell in ("B2", "C2")] == [(0.2095, "0.00%"), (0.5, "0%")]
    Benchmark.load(tmp_path / "b.jsonld").save(tmp_path / "again.jsonl")
    assert Benchmark.load(tmp_path / "again.jsonl").questions == benchmark.questions


@pytest.mark.parametrize(
    ("cells", "mark", "found"),
    [
        ("18,015", ",", ("float", 18.015)),
        ("18,015", ".", ("int", 18015)),
        ("1.234", ",", ("int", 1234)),
        ("1.234", "", ("float", 1.234)),
        ("-195,8", "", ("float", -195.8)),
        ("−195.8", "", ("float", -195.8)),
        ("0,125", "", ("float", 0.125)),
        ("299.792,458", "", ("float", 299792.458)),
        ("1,234,567", "", ("int", 1234567)),
        ("299 792 458", "", ("int", 299792458)),
        ("1'000,5", "", ("float", 1000.5)),
        ("11.01.1922", "", ("date", "1922-01-11")),
        ("31/12/2024", "", ("date", "2024-12-31")),
        ("12/31/2024", "", ("date", "2024-12-31")),
        ("Nein", "", ("bool", False)),
        ("WAHR", "", ("bool", True)),
        ("1,2,3", "", ("str", "1,2,3")),
        ("7A", "", ("str", "7A")),
        ("BCL2", "", ("str", "BCL2")),
        ("5 prime", "", ("str", "5 prime")),
        ("1.2.3", "", ("str", "1.2.3")),
        ("99.99.2024", "", ("str", "99.99.2024")),
    ],
)
def test_values_as_people_write_them(cells: str, mark: str, found: tuple[str, Any]) -> None:
    spec = read_field({"expected": cells}, mark=mark)
    assert (spec["type"], spec["ground_truth"]) == found
    assert read_field({"expected": cells, "type": "text"}, mark=mark)["ground_truth"] == cells


@pytest.mark.parametrize(
    ("written", "number", "unit"),
    [("500 mg", 500, "mg"), ("0,5 mg/L", 0.5, "mg/L"), ("21 %", 21, "%"), ("7 A", 7, "A"), ("37.0°C", 37.0, "°C")],
)
def test_a_unit_behind_a_number_is_its_unit(written: str, number: float, unit: str) -> None:
    for cells in ({"expected": written}, {"expected": written, "type": "number"}, {"expected": written, "unit": unit}):
        spec = read_field(cells)
        assert (spec["ground_truth"], spec["description"].rpartition(" (in ")[2]) == (number, f"{unit})")
    assert read_field({"expected": written, "compare": "QuantityMatch"})["ground_truth"] == written


@pytest.mark.parametrize(
    ("tolerance", "limit", "mode"),
    [("5", 5, "absolute"), ("±5 mg", 5, "absolute"), ("0,5mg", 0.5, "absolute"), ("5 %", 0.05, "relative")],
)
def test_a_tolerance_may_have_the_unit_and_allows_what_is_not_whole(tolerance: str, limit: float, mode: str) -> None:
    spec = read_field({"expected": "500 mg", "tolerance": tolerance})
    assert spec["verify_with"] == {"type": "NumericTolerance", "tolerance": limit, "mode": mode}
    assert (spec["type"], spec["ground_truth"], spec["description"][-7:]) == ("float", 500.0, "(in mg)")


def test_the_numbers_of_a_sheet_share_their_decimal_mark(make: Make) -> None:
    def truths(text: str) -> list[Any]:
        return [template(question)["fields"][0]["ground_truth"] for question in Benchmark.load(make(text))]

    assert truths("question;expected\na?;18,015\n") == [18.015], "where cells end in semicolons, decimals have commas"
    assert truths('question,expected\na?,"18,015"\nb?,"0,5"\n') == [18.015, 0.5]
    assert truths('question,expected\na?,"18,015"\nb?,0.5\n') == [18015, 0.5]
    assert truths('question,expected,tolerance\na?,"18,015","0,01"\n') == [18.015]
    assert truths("question;expected;type\na?;0,5;text\nb?;1.125;number\n") == ["0,5", 1.125]
    for text in ('question,expected\na?,"18,015"\n', 'question,expected\na?,"18,015"\nb?,0.5\nc?,"0,5"\n'):
        with pytest.raises(BenchmarkError, match=r"row 2, column 'expected': '18,015' may be 18\.015 or 18015; write"):
            truths(text)
    with pytest.raises(BenchmarkError, match=r"'3/4/2024' may be 2024-04-03 or 2024-03-04; write one of these"):
        truths("question,expected\na?,3/4/2024\n")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".jsonl"])
def test_numbers_with_commas_mean_the_same_in_every_format(suffix: str, make: Make, tmp_path: Path) -> None:
    before = Benchmark.load(make("question;expected;tolerance\na?;18,015;1,5 %\nb?;1.234;\n"))
    after = Benchmark.load(before.save(tmp_path / f"other{suffix}"))
    assert [question.template for question in after] == [question.template for question in before]
    changed = evolve(before.questions[0], answer_template=before.questions[0].answer_template.replace("18.0", "17.0"))
    kept = before.with_questions([changed])
    back = Benchmark.load(kept.save(tmp_path / f"kept{suffix}"))
    assert [question.template for question in back] == [question.template for question in kept]
    if suffix == ".csv":
        assert "a?;17,015;1,5 %" in (tmp_path / "kept.csv").read_text("utf-8")


def test_ids_are_short_words_of_the_question() -> None:
    assert (
        readable_id("Which hormone do the beta cells of the pancreas secrete?", set())
        == "which-hormone-do-the-beta-cells-of-the"
    )
    assert readable_id("Was ist \u00c4?", {"was-ist-\u00e4"}) == "was-ist-\u00e4-2"
    assert readable_id("???", set()) == "question"
    assert len(readable_id("x" * 500, set())) == 40


# Workbooks


def test_a_workbook_of_another_program(make: Make, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "About"
    sheet = book.create_sheet("Items")
    sheet.append(["question", "expected", "checked on", "sum"])
    sheet.append(["How warm?", 37.5, datetime.datetime(2024, 5, 31), "=1+1"])
    sheet["A2"].comment = Comment("please check", "AB")
    sheet["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "book.xlsx")
    with pytest.raises(
        BenchmarkError, match=r"has no sheet 'items' \(did you mean 'Items'\?\); available: 'About', 'Items'"
    ):
        Benchmark.from_table(tmp_path / "book.xlsx", sheet="items")
    benchmark = Benchmark.from_table(tmp_path / "book.xlsx", sheet="Items")
    (question,) = benchmark
    assert question.custom_metadata == {"checked on": "2024-05-31"}  # a formula without a computed value is empty
    benchmark.save(tmp_path / "benchmark.jsonld")
    Benchmark.load(tmp_path / "benchmark.jsonld").save(tmp_path / "again.xlsx")
    again = openpyxl.load_workbook(tmp_path / "again.xlsx")["Items"]
    assert [cell.value for cell in again[2]] == ["How warm?", 37.5, datetime.datetime(2024, 5, 31), None]
    assert (again["A2"].comment.text, again["A2"].comment.author) == ("please check", "AB")


def test_texts_never_become_formulas(tmp_path: Path) -> None:
    texts = ["=1+1", "@SUM(A1)", "+49 30", "-x", "#N/A", "=cmd|' /C calc'!A0"]
    benchmark = Benchmark(name="b", questions=[Question(question=text, id=f"q{n}") for n, text in enumerate(texts)])
    benchmark.save(tmp_path / "b.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "b.xlsx").active.iter_rows(min_row=2, min_col=2, max_col=2))
    assert [(row[0].value, row[0].data_type) for row in rows] == [(text, "s") for text in texts]
    benchmark.save(tmp_path / "b.csv")
    lines = (tmp_path / "b.csv").read_text("utf-8").splitlines()[1:]
    assert [line.split(",")[1] for line in lines] == [text if text == "#N/A" else f"'{text}" for text in texts]
    assert [question.question for question in Benchmark.load(tmp_path / "b.csv")] == texts


def bomb(size: int, parts: int = 1) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(parts):
            packed.writestr(f"xl/{number}.xml", b" " * size)
    return out.getvalue()


def _with_part(name: str, change: Callable[[bytes], bytes]) -> bytes:
    rows = [{"question": "a?", "answer": "b"}]
    whole = write_workbook(["question", "answer"], rows, [{}, {}], "Items", "")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, change(old.read(part)) if part == name else old.read(part))
    return out.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
LAUGHS = b"<!DOCTYPE x [" + b"".join(
    b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10 if n else b"lol" * 10) for n in range(12)
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: bomb(MOST_UNPACKED + 1), id="large part"),
        pytest.param(lambda: bomb(1, 2_000), id="many parts"),
        pytest.param(lambda: bomb(20_000_000), id="high ratio"),
        pytest.param(
            lambda: _with_part(SHEET, lambda xml: LAUGHS + b"]>" + xml.replace(b"a?", b"&e11;")), id="entities"
        ),
        pytest.param(lambda: b"PK\x05\x06" + bytes(18), id="empty archive"),
        pytest.param(lambda: struct.pack("<I", 0xE011CFD0) * 100, id="older format"),
    ],
)
def test_bombs_and_strangers_are_refused_at_once(data: Callable[[], bytes], make: Make) -> None:
    path = make(data(), "sheet.xlsx")
    begun = time.process_time()
    with pytest.raises(BenchmarkError, match=r"sheet\.xlsx"):
        Benchmark.load(path)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: xml.replace(b'r="2"', b'r="999999999999"').replace(b'"A2"', b'"A999999999999"'),
        lambda xml: xml.replace(b'"A2"', b'"XFD2"'),
        lambda xml: xml.replace(
            b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
        ),
        lambda xml: xml.replace(b'<dimension ref="A1:B2"', b'<dimension ref="A1:XFD1048576"'),
    ],
)
def test_a_sheet_that_claims_to_be_endless_takes_no_time(change: Callable[[bytes], bytes], make: Make) -> None:
    data = _with_part(SHEET, change)
    begun = time.process_time()
    with contextlib.suppress(BenchmarkError):
        Benchmark.load(make(data, "sheet.xlsx"))
    assert time.process_time() - begun < 20


def test_without_openpyxl_it_says_what_to_install(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(BenchmarkError, match=r"pip install 'karenina-tables\[xlsx\]', or use .csv"):
        Benchmark.load(make(b"PK", "sheet.xlsx"))
    with pytest.raises(BenchmarkError, match=r"pip install 'karenina-tables\[xlsx\]'"):
        Benchmark(name="b", questions=[Question(question="a?")]).save(make(b"", "other.xlsx"))


def test_a_text_that_no_cell_holds_is_refused(make: Make) -> None:
    path = make(b"", "long.xlsx")
    with pytest.raises(
        BenchmarkError, match=r"column 'question': a cell of a workbook holds 32767 characters; use .csv"
    ):
        Benchmark(name="b", questions=[Question(question="x" * 40_000, id="q")]).save(path)
    with pytest.raises(BenchmarkError, match="surrogates not allowed"):
        Benchmark(name="b", questions=[Question(question="\ud800", id="q")]).save(make(b"", "odd.csv"))
