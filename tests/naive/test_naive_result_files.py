"""Files and databases of results: no text runs, no item is lost for its id, every trait is there, later fields break
nothing."""

from __future__ import annotations

import csv
import json
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from karenina_results.columns import RESULT
from karenina_results.formats.csv_file import CsvFile, read_rows
from karenina_results.formats.json_file import JsonFile
from karenina_results.sinks.sqlite import SqliteFile
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.convert import structure
from karenina_core.values.result import GenerationPart, MetadataPart

LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    max_examples=25,
    phases=(Phase.explicit, Phase.generate),
)
ME = ModelIdentity("x", "m")


def result(text: str = "", question: str = "q", rubric: RubricPart | None = None) -> VerificationResult:
    metadata = MetadataPart(
        question_id=question, template_id="t", result_id="0a", question_text="?", answering=ME, parsing=ME
    )
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=text), rubric=rubric)


# What a model answers never runs in a spreadsheet, and comes back as it was

Tabular = tuple[Callable[[VerificationResult, Path], None], Callable[[Path], Any]]
"""Writes a table of one result; reads the answer in it."""


def write_naively(one: VerificationResult, path: Path) -> None:
    columns = RESULT.columns_for([one])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in columns])
        writer.writerows(RESULT.written_rows([one], columns))


def read_naively(path: Path) -> Any:
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))["raw_llm_response"]


def write_with_apostrophes(one: VerificationResult, path: Path) -> None:
    """What is dangerous gets an apostrophe; one of its own does not."""
    text = one.generation.raw_llm_response
    marked = f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    write_naively(evolve(one, generation=GenerationPart(raw_llm_response=marked)), path)


OURS: Tabular = (
    lambda one, path: CsvFile().write([one], path, {}),
    lambda path: next(read_rows(path))["raw_llm_response"],
)
NAIVE: Tabular = (write_naively, read_naively)
HALF: Tabular = (write_with_apostrophes, lambda path: read_naively(path).removeprefix("'"))


def answers_are_inert_and_come_back(table: Tabular) -> None:
    write, read = table

    @LAW
    @given(st.text(st.sampled_from("=+-@'\ta1 "), max_size=4))
    @example("=1+1")
    @example("'quoted'")
    @example(" =1+1")
    def law(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.csv"
            write(result(text), path)
            assert read(path) == text
            with path.open(encoding="utf-8", newline="") as file:
                cells = next(row for number, row in enumerate(csv.reader(file)) if number == 1)
        assert not any(cell.lstrip().startswith(("=", "+", "@")) or cell.startswith(("\t", "-")) for cell in cells)

    law()


def test_answers_in_a_csv_are_inert_and_come_back() -> None:
    answers_are_inert_and_come_back(OURS)


@pytest.mark.parametrize("table", [NAIVE, HALF], ids=["plain", "apostrophes by half"])
def test_the_law_rejects_tables_that_run_or_change_answers(table: Tabular) -> None:
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        answers_are_inert_and_come_back(table)


# Every item is there under its own id, with traits of every type

Database = Callable[[Sequence[VerificationResult], Path], None]


def ours_in_a_database(results: Sequence[VerificationResult], path: Path) -> None:
    SqliteFile().write(results, path, {})


def ids_of_32_characters(results: Sequence[VerificationResult], path: Path) -> None:
    """A column for ids that were hashes once."""
    cut = [evolve(r, metadata=evolve(r.metadata, question_id=r.metadata.question_id[:32])) for r in results]
    SqliteFile().write(cut, path, {})


def without_agentic_traits(results: Sequence[VerificationResult], path: Path) -> None:
    """A view that lists the types of traits that there were when it was made."""
    SqliteFile().write(results, path, {})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM result_traits WHERE trait_type = 'agentic'")
        connection.commit()


def ids_and_traits_are_kept(write: Database) -> None:
    rubric = RubricPart(
        rubric_evaluation_performed=True,
        llm_trait_scores={"l": 1},
        regex_trait_scores={"r": True},
        callable_trait_scores={"c": 0.5},
        agentic_trait_scores={"a": 2},
        extra_trait_scores={"citations": {"e": [1]}},
    )
    urn = f"urn:uuid:question-{'long-' * 60}1"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        write([result(question=urn, rubric=rubric)], path)
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(
                "SELECT question_id, trait_name FROM rubric_traits ORDER BY trait_name"
            ).fetchall()
    assert rows == [(urn, name) for name in "acelr"]


def test_ids_of_any_length_and_traits_of_every_type_are_kept() -> None:
    ids_and_traits_are_kept(ours_in_a_database)


@pytest.mark.parametrize("write", [ids_of_32_characters, without_agentic_traits])
def test_the_law_rejects_databases_that_cut_ids_or_forget_types(write: Database) -> None:
    with pytest.raises(AssertionError):
        ids_and_traits_are_kept(write)


# A field that a later version adds costs no result

Reader = Callable[[Path], list[VerificationResult]]


def read_ours(path: Path) -> list[VerificationResult]:
    return list(JsonFile().read(path))


def read_strictly(path: Path) -> list[VerificationResult]:
    return [structure(data, VerificationResult) for data in json.loads(path.read_text("utf-8"))["results"]]


def read_what_is_known(path: Path) -> list[VerificationResult]:
    """Drops what it does not know."""
    return [evolve(one, extensions={}) for one in JsonFile().read(path)]


def later_fields_are_kept(read: Reader) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        JsonFile().write([result("BCL2")], path, {})
        document = json.loads(path.read_text("utf-8"))
        document["format_version"] = "2.3"
        document["results"][0]["metadata"]["mood"] = "calm"
        path.write_text(json.dumps(document), "utf-8")
        (one,) = read(path)
    assert evolve(one, extensions={}) == result("BCL2")
    assert "calm" in str(one.extensions)


def test_fields_of_later_versions_cost_nothing() -> None:
    later_fields_are_kept(read_ours)


@pytest.mark.parametrize("read", [read_strictly, read_what_is_known])
def test_the_law_rejects_readers_that_refuse_or_drop_them(read: Reader) -> None:
    with pytest.raises((AssertionError, ValueError)):
        later_fields_are_kept(read)
