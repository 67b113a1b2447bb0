"""The sinks sqlite, postgres, csv and parquet keep every promise of a sink, and outlive a crash."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.checks import SINKS
from karenina_results.formats.csv_file import read_rows
from karenina_results.formats.parquet_file import ParquetFile
from karenina_results.jsonl import JsonLines
from karenina_results.sinks.files import csv_sink, parquet_sink
from karenina_results.sinks.postgres import Postgres, read_database
from karenina_results.sinks.sqlite import Sqlite, read_file
from karenina_runs.results.sinks import RunInfo
from karenina_testing import strategies
from karenina_testing.checks import run_checks
from karenina_testing.examples import every

from karenina_core import VerificationResult, VerificationResultSet
from karenina_core.errors import PluginError
from karenina_core.testing import sink_checks

Make = Callable[[str], Any]


def numbered(results: Iterable[VerificationResult], first: int = 1) -> list[VerificationResult]:
    """The same results, no two of them of the same item."""
    return [evolve(r, metadata=evolve(r.metadata, result_id=f"{n:016x}")) for n, r in enumerate(results, first)]


@cache
def examples() -> list[VerificationResult]:
    return numbered(every(strategies.results(), 8))


def info(secrets: Iterable[str] = (), items: int = 8) -> RunInfo:
    return RunInfo(run_name="r", run_dir=None, benchmark="b", items=items, secrets=frozenset(secrets))


def write(sink: Any, results: Iterable[VerificationResult], run: RunInfo | None = None) -> None:
    async def through() -> None:
        await sink.open(run or info())
        for one in results:
            await sink.write(one)
        await sink.close({"outcomes": {}})

    asyncio.run(through())


def rows(target: str) -> list[str]:
    return [row["result_id"] for row in read_rows(Path(target))] if Path(target).exists() else []


def records(target: str) -> list[VerificationResult]:
    return list(ParquetFile().read(Path(target))) if Path(target).exists() else []


# Conformance


def test_sqlite_keeps_every_promise() -> None:
    run_checks(sink_checks(Sqlite, **SINKS["sqlite"]))


def test_csv_keeps_every_promise() -> None:
    run_checks(sink_checks(csv_sink, **SINKS["csv"]))


def test_parquet_keeps_every_promise() -> None:
    run_checks(sink_checks(parquet_sink, **SINKS["parquet"]))


def test_postgres_keeps_every_promise(new_schema: Callable[[], str]) -> None:
    addresses: dict[str, str] = {}

    def address(target: str) -> str:
        return addresses.setdefault(target, new_schema())

    run_checks(sink_checks(lambda target: Postgres(address(target)), lambda target: read_database(address(target))))


# What goes in comes out


@given(st.lists(strategies.results(), max_size=3))
@settings(deadline=None, max_examples=settings().max_examples // 3)
def test_sqlite_loses_nothing(tmp_path_factory: Any, results: list[VerificationResult]) -> None:
    file = tmp_path_factory.mktemp("db") / "results.db"
    write(Sqlite(str(file)), written := numbered(results))
    assert list(read_file(file)) == written


@cache
def one_address(new_schema: Callable[[], str]) -> str:
    write(Postgres(address := new_schema()), [])
    return address


@given(st.lists(strategies.results(), max_size=3))
@settings(deadline=None, max_examples=settings().max_examples // 3)
def test_postgres_loses_nothing(new_schema: Callable[[], str], results: list[VerificationResult]) -> None:
    address = one_address(new_schema)
    before = len(list(read_database(address)))
    written = numbered(results, before + 1)
    write(Postgres(address), written)
    assert list(read_database(address))[before:] == written


@given(st.lists(strategies.results(), min_size=1, max_size=3), st.data())
@settings(deadline=None, max_examples=settings().max_examples // 4)
def test_tables_are_the_same_whether_they_are_written_at_once_or_bit_by_bit(
    tmp_path_factory: Any, results: list[VerificationResult], data: Any
) -> None:
    """Also where a trait first occurs in the second part."""
    folder = tmp_path_factory.mktemp("tables")
    written = numbered(results)
    cut = data.draw(st.integers(0, len(written)))
    for make, read in ((csv_sink, read_rows), (parquet_sink, ParquetFile().read)):
        once, twice = (folder / f"{make.__name__}-{number}" for number in (1, 2))
        write(make(str(once)), written)
        for part in (written[:cut], written[cut - 1 if cut else 0 :]):
            write(make(str(twice)), part)
        assert [comparable(row) for row in read(twice)] == [comparable(row) for row in read(once)]
    assert len(list(folder.iterdir())) == 4, "nothing may be left beside the files"


def comparable(row: Any) -> Any:
    """A row without what says when it was written."""
    return {k: v for k, v in row.items() if k != "export_timestamp"} if isinstance(row, Mapping) else row


# Crashes

CHILD = """
import asyncio, json, os, signal, sys
from karenina_core import Karenina
from karenina_runs.results.sinks import RunInfo
from karenina_results.records import result_of
from karenina_core.plugin.registry import import_string

