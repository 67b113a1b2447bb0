"""Files of results: nothing is lost, they are there as a whole or not at all, and any number of results fits."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import karenina_results.formats
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.formats import json_file, parquet_file
from karenina_results.formats.csv_file import CsvFile, read_rows
from karenina_results.formats.json_file import JsonFile
from karenina_results.formats.parquet_file import ParquetFile
from karenina_results.jsonl import JsonLinesFile
from karenina_results.sinks.sqlite import SqliteFile
from karenina_runs.results.exports import export_results, find_format
from karenina_runs.results.stored import stored_results
from karenina_testing import strategies

from karenina_core import Karenina, ModelIdentity, VerificationResult, VerificationResultSet, hookimpl
from karenina_core.errors import BenchmarkError, ConfigError, PluginError, UnknownName
from karenina_core.values.result import GenerationPart, MetadataPart

WHOLE = [JsonFile(), JsonLinesFile(), ParquetFile(), SqliteFile()]
ME = ModelIdentity("x", "m")
AT = "2026-01-31T12:00:00+01:00"


@pytest.fixture(scope="module")
def app() -> Karenina:
    return Karenina({"formats": karenina_results.formats})


def numbered(results: Iterable[VerificationResult]) -> list[VerificationResult]:
    return [evolve(r, metadata=evolve(r.metadata, result_id=f"{n:016x}")) for n, r in enumerate(results, 1)]


def result(number: int = 1, text: str = "BCL2", **facts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q",
        template_id="t",
        result_id=f"{number:016x}",
        question_text="Why?",
        answering=ME,
        parsing=ME,
        timestamp=AT,
        **facts,
    )
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=text))


# What goes in comes out


@given(results=st.lists(strategies.results(), max_size=3).map(numbered))
@settings(deadline=None, max_examples=settings().max_examples // 3)
def test_nothing_is_lost_in_any_format(
    tmp_path_factory: pytest.TempPathFactory, results: list[VerificationResult]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for format_ in WHOLE:
        file = folder / f"results{format_.suffixes[0]}"
        format_.write(results, file, {})
        assert list(format_.read(file)) == results, format_.name


@pytest.mark.parametrize("format_", WHOLE, ids=lambda f: f.name)
def test_what_utf8_cannot_hold_is_not_lost_either(tmp_path: Path, format_: Any) -> None:
    odd = result(text="lone \ud800 surrogate, \0, \u2028")
    format_.write([odd], tmp_path / "file", {})
    assert list(format_.read(tmp_path / "file")) == [odd]


@pytest.mark.parametrize("format_", WHOLE, ids=lambda f: f.name)
def test_no_results_are_a_file_too(tmp_path: Path, format_: Any) -> None:
    format_.write([], tmp_path / "file", {})
    assert list(format_.read(tmp_path / "file")) == []


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet", ".sqlite", ".db", ".JSON"])
def test_a_result_set_is_loaded_from_every_format_by_its_suffix(tmp_path: Path, app: Karenina, suffix: str) -> None:
    file = tmp_path / f"results{suffix}"
    written = [result(1), result(2, "two\nlines")]
    export_results(written, file, find_format(app, file))
    loaded = VerificationResultSet.load(file, app=app)
    assert list(loaded) == written
    assert loaded.run_dir == tmp_path


def test_a_file_without_whole_results_says_what_to_load_instead(tmp_path: Path, app: Karenina) -> None:
    file = tmp_path / "results.csv"
    export_results([result()], file, find_format(app, file))
    with pytest.raises(BenchmarkError, match="do not hold whole results; give the run directory"):
        VerificationResultSet.load(file, app=app)


# Any number of results


class Counted:
    """So many results, none of which is kept."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[VerificationResult]:
        return (result(n, "x" * 5_000) for n in range(self.number))


@pytest.mark.parametrize("format_", [*WHOLE, CsvFile("full")], ids=lambda f: f.name)
def test_more_results_need_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: Any) -> None:
    """What is handled at a time is made small, so that few results already are many."""
    monkeypatch.setattr("karenina_results.formats.parquet_file.ROWS", 5)
    monkeypatch.setattr("karenina_results.sinks.sqlite.BATCH", 5)
    monkeypatch.setattr("karenina_results.sinks.store.PAGE", 5)
    monkeypatch.setattr("karenina_results.formats.json_file.CHUNK", 10_000)

    def peak(number: int) -> int:
        file = tmp_path / f"{number}{format_.suffixes[0]}"
        tracemalloc.start()
        try:
            format_.write(Counted(number), file, {})
            for _ in (read_rows if format_.name == "csv" else format_.read)(file):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # imports, and what is made once
    few, many = peak(20), peak(100)
    assert many < few + 80 * 1_000, "not even a fifth of each result may be kept"


