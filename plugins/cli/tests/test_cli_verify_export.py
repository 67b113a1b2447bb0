"""`karenina verify --export FILE` and `--sink NAME:TARGET`: nothing is paid for that could not be written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karenina_core import VerificationResultSet

Make = Callable[..., Any]
MODELS = ("--answering-interface", "manual", "--answering-model", "m", "--parsing-interface", "manual")


@pytest.fixture
def verify(run: Make, write_benchmark: Make, write_answers: Make, tmp_path: Path) -> Make:
    """`verify("--export", ...)` of two questions with recorded answers, into `run`."""

    def invoke(*more: object) -> Any:
        traces = ("--manual-traces", write_answers(q0="Paris", q1="Rome"))
        judge = ("--parsing-model", "m")
        return run("verify", write_benchmark("q0", "q1"), *MODELS, *judge, *traces, "--out", tmp_path / "run", *more)

    return invoke


def test_every_file_is_written_when_the_run_is_done(verify: Make, tmp_path: Path) -> None:
    files = [tmp_path / f"out.{suffix}" for suffix in ("json", "csv", "sqlite", "jsonl")]
    done = verify(*(word for file in files for word in ("--export", file)))
    assert done.exit_code == 0, done.stderr
    results = list(VerificationResultSet.load(tmp_path / "run"))
    assert len(results) == 2
    for file in files:
        assert f"written: {file}" in done.stderr
        if file.suffix != ".csv":
            assert list(VerificationResultSet.load(file)) == results


@pytest.mark.parametrize(
    ("file", "complaint"),
    [("out.xyz", "no file format has the suffix '.xyz'"), ("nowhere/out.json", "there is no folder")],
)
def test_a_file_that_could_not_be_written_stops_the_run_before_it_begins(
    verify: Make, tmp_path: Path, file: str, complaint: str
) -> None:
    done = verify("--export", tmp_path / file)
    assert done.exit_code == 1
    assert complaint in done.stderr
    assert not (tmp_path / "run").exists()


def test_nothing_that_the_run_reads_or_writes_is_replaced(verify: Make, tmp_path: Path) -> None:
    """A benchmark that is overwritten with results is gone."""
    done = verify()
    assert done.exit_code == 0, done.stderr
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    benchmark = next(path for path in before if path.suffix == ".jsonld")
    (tmp_path / "link.json").symlink_to(benchmark)
    for more in (
        ("--export", tmp_path / "link.json"),
        ("--export", tmp_path / "run" / "manifest.json"),
        ("--export", tmp_path / "both.csv", "--sink", f"csv:{tmp_path / 'both.csv'}"),
    ):
        done = verify(*more, "--out", tmp_path / "again")
        assert done.exit_code == 1, more
        assert "choose another file" in done.stderr
        assert not (tmp_path / "again").exists()
    assert {path: path.read_bytes() for path in before} == before


def test_a_file_that_cannot_be_written_in_the_end_is_reported_and_costs_no_result(verify: Make, tmp_path: Path) -> None:
    long = "taken" * 50 + ".json"  # the name that it has until it is complete is longer than names may be
    done = verify("--export", tmp_path / long, "--export", tmp_path / "fine.json")
    assert done.exit_code == 3
    assert f"{long} was not written; the results are in" in done.stderr
    assert len(VerificationResultSet.load(tmp_path / "run")) == 2
    assert (tmp_path / "fine.json").exists()


def test_standard_output_stays_one_document(verify: Make, tmp_path: Path) -> None:
    done = verify("--export", tmp_path / "out.json", "--json", "--quiet")
    assert json.loads(done.stdout)["outcomes"]
    assert "written" not in done.stderr


def test_a_sink_gets_the_results_while_they_are_made(verify: Make, tmp_path: Path) -> None:
    done = verify("--sink", f"sqlite:{tmp_path / 'results.db'}", "--sink", f"csv:{tmp_path / 'results.csv'}")
    assert done.exit_code == 0, done.stderr
    with sqlite3.connect(tmp_path / "results.db") as connection:
        rows = connection.execute("SELECT question_id, outcome FROM results ORDER BY question_id").fetchall()
    connection.close()
    assert rows == [("q0", "passed"), ("q1", "failed")]
    assert (tmp_path / "results.csv").read_bytes().count(b"\r\n") == 3


def test_the_password_of_a_sink_is_neither_shown_nor_written(verify: Make, tmp_path: Path) -> None:
    done = verify("--sink", "postgres:postgresql://me:canary-secret@127.0.0.1:1/db?connect_timeout=2")
    assert done.exit_code == 1
    assert "postgresql://me:[redacted]@127.0.0.1:1/db" in done.stderr
    assert "canary-secret" not in done.output
    for file in (tmp_path / "run").rglob("*"):
        assert b"canary-secret" not in file.read_bytes()