async def main():
    sink = import_string(sys.argv[1])(sys.argv[2])
    await sink.open(RunInfo(run_name="r", run_dir=None, benchmark="b", items=8))
    for line in sys.stdin:
        await sink.write(result_of(line))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def crash(factory: str, target: str, results: Iterable[VerificationResult]) -> None:
    """A process that is killed after it has written the results, before it closes the sink."""
    from karenina_results.records import portable_record

    ran = subprocess.run(
        [sys.executable, "-c", CHILD, factory, target],
        input="".join(f"{portable_record(result)}\n" for result in results),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr


def test_sqlite_has_every_result_that_was_written_before_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "results.db"
    crash("karenina_results.sinks.sqlite:Sqlite", str(file), examples()[:5])
    assert list(read_file(file)) == examples()[:5]
    write(Sqlite(str(file)), examples())
    assert list(read_file(file)) == examples()


def test_postgres_has_every_result_that_was_written_before_a_crash(postgres: str) -> None:
    crash("karenina_results.sinks.postgres:Postgres", postgres, examples()[:5])
    assert list(read_database(postgres)) == examples()[:5]
    write(Postgres(postgres), examples())
    assert list(read_database(postgres)) == examples()


@pytest.mark.parametrize(
    ("factory", "make", "read"), [("csv_sink", csv_sink, rows), ("parquet_sink", parquet_sink, records)]
)
def test_tables_leave_readable_lines_after_a_crash_and_go_on_with_them(
    tmp_path: Path, factory: str, make: Make, read: Callable[[str], list[Any]]
) -> None:
    file = tmp_path / "results.table"
    crash(f"karenina_results.sinks.files:{factory}", str(file), examples()[:5])
    left = tmp_path / "results.table.partial.jsonl"
    assert list(VerificationResultSet.load(left)) == examples()[:5]
    with left.open("a", encoding="utf-8") as lines:
        lines.write('{"metadata":{"question_id":"cut o')
    write(make(str(file)), examples()[5:])
    assert len(read(str(file))) == len(examples())
    assert [path.name for path in tmp_path.iterdir()] == ["results.table"]


# Resumed runs


def changed(result: VerificationResult, text: str = "of the second attempt") -> VerificationResult:
    return evolve(result, generation=evolve(result.generation, raw_llm_response=text))


def answers(target: str) -> list[tuple[str, str]]:
    """What is in a table of the format csv: ids and answers, in the order of `result_index`."""
    found = list(read_rows(Path(target)))
    assert [row["result_index"] for row in found] == list(range(len(found)))
    return [(row["result_id"], row["raw_llm_response"]) for row in found]


def brief(results: Iterable[VerificationResult]) -> list[tuple[str, str]]:
    return [(result.metadata.result_id, result.generation.raw_llm_response) for result in results]


def stored_in(make: Make, target: str) -> list[tuple[str, str]]:
    if make is csv_sink:
        return answers(target)
    if make is JsonLines:
        return brief(VerificationResultSet.load(target))
    return brief({Sqlite: lambda: read_file(Path(target)), parquet_sink: lambda: records(target)}.get(make, list)())


@cache
def plain() -> list[VerificationResult]:
    """Texts that every format says as they are."""
    return [changed(result, f"answer {number}") for number, result in enumerate(examples())]


@pytest.mark.parametrize("make", [JsonLines, Sqlite, csv_sink, parquet_sink])
def test_a_resumed_run_replaces_what_had_failed_in_its_place(tmp_path: Path, make: Make) -> None:
    target = str(tmp_path / "results.jsonl")
    resumed = evolve(info(), resumed=True)
    write(make(target), plain()[:5])
    again = [plain()[0], changed(plain()[1]), plain()[2], changed(plain()[3]), plain()[4], *plain()[5:]]
    write(make(target), [plain()[4], again[3], *plain()[5:], again[1], again[1]], resumed)
    assert stored_in(make, target) == brief(again)
    write(make(target), again, resumed)
    assert stored_in(make, target) == brief(again)
    third = [changed(again[0], "of the third attempt"), *again[1:]]
    write(make(target), [again[3], third[0]], resumed)
    assert stored_in(make, target) == brief(third)
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()} == {"results.jsonl"}


@pytest.mark.parametrize("make", [JsonLines, Sqlite, csv_sink, parquet_sink])
def test_a_result_may_be_replaced_twice_while_a_run_goes_on(tmp_path: Path, make: Make) -> None:
    target = str(tmp_path / "results.jsonl")
    write(make(target), plain()[:3])
    attempts = [changed(plain()[1], f"attempt {number}") for number in range(3)]
    write(make(target), [*attempts, plain()[3]], evolve(info(), resumed=True))
    assert stored_in(make, target) == brief([plain()[0], attempts[2], plain()[2], plain()[3]])
    if make is JsonLines:
        assert len(Path(target).read_bytes().splitlines()) == 4


