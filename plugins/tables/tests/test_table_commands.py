"""From a sheet to results in three commands, and back, as a user types them; and the same in Python."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from karenina_cli import root
from karenina_tables.benchmarks import read_sheet
from karenina_tables.cells import text_of

from karenina_core import Benchmark, ModelConfig, VerificationConfig, resume_run
from karenina_core.errors import BenchmarkError
from karenina_core.testing import ScriptedServer

REPOSITORY = Path(__file__).parents[3]
SHEET = REPOSITORY / "examples" / "sheet" / "questions.csv"
ANSWERS = SHEET.with_name("answers.json")
CHECKPOINTS = Path(__file__).parent / "data"


def karenina(folder: Path, *words: object) -> Result:
    unset = {name: None for name in os.environ if name.startswith("KARENINA_")}
    with contextlib.chdir(folder):
        return CliRunner(env=unset).invoke(root.karenina, list(map(str, words)), prog_name="karenina")


def ran(folder: Path, *words: object) -> str:
    done = karenina(folder, *words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_sheet_of_a_hundred_questions_runs_in_three_commands(tmp_path: Path) -> None:
    imported = ran(tmp_path, "benchmark", "import", SHEET, "-o", "knowledge.jsonld", "--json")
    assert json.loads(imported) | {"columns": None} == {
        "file": "knowledge.jsonld",
        "questions": 100,
        "with_template": 86,
        "columns": None,
    }
    assert "86 templates can be used" in ran(tmp_path, "benchmark", "validate", "knowledge.jsonld", "--strict")
    manual = ("--answering-interface", "manual", "--manual-traces", ANSWERS, "--quiet", "--json")
    summary = json.loads(ran(tmp_path, "verify", "knowledge.jsonld", *manual, "--out", "run"))
    assert summary["outcomes"] == {"passed": 78, "failed": 8}
    assert "expected 23, extracted 24" in ran(tmp_path, "show", "run", "pairs of chromosomes")
    at_once = json.loads(ran(tmp_path, "verify", SHEET, *manual, "--out", "other"))
    assert at_once["outcomes"] == summary["outcomes"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".jsonl"])
def test_the_sheet_comes_back(suffix: str, tmp_path: Path) -> None:
    ran(tmp_path, "benchmark", "import", SHEET, "-o", "knowledge.jsonld")
    assert ran(tmp_path, "benchmark", "export", "knowledge.jsonld", "-o", f"back{suffix}") == f"back{suffix}\n"
    before, after = (read_sheet(path, path.read_bytes()) for path in (SHEET, tmp_path / f"back{suffix}"))
    assert list(after.columns) == list(before.columns)
    cells = [[{name: text_of(cell) for name, cell in row.cells.items()} for row in s.rows] for s in (before, after)]
    assert cells[0] == cells[1]


def test_the_sheet_has_what_a_tutorial_needs() -> None:
    benchmark = Benchmark.load(SHEET)
    assert len(benchmark) == 100
    types = Counter(
        field["type"] for q in benchmark if q.answer_template for field in json.loads(q.answer_template)["fields"]
    )
    assert set(types) == {"str", "int", "float", "bool", "date", "list_str", "literal"}
    assert all(question.raw_answer for question in benchmark)


def test_import_shows_what_columns_are_and_the_mapping_decides(tmp_path: Path) -> None:
    titles = "Fragen der Arbeitsgruppe\nStand: heute,,\n\n"
    (tmp_path / "fragen.csv").write_text(f"{titles}Frage,Antwort,Prüfer\nWas spaltet Laktose?,Laktase,AB\n", "utf-8")
    refused = karenina(tmp_path, "benchmark", "import", "fragen.csv", "-o", "b.jsonld")
    assert refused.exit_code == 1
    assert "Error: fragen.csv: no column is called question; name the one" in refused.stderr
    assert "Available: 'Frage', 'Antwort', 'Prüfer'" in refused.stderr, "titles name no columns"
    assert not (tmp_path / "b.jsonld").exists()
    half = ran(tmp_path, "benchmark", "import", "fragen.csv", "-o", "half.jsonld", "--map", "Frage=question")
    assert '--map "COLUMN=expected"' in half
    columns = ("--map", "Frage=question", "--map", "Antwort=expected")
    shown = ran(tmp_path, "benchmark", "import", "fragen.csv", "-o", "b.jsonld", *columns)
    for line in ("Frage question", "Antwort expected", "Prüfer custom"):
        assert line in [" ".join(row.split()) for row in shown.splitlines()]
    assert "1 question, 1 of them with an answer template: b.jsonld" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", SHEET, "-o", "b.jsonld", "--map", "x"), "write COLUMN=FIELD, such as Frage=question"),
        (
            ("import", "old.xls", "-o", "b.jsonld"),
            "a sheet is a file with one of the suffixes .csv, .tsv, .xlsx, .jsonl",
        ),
        (("import", "b.jsonld", "-o", "c.jsonld"), "a sheet is a file with one of the suffixes"),
        (("export", SHEET, "-o", "b.pdf"), "a table is a file with one of the suffixes .csv, .tsv, .xlsx, .jsonl"),
    ],
)
def test_wrong_usage(words: tuple[Any, ...], message: str, tmp_path: Path) -> None:
    done = karenina(tmp_path, "benchmark", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("name", ["minimal", "multi_question", "traits", "unknown", "legacy", "scenario"])
def test_benchmark_files_of_others_come_back_with_all_that_they_hold(name: str, suffix: str, tmp_path: Path) -> None:
    folder = REPOSITORY / "plugins" / "jsonld" / "tests" / "data"
    path = CHECKPOINTS / f"{name}.jsonld" if (CHECKPOINTS / f"{name}.jsonld").exists() else folder / f"{name}.jsonld"
    before = Benchmark.load(path)
    before.save(tmp_path / f"table{suffix}")
    after = Benchmark.load(tmp_path / f"table{suffix}")
    metadata = {key: value for key, value in after.metadata.items() if key != "table"}
    assert evolve(after, metadata=metadata) == before
    assert members(after.save(tmp_path / "after.jsonld")) == members(before.save(tmp_path / "before.jsonld"))


def members(path: Path) -> Any:
    """The document without what every save changes, and without the record of the sheet."""
    root = json.loads(path.read_text("utf-8"))
    root.pop("dateModified")
    root["additionalProperty"] = [p for p in root.get("additionalProperty", []) if p["name"] != "table"]
    return root


def test_what_is_edited_in_the_table_arrives_and_the_rest_stays(tmp_path: Path) -> None:
    before = Benchmark.load(REPOSITORY / "plugins" / "jsonld" / "tests" / "data" / "traits.jsonld")
    before.save(tmp_path / "table.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text("utf-8").splitlines()]
    lines[0]["answer"] = "another answer"
    (tmp_path / "table.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    after = Benchmark.load(tmp_path / "table.jsonl")
    first = evolve(before.questions[0], raw_answer="another answer")
    assert after.questions == (first, *before.questions[1:])
    assert after.rubric == before.rubric


# Python

ROWS = [
    {"question": "Which enzyme splits lactose?", "expected": "lactase", "weight": 1.5, "checked": True},
    {"question": "How many pairs of chromosomes?", "expected": "23", "weight": None, "checked": False},
]


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_tables_in_memory(library: str | None) -> None:
    table = importlib.import_module(library).DataFrame(ROWS) if library else ROWS
    benchmark = Benchmark.from_table(table, name="enzymes")
    assert benchmark.name == "enzymes"
    assert [question.id for question in benchmark] == ["which-enzyme-splits-lactose", "how-many-pairs-of-chromosomes"]
    assert [question.custom_metadata for question in benchmark] == [
        {"weight": 1.5, "checked": True},
        {"checked": False},
    ]
    assert all(question.template for question in benchmark)


def test_a_run_is_resumed_from_the_sheet_unless_it_was_read_in_another_way(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("question,expected\nWhich enzyme splits lactose?,lactase\n", "utf-8")
    with ScriptedServer(lambda request: {"answer": "Lactase"} if request.schema else "Lactase.") as server:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
        config = VerificationConfig(answering_models=[model], parsing_models=[model])
        Benchmark.load(path).run_verification(config, run_dir=tmp_path / "run")
        asked = server.count
        assert [result.outcome for result in resume_run(tmp_path / "run")] == ["passed"]
        assert server.count == asked
    assert Benchmark.from_table(path).source == path
    assert Benchmark.from_table(path, columns={"expected": "answer"}).source is None


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="int is not a table"):
        Benchmark.from_table(5)
    with pytest.raises(BenchmarkError, match=r"list is not a table \(.*not JSON serializable"):
        Benchmark.from_table([{"question": object()}])
    with pytest.raises(BenchmarkError, match=r"enzymes.jsonl, row 1, column 'question': is empty"):
        Benchmark.from_table([{"question": "", "answer": "x"}], name="enzymes")