# Version 2.2 of the document


def test_the_document_says_of_which_run_it_is(tmp_path: Path) -> None:
    manifest = {
        "run_name": "mine",
        "status": "completed",
        "config": {
            "answering_models": [
                {"model_name": "a", "model_provider": "p", "interface": "i", "temperature": 0.5, "max_tokens": 3}
            ],
            "parsing_models": [],
        },
    }
    failed = result(2, outcome="error", completed_without_errors=False, execution_time=2.5)
    JsonFile().write([result(), failed], tmp_path / "file", manifest)
    document = json.loads((tmp_path / "file").read_text("utf-8"))
    assert list(document) == ["format_version", "metadata", "shared_data", "results"]
    assert document["format_version"] == "2.2"
    assert document["shared_data"] == {"rubric_definition": None}
    about = document["metadata"]
    assert about["export_timestamp"].endswith(" UTC")
    assert about["job_id"] == about["run_name"] == "mine"
    shown = {"provider": "p", "name": "a", "temperature": 0.5, "interface": "i"}
    assert about["verification_config"] == {"answering_models": [shown], "parsing_models": []}
    assert about["job_summary"] == {
        "total_questions": 2,
        "successful_count": 1,
        "failed_count": 1,
        "start_time": "2026-01-31T11:00:00+00:00",
        "end_time": "2026-01-31T11:00:02.500000+00:00",
        "total_duration": 2.5,
        "is_complete": True,
    }


def test_without_a_manifest_the_models_are_those_of_the_results(tmp_path: Path) -> None:
    JsonFile().write([result()], tmp_path / "file", {})
    about = json.loads((tmp_path / "file").read_text("utf-8"))["metadata"]
    assert about["verification_config"]["parsing_models"] == [
        {"provider": None, "name": "m", "temperature": None, "interface": "x"}
    ]
    assert about["job_summary"]["is_complete"] is None


def test_every_result_has_a_line_of_its_own(tmp_path: Path) -> None:
    JsonFile().write([result(1), result(2)], tmp_path / "file", {})
    lines = (tmp_path / "file").read_text("utf-8").split("\n")
    found = [
        json.loads(line.rstrip(","))["metadata"]["result_id"] for line in lines if line.startswith('{"metadata":{"q')
    ]
    assert found == [f"{number:016x}" for number in (1, 2)]


# Other versions, other tools

OLD = {
    "metadata": {
        "question_id": "urn:uuid:question-1",
        "template_id": "no_template",
        "completed_without_errors": True,
        "question_text": "Why?",
        "keywords": None,
        "answering_model": "openai/gpt-4",
        "parsing_model": "gpt-4-mini",
        "answering_replicate": 2,
        "parsing_replicate": 2,
        "execution_time": 1,
        "timestamp": AT,
        "run_name": "old",
        "retry_counts": {"timeout": {"used": 2, "budget": 3}},
        "scenario_id": None,
        "node": "n1",
    },
    "template": {
        "raw_llm_response": "BCL2.",
        "trace_messages": [],
        "answering_mcp_servers": None,
        "response_timeout_partial": True,
        "parsed_llm_response": {"target": "BCL2"},
        "verify_result": True,
        "abstention_check_performed": True,
        "abstention_detected": False,
        "dynamic_parsing_performed": True,
        "parsing_effort": "high",
    },
    "rubric": {"rubric_evaluation_performed": True, "dynamic_rubric_skipped_traits": ["tone"]},
}


def document(*results: Any, version: str = "2.1", **more: Any) -> str:
    return json.dumps({"format_version": version, "metadata": {}, **more, "results": list(results)}, indent=2)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.7"])