@pytest.mark.parametrize("make", [JsonLines, Sqlite, csv_sink, parquet_sink])
def test_a_new_run_of_the_same_name_is_refused_as_before(tmp_path: Path, make: Make) -> None:
    target = str(tmp_path / "results.jsonl")
    write(make(target), plain()[:3])

    async def other() -> None:
        sink = make(target)
        await sink.open(info())
        try:
            with pytest.raises(PluginError, match="another result with the id"):
                await sink.write(changed(plain()[1]))
        finally:
            await sink.close({})

    asyncio.run(other())
    assert brief(plain()[:3]) == stored_in(make, target)


def test_postgres_replaces_what_had_failed_when_a_run_goes_on(postgres: str) -> None:
    write(Postgres(postgres), plain()[:3])
    write(Postgres(postgres), [changed(plain()[1]), plain()[3]], evolve(info(), resumed=True))
    found = brief(read_database(postgres))
    assert found == brief([plain()[0], changed(plain()[1]), plain()[2], plain()[3]])


def test_the_tables_of_a_database_say_nothing_of_what_was_replaced(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.db", tmp_path / "twice.db"
    again = [plain()[0], changed(plain()[1]), *plain()[2:]]
    write(Sqlite(str(once)), again)
    write(Sqlite(str(twice)), plain())
    write(Sqlite(str(twice)), [again[1]], evolve(info(), resumed=True))

    def content(file: Path) -> dict[str, list[Any]]:
        with sqlite3.connect(file) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
        connection.close()
        return {name: rows for name, rows in tables.items() if name != "runs"}

    assert content(twice) == content(once)


def test_a_crash_of_a_resumed_run_loses_neither_the_old_nor_the_new(tmp_path: Path) -> None:
    before, target = tmp_path / "before.jsonl", tmp_path / "results.jsonl"
    write(JsonLines(str(before)), plain()[:3])

    async def crashed() -> None:
        sink = JsonLines(str(before))
        await sink.open(evolve(info(), resumed=True))
        await sink.write(changed(plain()[1]))
        shutil.copy(before, target)
        await sink.close({})

    asyncio.run(crashed())
    assert stored_in(JsonLines, str(target)) == brief([plain()[0], changed(plain()[1]), plain()[2]])
    write(JsonLines(str(target)), [plain()[3]], evolve(info(), resumed=True))
    assert stored_in(JsonLines, str(target)) == brief([plain()[0], changed(plain()[1]), plain()[2], plain()[3]])
    assert len(target.read_bytes().splitlines()) == 4


# Targets and secrets


@pytest.mark.parametrize("make", [Sqlite, Postgres, csv_sink, parquet_sink])
def test_without_a_target_they_say_what_they_need(make: Make) -> None:
    with pytest.raises(PluginError, match=r"it needs (a file|an address): \w+:"):
        make("")


@pytest.mark.parametrize("make", [Sqlite, csv_sink, parquet_sink])
def test_a_folder_that_is_not_there_is_found_before_anything_is_paid_for(make: Make, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"unable to open|No such file"):
        asyncio.run(make(str(tmp_path / "nowhere" / "x")).open(info()))


def test_before_it_is_opened_and_after_it_is_closed_nothing_happens(tmp_path: Path) -> None:
    for make in (Sqlite, csv_sink, parquet_sink):
        sink = make(str(tmp_path / "x"))
        asyncio.run(sink.write(examples()[0]))
        asyncio.run(sink.close({}))
        asyncio.run(sink.close({}))
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_is_cancelled_does_not_disturb_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "results.db"

    async def through() -> None:
        sink = Sqlite(str(file))
        await sink.open(info())
        first = asyncio.ensure_future(sink.write(examples()[0]))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        for result in examples()[1:]:
            await sink.write(result)
        await sink.close({})

    asyncio.run(through())
    assert {r.metadata.result_id for r in read_file(file)} >= {r.metadata.result_id for r in examples()[1:]}


def test_two_runs_may_write_to_one_database_at_the_same_time(tmp_path: Path, postgres: str) -> None:
    async def both(make: Make, target: str) -> None:
        sinks = [make(target), make(target)]
        await asyncio.gather(*(sink.open(info()) for sink in sinks))
        await asyncio.gather(*(sink.write(result) for result in examples() for sink in sinks))
        await asyncio.gather(*(sink.close({}) for sink in sinks))

    asyncio.run(both(Sqlite, str(tmp_path / "results.db")))
    asyncio.run(both(Postgres, postgres))
    for found in (read_file(tmp_path / "results.db"), read_database(postgres)):
        assert sorted(r.metadata.result_id for r in found) == [r.metadata.result_id for r in examples()]


def test_a_full_disk_fails_the_write_and_leaves_a_readable_database(tmp_path: Path) -> None:
    file = tmp_path / "results.db"
    large = evolve(examples()[1], evaluation_input="x" * 5_000_000)

    async def through() -> None:
        sink = Sqlite(str(file))
        await sink.open(info())
        await sink.write(examples()[0])
        assert sink._store is not None
        sink._store.connection.cursor().execute("PRAGMA max_page_count = 200")
        with pytest.raises(Exception, match="full"):
            await sink.write(large)
        await sink.close({})

    asyncio.run(through())
    assert list(read_file(file)) == examples()[:1]
