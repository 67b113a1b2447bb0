"""Results that no one expects, disks that are full, processes that are killed, and two that do the same at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import karenina_results.formats
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.columns import TABLES
from karenina_results.formats.csv_file import CsvFile, read_rows
from karenina_results.formats.json_file import JsonFile
from karenina_results.frames import frame
from karenina_results.jsonl import JsonLines
from karenina_results.records import result_of
from karenina_results.sinks.files import csv_sink, parquet_sink
from karenina_results.sinks.postgres import Postgres, read_database
from karenina_results.sinks.sqlite import Sqlite, read_file
from karenina_runs.results.exports import export_results, find_format
from karenina_runs.results.sinks import RunInfo, Sinks
from karenina_runs.results.stored import stored_results
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import Karenina, ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import BenchmarkError, PluginError
from karenina_core.values.result import GenerationPart, MetadataPart

APP = Karenina({"formats": karenina_results.formats})
ME = ModelIdentity("x", "m")
SUFFIXES = (".json", ".jsonl", ".csv", ".parquet", ".sqlite")
OK = {"state": "ok", "reason": ""}


def result(number: int = 1, text: str = "BCL2", run_name: str = "r", **parts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q",
        template_id="t",
        result_id=f"{number:016x}",
        question_text="Why?",
        answering=ME,
        parsing=ME,
        run_name=run_name,
    )
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=text), **parts)


def everywhere(value: Any) -> VerificationResult:
    """A result that has a value in all places that take any."""
    return result(
        template=TemplatePart(parsed_gt_response={"f": value}, parsed_llm_response={"f": value}),
        rubric=RubricPart(rubric_evaluation_performed=True, callable_trait_scores={"t": value}, trait_states={"t": OK}),
        deep_judgment=DeepJudgmentPart(extracted_excerpts={"f": [{"text": "x", "search_results": value}]}),
        extensions={"plugin": {"key": value}},
    )


# Values


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


UNWRITABLE = {
    "huge": (10**5000, "whole number of more than 4,200 digits"),
    "nan": (float("nan"), "nan, which is not a number in JSON"),
    "infinite": ([float("-inf")], "-inf, which is not a number in JSON"),
    "deep": (nested(5000), "nested more than 150 levels deep"),
    "circle": (circle(), "nested more than 150 levels deep"),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_value_that_no_file_can_hold_costs_no_export_and_is_a_warning(tmp_path: Path, name: str, suffix: str) -> None:
    value, expected = UNWRITABLE[name]
    file = tmp_path / f"out{suffix}"
    export_results([everywhere(value), result(2)], file, find_format(APP, file))
    if suffix == ".csv":
        assert [row["result_id"] for row in read_rows(file)] == ["0" * 15 + "1", "0" * 15 + "2"]
        return
    odd, plain = stored_results(file, APP)
    assert plain == result(2)
    assert odd.generation == result().generation
    assert any(expected in warning for warning in odd.metadata.warnings)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_value_that_no_file_can_hold_costs_no_table(name: str, backend: str) -> None:
    value, _ = UNWRITABLE[name]
    results = VerificationResultSet([everywhere(value), result(2)])
    for table in TABLES.values():
        frame(table, results, backend)
    assert results.get_summary(times=True)["num_results"] == 2
    rubric = results.get_rubric_results()
    for strategy in ("mean", "majority_vote"):
        assert rubric.aggregate_callable_traits(strategy)


@pytest.mark.parametrize("value", ["7", None, [7], {"a": 7}, 10**400, True])
def test_usage_that_is_no_number_is_not_added_up(value: Any) -> None:
    """Files of other tools may hold anything."""
    rows = [{"calls": 1, "input_tokens": n, "seconds": n, "cost_usd": n, "attempts": n} for n in (2, value)]
    results = VerificationResultSet(
        evolve(result(n), generation=GenerationPart(usage_metadata=usage))
        for n, usage in enumerate({"generation": row, "total": row} for row in rows)
    )
    usage = results.usage_by_task()["generation"]
    assert (usage["calls"], usage["input_tokens"], usage["seconds"], usage["cost_usd"]) == (2, 2, 2.0, None)
    summary = results.get_summary()
    assert (summary["calls"], summary["cost_usd"], summary["tokens"]["input"]) == (2, None, 2)


@given(st.lists(strategies.results(), max_size=2), st.sampled_from(sorted(TABLES)))
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_all_packages_show_the_same_cells(found: list[VerificationResult], name: str) -> None:
    """`value` cells are Python values in pandas and JSON text elsewhere; all others are equal as they are."""
    table, results = TABLES[name], VerificationResultSet(found)
    columns = table.columns_for(results)
    pandas = frame(table, results, "pandas")
    polars = frame(table, results, "polars")
    arrow = frame(table, results, "pyarrow")
    assert list(pandas.columns) == polars.columns == arrow.column_names == [column.name for column in columns]
    for column in columns:
        others = arrow.column(column.name).to_pylist()
        assert polars[column.name].to_list() == others
        own = [None if value is None or repr(value) == "<NA>" else value for value in pandas[column.name].tolist()]
        if column.type == "value":
            others = [None if text is None else json.loads(text) for text in others]
        assert repr(own) == repr(others), column.name


def test_a_huge_text_takes_hardly_more_memory_than_it_is_long(tmp_path: Path) -> None:
    """One with many quotation marks and line breaks, as code in an answer has them."""
    text = '"a"\n' * 500_000
    CsvFile().write([result(text=text)], tmp_path / "file", {})
    began = time.process_time()
    tracemalloc.start()
    try:
        (row,) = read_rows(tmp_path / "file")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert row["raw_llm_response"] == text
    assert peak < 40 * len(text)
    assert time.process_time() - began < 10


# Documents


@pytest.mark.parametrize(
    ("tail", "complaint"),
    [("{}", "expected the end, got '{'"), ("]", "expected the end"), ("\0", "expected the end")],
)
def test_what_follows_a_document_is_not_passed_over(tmp_path: Path, tail: str, complaint: str) -> None:
    JsonFile().write([result()], tmp_path / "file", {})
    with (tmp_path / "file").open("a") as file:
        file.write(f"  \n{tail}")
    with pytest.raises(BenchmarkError, match=complaint):
        list(JsonFile().read(tmp_path / "file"))


def test_a_document_that_is_nested_too_deeply_is_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text('{"format_version":"2.2","results":[' + "[" * 100_000)
    with pytest.raises(BenchmarkError, match="nested too deeply"):
        list(JsonFile().read(tmp_path / "file.json"))
    (tmp_path / "file.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(BenchmarkError, match="line 1: not a result"):
        list(VerificationResultSet.load(tmp_path / "file.jsonl", APP))
    with pytest.raises(ValueError, match="nested too deeply"):
        result_of("[" * 100_000)


def test_damage_is_found_where_it_is_without_reading_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("w") as document:
        document.write('{"format_version":"2.2","results":[{"metadata":{"question_id" oops}}')
        for _ in range(40):
            document.write("," + json.dumps({"x": "y" * 1_000_000}))
        document.write("]}")
    tracemalloc.start()
    try:
        with pytest.raises(BenchmarkError, match="Expecting ':' delimiter"):
            list(JsonFile().read(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


# Killed, full, at the same time

EXPORT = """
import resource, signal, sys, time
from pathlib import Path
import karenina_results.formats
from karenina_core import Karenina
from karenina_core.errors import KareninaError
from karenina_runs.results.exports import export_results, find_format
from karenina_runs.results.stored import stored_results