def test_results_of_other_versions_are_read(tmp_path: Path, version: str) -> None:
    (tmp_path / "file").write_text(document(OLD, version=version), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    metadata = read.metadata
    assert (metadata.outcome, metadata.replicate, metadata.error, metadata.keywords) == ("passed", 2, None, ())
    assert (metadata.answering.model_name, metadata.parsing.model_name) == ("openai/gpt-4", "gpt-4-mini")
    assert (metadata.retry_counts, len(metadata.result_id)) == ({"timeout": 2}, 16)
    assert read.generation.raw_llm_response == "BCL2."
    assert read.generation.text_flags == ("truncated",)
    assert read.checks.abstention_check_performed is True
    assert read.template is not None
    assert read.template.parsed_llm_response == {"target": "BCL2"}
    assert read.rubric is not None
    assert read.rubric.dynamic_rubric_skipped_traits == {"tone": ""}


def test_what_has_no_place_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(document(OLD), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert read.extensions == {"unread": {"metadata.node": "n1", "template.parsing_effort": "high"}}
    assert read.template.dynamic_parsing_performed
    JsonFile().write([read], tmp_path / "again", {})
    assert list(JsonFile().read(tmp_path / "again")) == [read]


def test_caveats_that_do_not_follow_from_the_rest_are_kept(tmp_path: Path) -> None:
    result = {**OLD, "metadata": {**OLD["metadata"], "caveats": ["retries_used", "parse_decision_malformed", 7]}}
    (tmp_path / "file").write_text(document(result), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert read.metadata.caveats == ("parse_decision_malformed",)
    assert read.extensions["unread"]["metadata.caveats"] == [7]


def test_fields_that_a_later_version_adds_cost_nothing(tmp_path: Path) -> None:
    JsonFile().write([result()], tmp_path / "file", {})
    text = (tmp_path / "file").read_text("utf-8")
    (tmp_path / "file").write_text(text.replace('{"question_id"', '{"mood":"calm","question_id"', 1), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert evolve(read, extensions={}) == result()
    assert read.extensions == {"unread": {"metadata.mood": "calm"}}


def test_a_value_of_another_type_costs_itself_and_no_result(tmp_path: Path) -> None:
    """Other tools store a granular verdict of any type, and null where nothing is a list or a table here."""
    result = {
        **OLD,
        "metadata": {**OLD["metadata"], "keywords": None, "few_shot_example_count": "two", "scenario_turn": None},
        "template": {**OLD["template"], "verify_granular_result": {"target": 1}, "field_scores": {"target": "high"}},
        "rubric": {"agentic_trait_scores": {"cited": None}, "agentic_trait_extraction_metadata": {"cited": {"a": 1}}},
        "deep_judgment": {"deep_judgment_mode": "full", "attributes_without_excerpts": None},
        "deep_judgment_rubric": {"deep_judgment_rubric_scores": None, "traits_without_valid_excerpts": None},
    }
    (tmp_path / "file").write_text(document(result), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert read.template is not None
    assert (read.template.verify_granular_result, read.template.field_scores) == (None, None)
    assert read.metadata.few_shot_example_count == 0
    assert read.extensions["unread"] == {
        **{k: v for k, v in read.extensions["unread"].items() if k in ("metadata.node", "template.parsing_effort")},
        "metadata.few_shot_example_count": "two",
        "template.verify_granular_result": {"target": 1},
        "template.field_scores": {"target": "high"},
        "rubric.agentic_trait_extraction_metadata": {"cited": {"a": 1}},
    }
    for view in ("template", "rubric", "judgment", "rubric_judgments"):
        VerificationResultSet([read]).view(view).to_dataframe()


def test_what_a_result_cannot_be_without_is_named(tmp_path: Path) -> None:
    result = {**OLD, "metadata": {**OLD["metadata"], "question_id": 7}}
    (tmp_path / "file").write_text(document(result), "utf-8")
    with pytest.raises(BenchmarkError, match=r"question_id: expected a text, got 7$"):
        list(JsonFile().read(tmp_path / "file"))


def failure(group: str, category: str) -> dict[str, Any]:
    return {"failure": {"group": group, "category": category, "reason": "why"}}


@pytest.mark.parametrize(
    ("metadata", "template", "outcome"),
    [
        (
            failure("content", "content"),
            {"verify_result": False},
            ("failed", None),
        ),
        (
            failure("autofail", "recursion_limit"),
            {},
            ("auto_failed", "RecursionLimitAutoFail"),
        ),
        (failure("abstained", "abstention"), {}, ("abstained", None)),
        (failure("abstained", "sufficiency"), {}, ("insufficient", None)),
        (failure("retry", "rate_limit"), {}, ("error", "rate_limited")),
        (failure("system", "odd"), {}, ("error", "odd")),
        ({"completed_without_errors": False}, {}, ("error", "unknown")),
        ({"error": "gone"}, {"verify_result": True}, ("error", "unknown")),
        ({}, {"verify_result": False}, ("failed", None)),
        ({}, {"verify_result": False, "abstention_override_applied": True}, ("abstained", None)),
        ({}, {"verify_result": False, "sufficiency_override_applied": True}, ("insufficient", None)),
        ({}, {}, ("skipped", "no verdict is stored")),
    ],
)
def test_outcomes_follow_from_what_other_tools_say(
    tmp_path: Path, metadata: Mapping[str, Any], template: Mapping[str, Any], outcome: tuple[str, str | None]
) -> None:
    """An error is never taken for a wrong answer, nor the other way round."""
    old = {
        "metadata": {"question_id": "q", "answering_model": "a", "parsing_model": "p", **metadata},
        "template": template,
    }
    (tmp_path / "file").write_text(document(old), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert (read.metadata.outcome, read.metadata.outcome_detail) == outcome
    assert read.metadata.completed_without_errors is (outcome[0] != "error")


def test_scores_without_a_verdict_are_scored(tmp_path: Path) -> None:
    old = {
        "metadata": {"question_id": "q", "answering": {"interface": "i", "model_name": "a", "tools": []}},
        "rubric": {"llm_trait_scores": {"clear": True}, "rubric_evaluation_performed": True},
    }
    (tmp_path / "file").write_text(document(old), "utf-8")
    (read,) = JsonFile().read(tmp_path / "file")
    assert (read.metadata.outcome, read.metadata.evaluation_mode) == ("scored", "rubric_only")
    assert read.metadata.answering == ModelIdentity("i", "a")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "ends too early"),
        ("[]", "expected '{'"),
        ("{}", "neither results nor"),
        ('{"format_version": "2.2", "results": [', "ends too early|Expecting value"),
        ('{"format_version": "2.2", "results": [{"metadata": {}}]}', "after 0 results"),
        ('{"format_version": "1.0", "results": []}', "format_version is '1.0'"),
        ('{"format_version": "2.2", "results": [3]}', "after 0 results"),
        ('{"a" 1}', "expected ':'"),
    ],
)
def test_damaged_documents_say_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "file").write_text(text, "utf-8")
    with pytest.raises(BenchmarkError, match=complaint):
        list(JsonFile().read(tmp_path / "file"))


def test_a_document_that_was_cut_off_says_how_much_could_be_read(tmp_path: Path) -> None:
    JsonFile().write([result(1), result(2)], tmp_path / "file", {})
    text = (tmp_path / "file").read_text("utf-8")
    (tmp_path / "file").write_text(text[:-100], "utf-8")
    read = JsonFile().read(tmp_path / "file")
    assert next(read) == result(1)
    with pytest.raises(BenchmarkError, match="after 1 result:"):
        next(read)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.lists(VALUES, max_size=5), st.integers(1, 40))
@settings(deadline=None)
def test_a_document_is_read_the_same_in_pieces_of_any_size(head: dict[str, Any], listed: list[Any], size: int) -> None:
    """Also where a number, a word or an escape is cut in two."""
    head = {name: value for name, value in head.items() if name not in ("results", "last")}
    text = json.dumps({**head, "results": listed, "last": 12}, indent=size % 3 or None)
    before, json_file.CHUNK = json_file.CHUNK, size
    try:
        found = list(json_file.elements(io.StringIO(text), "results"))
    finally:
        json_file.CHUNK = before
    assert found == [*head.items(), *(("results", value) for value in listed), ("last", 12)]


# Whole or not at all


class Breaks:
    """A format that fails after the first result."""

    name = "breaks"
    suffixes = (".breaks",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        with path.open("w") as file:
            for one in results:
                file.write(one.metadata.result_id)
                raise RuntimeError("broken")


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "mine.breaks"
    file.write_text("before")
    with pytest.raises(RuntimeError, match="broken"):
        export_results([result()], file, Breaks())
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_results_that_cannot_be_read_leave_no_file(tmp_path: Path, app: Karenina) -> None:
    lines = tmp_path / "results.jsonl"
    JsonLinesFile().write([result(1), result(2)], lines, {})
    text = lines.read_text("utf-8")
    lines.write_text(text.replace('"outcome":"skipped"', '"outcome":"odd"'), "utf-8")
    for suffix in (".json", ".csv", ".parquet", ".sqlite"):
        file = tmp_path / f"out{suffix}"
        with pytest.raises(BenchmarkError, match="line 1: not a result"):
            export_results(stored_results(lines, app), file, find_format(app, file))
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        export_results([], tmp_path / "nowhere" / "file", JsonFile())


def test_a_database_is_one_file_and_replaces_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"
    for written in ([result(1), result(2)], [result(3)]):
        export_results(written, file, SqliteFile())
    assert list(SqliteFile().read(file)) == [result(3)]
    assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"]


def test_other_databases_and_tables_are_refused(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    sqlite3.connect(tmp_path / "other.db").close()
    with pytest.raises(BenchmarkError, match="give a database that karenina wrote"):
        list(SqliteFile().read(tmp_path / "other.db"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BenchmarkError, match="no column 'result'"):
        list(ParquetFile().read(tmp_path / "other.parquet"))
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(BenchmarkError, match=r"text\.parquet cannot be read"):
        list(ParquetFile().read(tmp_path / "text.parquet"))


# Parquet


def test_parquet_has_typed_columns(tmp_path: Path) -> None:
    import pyarrow.parquet

    ParquetFile().write([result(1, execution_time=1.5)], tmp_path / "file", {"run_name": "mine"})
    table = pyarrow.parquet.read_table(tmp_path / "file")
    (row,) = table.to_pylist()
    kinds = {
        name: str(table.schema.field(name).type) for name in ("question_id", "success", "replicate", "execution_time")
    }
    assert kinds == {"question_id": "string", "success": "bool", "replicate": "int64", "execution_time": "double"}
    assert (row["question_id"], row["success"], row["replicate"], row["execution_time"]) == ("q", None, 1, 1.5)
    assert (row["job_id"], json.loads(row["result"])["metadata"]["question_id"]) == ("mine", "q")


def test_parquet_is_written_in_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet

    assert parquet_file.ROWS == 1000
    monkeypatch.setattr(parquet_file, "ROWS", 10)
    ParquetFile().write([result(n) for n in range(25)], tmp_path / "file", {})
    with pyarrow.parquet.ParquetFile(tmp_path / "file") as file:
        assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [10, 10, 5]


def test_without_pyarrow_parquet_says_how_to_get_it(app: Karenina, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("karenina_results.frames.is_installed", lambda name: False)
    with pytest.raises(PluginError, match=r"pip install 'karenina-results\[pyarrow\]'"):
        find_format(app, Path("x.parquet"))


# Formats of other packages


class Ids:
    """A format that a package brings: ids, one a line."""

    name = "ids"
    suffixes = (".ids",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        path.write_text("".join(f"{one.metadata.result_id}\n" for one in results))

    def read(self, path: Path) -> Iterator[VerificationResult]:
        return (result(int(line, 16)) for line in path.read_text().splitlines())


class Brings:
    def __init__(self, *things: Any) -> None:
        self.things = things

    @hookimpl
    def karenina_register_formats(self, registry: Any) -> None:
        for number, thing in enumerate(self.things):
            registry.add(thing, name=None if not isinstance(thing, str) else f"broken{number}")


def test_a_format_of_another_package_is_found_by_its_suffix(tmp_path: Path) -> None:
    app = Karenina({"ids": Brings(Ids), "broken": Brings("there.is.no.such.module:Format")})
    file = tmp_path / "results.ids"
    export_results([result(7)], file, find_format(app, file))
    assert list(VerificationResultSet.load(file, app=app)) == [result(7)]


def test_an_unknown_format_is_distinct_from_an_unknown_suffix(app: Karenina) -> None:
    with pytest.raises(UnknownName, match=r"no file format is called 'jsn'.*did you mean 'json'"):
        find_format(app, Path("x"), "jsn")
    with pytest.raises(ConfigError, match=r"no file format has the suffix '\.parket'.*did you mean '\.parquet'"):
        find_format(app, Path("x.parket"))
