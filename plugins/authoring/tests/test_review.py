"""`karenina benchmark audit` and `review`: real files, sheets in every format, decisions and what becomes of them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_authoring.review.columns import COLUMNS
from karenina_authoring.review.decisions import next_version
from karenina_cli.root import karenina as root
from karenina_runs.results.lines import record

from karenina_core import Benchmark

from .audited import ITEMS, answers, benchmark

NAMED = ("bio02", "bio03", "bio05", "bio10", "chem14", "geo13")
"""Items that tests name."""
SOUND = [item["id"] for item in ITEMS if "fault" not in item and item["id"] not in NAMED][:10]


def karenina(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(argument) for argument in arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    questions = [question for question in benchmark() if question.id != "cs08"]  # whose template no sheet can hold
    return Benchmark(name="hundred", questions=questions).save(tmp_path / "bench.jsonld")


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """Sixteen of them: to look at all takes a second."""
    questions = [question for question in benchmark() if question.id in (*NAMED, *SOUND)]
    return Benchmark(name="some", questions=questions).save(tmp_path / "bench.jsonld")


def edited(sheet: Path, to: Path, rows: Mapping[str, Mapping[str, str]]) -> Path:
    """A copy of a sheet in which a person has written."""
    csv.field_size_limit(10**9)
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        found = list(csv.DictReader(file))
    for row in found:
        row.update(rows.get(row["id"], {}))
    with to.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, found[0].keys())
        writer.writeheader()
        writer.writerows(found)
    return to


def decision(word: str, **cells: str) -> dict[str, str]:
    return {"review decision": word, "review by": "Ada", **cells}


# audit


def test_the_audit_lists_faults_ranks_them_as_json_and_ends_with_4_where_one_asks(path: Path) -> None:
    ended = karenina("benchmark", "audit", path)
    assert ended.exit_code == 0, ended.output
    assert "bio14     contradiction" in ended.stdout
    strict = karenina("benchmark", "audit", path, "--json", "--strict")
    assert strict.exit_code == 4
    document = json.loads(strict.stdout)
    assert [item["rank"] for item in document["items"]] == list(range(1, len(document["items"]) + 1))
    assert document["counts"]["fault"] == sum(item["severity"] == "fault" for item in document["items"]) > 5


def test_results_of_runs_are_read_and_the_sheet_has_a_column(path: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text("".join(f"{record(one)}\n" for one in answers()), "utf-8")
    sheet = tmp_path / "audited.csv"
    ended = karenina("benchmark", "audit", path, "--run", results, "-o", sheet, "--json")
    assert ended.exit_code == 0, ended.output
    found = {
        item["question_id"]: {one["check"] for one in item["findings"]} for item in json.loads(ended.stdout)["items"]
    }
    assert "agreement against it" in found["math08"]
    again = Benchmark.load(sheet)
    assert "agreement against it" in again.question("math08").custom_metadata["audit"]
    assert not again.question("bio02").custom_metadata.get("audit")


def test_the_audit_needs_neither_scipy_nor_numpy(some: Path) -> None:
    code = (
        "import sys; from karenina_cli.root import karenina\n"
        f"try: karenina(['benchmark', 'audit', {str(some)!r}, '--json'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'scipy', 'numpy', 'pandas'} & sys.modules.keys(), 'imported'"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


# review


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "xlsx"])
def test_a_sheet_without_decisions_changes_nothing(some: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "xlsx":
        pytest.importorskip("openpyxl")
    before, sheet = some.read_bytes(), tmp_path / f"review.{suffix}"
    ended = karenina("benchmark", "review", some, "--sheet", sheet)
    assert ended.exit_code == 0, ended.output
    row = Benchmark.load(sheet).question("chem14").custom_metadata
    assert "fault: contradiction" in row["review audit"]
    assert row["review proof"].startswith("proven, ")
    assert row["review state"] == "finished"
    ended = karenina("benchmark", "review", some, "--apply", sheet, "--json")
    if ended.exit_code == 0:
        document = json.loads(ended.stdout)
        assert (document["file"], document["changes"], document["ignored"]) == (None, [], [])
        assert len(document["undecided"]) == 16
    else:  # formats that have no blank columns
        assert "nothing is decided in this sheet" in ended.output
    assert some.read_bytes() == before
    assert "already exists" in karenina("benchmark", "review", some, "--sheet", sheet).output


def test_a_sheet_for_reviewers_holds_nothing_twice(some: Path, tmp_path: Path) -> None:
    plain, sheet = tmp_path / "plain.csv", tmp_path / "review.csv"
    plain.write_text("question,answer\nWhat is 1+1?,2\n", "utf-8")
    assert karenina("benchmark", "review", plain, "--sheet", sheet).exit_code == 0
    columns, row = csv.reader(sheet.read_text("utf-8").splitlines())
    assert columns == ["id", "question", "answer", *COLUMNS]
    assert row[3:8] == ["", "", "", "no template", ""]


def test_accept_edit_and_reject_are_applied_and_kept_with_a_version(some: Path, tmp_path: Path) -> None:
    sheet, old = tmp_path / "review.csv", Benchmark.load(some)
    karenina("benchmark", "review", some, "--sheet", sheet)
    decided = edited(
        sheet,
        tmp_path / "decided.csv",
        {
            "bio02": decision("accept"),
            "chem14": decision("Edit", expected="13.5", **{"review comment": "a typo"}),
            "bio05": decision("reject", **{"review comment": "too easy"}),
            "geo13": decision("accept"),
            "bio10": decision("edit", description="The blood group, which should be O negative"),
            "bio03": {"answer": "Helicase!"},
        },
    )
    ended = karenina("benchmark", "review", some, "--apply", decided)
    assert ended.exit_code == 0, ended.output
    assert "version 0.1.0 became 0.1.1 (accept 2, edit 2, reject 1)" in ended.stdout
    assert "bio03" in ended.stdout.partition("and ignored")[2]
    new = Benchmark.load(some)
    assert json.loads(new.question("chem14").answer_template or "")["fields"][0]["ground_truth"] == 13.5
    assert new.question("bio03") == old.question("bio03")
    finished = {name: new.question(name).finished for name in ("bio02", "chem14", "bio05", "geo13", "bio10")}
    assert finished == {"bio02": True, "chem14": True, "bio05": False, "geo13": False, "bio10": False}
    assert "the field 'population' accepts anything" in ended.stdout
    assert "gives its answer away" in ended.stdout
    assert new.question("bio05").custom_metadata["review"]["comment"] == "too easy"
    assert not set(COLUMNS) & {name for question in new for name in question.custom_metadata}
    (entry,) = new.metadata["changelog"]
    assert (entry["version"], entry["digest"]) == ("0.1.1", new.digest)
    assert entry["counts"] == {"accept": 2, "edit": 2, "reject": 1}
    assert {row["question_id"]: row.get("parts") for row in entry["changes"]}["chem14"] == ["answer_template"]
    digests = new.metadata["item_digests"]
    assert digests == {question.id: question.digest for question in new}
    assert [name for name in digests if digests[name] != old.question(name).digest] == ["bio10", "chem14"]


def test_an_edit_in_a_column_that_was_mapped_arrives_and_the_sheet_keeps_its_names(tmp_path: Path) -> None:
    own, made = tmp_path / "fragen.csv", tmp_path / "made.jsonld"
    own.write_text("Frage;Antwort;Tags\nWie viele Exons hat TP53?;10;Krebs\nWelches Enzym?;Laktase;Darm\n", "utf-8")
    mapped = ("--map", "Frage=question", "--map", "Antwort=expected")
    assert karenina("benchmark", "import", own, "-o", made, *mapped).exit_code == 0
    sheet = tmp_path / "review.csv"
    assert karenina("benchmark", "review", made, "--sheet", sheet).exit_code == 0
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        found = csv.DictReader(file, delimiter=";")
        rows, names = list(found), list(found.fieldnames or ())
    assert {"Frage", "Antwort", "Tags", "review decision"} <= set(names)
    rows[0] |= decision("edit", Antwort="11")
    rows[1] |= decision("edit", Frage="Welches Enzym spaltet Laktose?")
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    ended = karenina("benchmark", "review", made, "--apply", sheet)
    assert ended.exit_code == 0, ended.output
    first, second = Benchmark.load(made)
    assert json.loads(first.answer_template or "")["fields"][0]["ground_truth"] == 11
    assert second.question == "Welches Enzym spaltet Laktose?"
    again = tmp_path / "again.csv"
    assert karenina("benchmark", "export", made, "-o", again).exit_code == 0
    assert again.read_text("utf-8-sig").splitlines()[1].startswith("Wie viele Exons hat TP53?;11;Krebs")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (decision("acept"), "'acept' is not a decision (did you mean 'accept'?)"),
        (decision("accept", expected="47"), "answer_template changed, and the decision is accept; write edit"),
        (decision("accept", **{"review item": "0" * 16}), "has changed in the benchmark since the sheet was written"),
    ],
)
def test_a_row_that_cannot_be_applied_is_named_and_nothing_is_written(
    some: Path, tmp_path: Path, cells: dict[str, str], message: str
) -> None:
    sheet, before = tmp_path / "review.csv", some.read_bytes()
    karenina("benchmark", "review", some, "--sheet", sheet)
    decided = edited(sheet, tmp_path / "decided.csv", {"bio02": cells, "bio05": decision("reject")})
    ended = karenina("benchmark", "review", some, "--apply", decided)
    assert ended.exit_code == 1
    assert f"bio02: {message}" in ended.stderr
    assert some.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --sheet FILE to write a sheet, or --apply FILE"),
        (["--sheet", "a.csv", "--apply", "b.csv"], "give --sheet FILE to write a sheet, or --apply FILE"),
        (["--sheet", "a.csv", "--version", "2"], "belong to --apply"),
        (["--apply", "a.csv", "--run", "r"], "--run belongs to --sheet"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(some: Path, arguments: list[str], message: str) -> None:
    ended = karenina("benchmark", "review", some, *arguments)
    assert ended.exit_code == 2
    assert message in ended.stderr


@settings(
    max_examples=settings().max_examples // 6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.sampled_from(SOUND), st.sampled_from(["accept", "reject"]), min_size=1, max_size=12))
def test_only_what_is_decided_changes(some: Path, tmp_path: Path, words: dict[str, str]) -> None:
    sheet, out = tmp_path / "review.csv", tmp_path / "out.jsonld"
    if not sheet.exists():
        karenina("benchmark", "review", some, "--sheet", sheet)
    decided = edited(sheet, tmp_path / "decided.csv", {name: decision(word) for name, word in words.items()})
    ended = karenina("benchmark", "review", some, "--apply", decided, "-o", out, "--version", "7", "--json")
    document = json.loads(ended.stdout)
    assert {row["question_id"]: row["decision"] for row in document["changes"]} == words
    old, new = Benchmark.load(some), Benchmark.load(out)
    assert (new.version, new.digest) == ("7", old.digest)
    assert [question for question in new if question.id not in words] == [
        question for question in old if question.id not in words
    ]
    assert all(new.question(name).finished is False for name, word in words.items() if word == "reject")


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_the_next_version_raises_the_last_number(numbers: list[int]) -> None:
    text = ".".join(map(str, numbers))
    assert next_version(text) == ".".join(map(str, [*numbers[:-1], numbers[-1] + 1]))
    assert next_version(f"{text}-beta") == f"{next_version(text)}-beta"
    assert next_version("draft") == "draft.1"


def test_the_digest_of_an_item_is_of_what_is_asked_and_what_is_right(some: Path) -> None:
    questions = Benchmark.load(some)
    digest = questions.question("bio02").digest
    changed = questions.with_questions([evolve(questions.question("bio02"), raw_answer="23")])
    assert changed.question("bio02").digest != digest
    assert changed.digest != questions.digest
    same = questions.with_questions([evolve(questions.question("bio02"), keywords=("cells",), finished=False)])
    assert same.digest == questions.digest