source, target, most, wait = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
app = Karenina({"formats": karenina_results.formats})
if most:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

class Slow:
    def __iter__(self):
        for number, one in enumerate(stored_results(source, app)):
            if wait and number == 40:
                print("half", flush=True)
                time.sleep(wait)
            yield one

try:
    export_results(Slow(), target, find_format(app, target))
except KareninaError as error:
    print(error)
    sys.exit(5)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("run") / "results.jsonl"
    lines = [result(number, text=os.urandom(1_000).hex()) for number in range(60)]
    export_results(lines, file, find_format(APP, file))
    return file


def command(source: Path, target: Path, most: int = 0, wait: float = 0) -> list[str]:
    return [sys.executable, "-c", EXPORT, str(source), str(target), str(most), str(wait)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """JSON is written as CSV is, by `open`."""
    if "target" in metafunc.fixturenames:
        suffixes = SUFFIXES if metafunc.config.getoption("--long", default=False) else SUFFIXES[2:]
        metafunc.parametrize("target", suffixes, indirect=True)


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of any format that was there before."""
    target = tmp_path / f"out{request.param}"
    target.write_text("before")
    return target


def test_a_process_that_is_killed_leaves_the_file_that_was_there(source: Path, target: Path) -> None:
    with subprocess.Popen(command(source, target, wait=60), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    assert target.read_text() == "before"
    export_results(stored_results(source, APP), target, find_format(APP, target))
    if target.suffix != ".csv":
        assert list(stored_results(target, APP)) == list(stored_results(source, APP))


def test_a_full_disk_is_reported_and_leaves_the_file_that_was_there(source: Path, target: Path) -> None:
    ran = subprocess.run(command(source, target, most=30_000), capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (5, "")
    assert "cannot be written" in ran.stdout
    assert "choose another place" in ran.stdout
    assert [(path.name, path.read_text()) for path in target.parent.iterdir()] == [(target.name, "before")]


class Waits:
    """A format that writes a letter, and continues when it is signalled to."""

    name = "waits"
    suffixes = (".waits",)

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        with path.open("w") as file:
            file.write(self.letter)
            file.flush()
            self.begun.set()
            assert self.go_on.wait(30)
            file.write(self.letter)


def test_two_exports_to_one_file_never_mix(tmp_path: Path) -> None:
    """The file is always that of one of them, and whole."""
    file, first, second = tmp_path / "out.waits", Waits("a"), Waits("b")
    threads = [threading.Thread(target=export_results, args=([], file, one)) for one in (first, second)]
    for thread, one in zip(threads, (first, second), strict=True):
        thread.start()
        assert one.begun.wait(30)
    for thread, one in zip(threads, (first, second), strict=True):
        one.go_on.set()
        thread.join(30)
        assert file.read_text() == one.letter * 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.waits"]


# Sinks

Make = Callable[[str], Any]
TABLES_OF_FILES = pytest.mark.parametrize("make", [csv_sink, parquet_sink])


def run_info(name: str) -> RunInfo:
    return RunInfo(run_name=name, run_dir=None, benchmark="b", items=2)


def write(make: Make, target: str, name: str, *results: VerificationResult) -> Mapping[str, str]:
    async def through() -> Mapping[str, str]:
        sinks = Sinks({"sink": make(target)})
        await sinks.open(run_info(name))
        for one in results:
            await sinks.write(one)
        await sinks.close({"run": name})
        return sinks.failures

    return asyncio.run(through())


@pytest.mark.parametrize("make", [JsonLines, csv_sink, parquet_sink, Sqlite, Postgres])
def test_another_result_of_the_same_id_is_refused_and_not_passed_over(
    request: pytest.FixtureRequest, tmp_path: Path, make: Make
) -> None:
    """Two runs of one name have the same ids: the second one must not seem to be stored."""
    target = request.getfixturevalue("postgres") if make is Postgres else str(tmp_path / "results")
    first, other = result(1, "first"), result(1, "other")
    assert write(make, target, "r", first, first) == {}
    assert write(make, target, "r", first, result(2)) == {}, "the same results may come again"
    (failure,) = write(make, target, "r", other, result(3)).values()
    assert "another result with the id 0000000000000001 already exists, from a run of the same name (r)" in failure
    assert "give this run another name" in failure
    if make in (Sqlite, Postgres):
        found = read_database(target) if make is Postgres else read_file(Path(target))
        assert list(found) == [first, result(2)]


@TABLES_OF_FILES
def test_two_runs_that_write_to_one_table_at_once_are_kept_apart(tmp_path: Path, make: Make) -> None:
    """Else one of them would take the other's unfinished results away."""
    target = str(tmp_path / "results")

    async def through() -> None:
        one, other = make(target), make(target)
        await one.open(run_info("one"))
        with pytest.raises(PluginError, match=r"another run is writing to .*; give each run a file of its own"):
            await other.open(run_info("other"))
        await one.write(result(1))
        await one.close({})
        await other.open(run_info("other"))
        await other.write(result(2))
        await other.close({})

    asyncio.run(through())
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert write(make, target, "r", result(3)) == {}


@TABLES_OF_FILES
def test_a_foreign_file_is_refused_and_nothing_is_left_beside_it(tmp_path: Path, make: Make) -> None:
    (tmp_path / "results").write_text("my,own\r\n1,2\r\n")
    with pytest.raises(BenchmarkError):
        asyncio.run(make(str(tmp_path / "results")).open(run_info("r")))
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@TABLES_OF_FILES
def test_a_table_of_several_runs_says_of_which_one_a_row_is(tmp_path: Path, make: Make) -> None:
    target = tmp_path / "results"
    for number, name in enumerate(("one", "two"), 1):
        assert write(make, str(target), name, result(number, run_name=name)) == {}
    if make is csv_sink:
        found = [(row["run_name"], row["job_id"]) for row in read_rows(target)]
    else:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(target, columns=["run_name", "job_id"])
        found = [(row["run_name"], row["job_id"]) for row in table.to_pylist()]
    assert found == [("one", "one"), ("two", "two")]
