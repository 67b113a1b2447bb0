"""`python -m tests.benchmarks` measures something and says so, and `--check` says whether budgets are kept. Whether
they are is no test: times are for a machine that has nothing else to do, and counted work is for every other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import connections, counted
from tests.benchmarks.measure import Row
from tests.benchmarks.yardstick import REFERENCE

Judged = Callable[..., tuple[list[Any], int, str]]
RELATIVE = {
    "2 items, 50 in flight": "2 items, 50 in flight, bare",
    "2 items, 50 in flight, kept": "2 items, 50 in flight, bare",
    "10 items, 500 in flight": "10 items, 500 in flight, bare",
    "10 items, 500 in flight, kept": "10 items, 500 in flight, bare",
    "memory, 500 items": "memory, 50 items",
}
"""Rows whose budget is a multiple of what another row measures."""


DIFFERENCES = {"one item, template_only", "one item, run directory", "a run, template_only", "a run, run directory"}
"""Rows that are a difference of two measurements, which may come to nothing where there are hardly any items."""
OF_FEW = {"kept of a question, 50"}
"""The same, of memory."""
OTHERWISE = {"counted", "connections"}
"""Groups whose rows are made here by themselves: what is counted has a guard, and to import litellm takes the most."""


def test_the_table_and_the_document(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    groups = [word for name in vars(benchmarks)["GROUPS"] if name not in OTHERWISE for word in ("--only", name)]
    options = ["--rounds", "1", "--items", "1", "--share-imports", *groups, "--json", str(out)]
    command = [sys.executable, "-m", "tests.benchmarks", *options]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=390, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = {row["name"]: row for row in json.loads(out.read_text("utf-8"))["rows"]}
    fixed = {name: row["budget"] for name, row in rows.items() if name not in RELATIVE}
    assert fixed == {
        "python -c pass": None,
        "import karenina_core": 60,
        "karenina --help": 120,
        "one item, template_only": 0.5,
        "one item, run directory": 1.6,
        "a run, template_only": None,
        "a run, run directory": None,
        "quotation, verbatim": 2,
        "quotation, other marks": 2,
        "quotation, one word wrong": 2,
        "quotation, 2000 characters": 2,
        "quotation, 2000, wrong": 2,
        "100 KB, once per item": 40,
        "6 traits, 0.5 s judge, 6x": 800,
        "6 traits, 0.5 s judge, 1x": None,
        "10 traits, 8 KB, not from a cache": 30,
        "2 items, 50 in flight, bare": None,
        "2 items, 50 in flight, memory": None,
        "2 items, 50 in flight, kept, memory": None,
        "10 items, 500 in flight, bare": None,
        "10 items, 500 in flight, memory": 120,
        "10 items, 500 in flight, kept, memory": 120,
        "memory, 5 items": None,
        "memory, 50 items": None,
        "write amplification, 5 items": 1.5,
        "write amplification, 500 items": 1.5,
        "resume, 50 items, finished": None,
        "resume, 50 items, half done": None,
        "sandbox, verify": 0.1,
        "a bare message": None,
        "a bare message, one processor": None,
        "sandbox, verify, CPU": None,
        "sandbox, verify, worker alone": None,
        "sandbox, start of a template": 10,
        "sandbox, next item after a kill": 10,
        "sandbox, its server": 150,
        "distinct template, 5": 1,
        "distinct template, 50": 1,
        "kept of a question, 50": 2,
        "kept of a question, 500": 2,
        "report, of an item": 3,
        "report, making an item": 1,
        "report, memory": None,
        "verify --estimate": 10.0,
        "run, sandboxed by trusted": 1.3,
        "run, sandboxed": None,
        "run, trusted": None,
    }
    factors = {name: round(rows[name]["budget"] / rows[of]["value"], 6) for name, of in RELATIVE.items()}
    assert factors == {
        "2 items, 50 in flight": 1.1,
        "2 items, 50 in flight, kept": 1.2,
        "10 items, 500 in flight": 1.6,
        "10 items, 500 in flight, kept": 2.2,
        "memory, 500 items": 1.05,
    }
    assert all(row["value"] > 0 or name in DIFFERENCES | OF_FEW for name, row in rows.items())
    assert all(name in ran.stdout for name in rows)
    assert {name for name, row in rows.items() if row["yardstick"]} == {
        *("python -c pass", "import karenina_core", "karenina --help", "6 traits, 0.5 s judge, 6x"),
        *(name for name in rows if name.startswith("quotation") or name == "100 KB, once per item"),
        *(name for name, budget in fixed.items() if name.startswith("sandbox") and budget and budget < 100),
        *("report, making an item", "verify --estimate", "distinct template, 5", "distinct template, 50"),
        *DIFFERENCES,
    }
    assert rows["python -c pass"]["ratio"] == 1
    assert rows["karenina --help"]["ratio"] > 1


def test_rows_of_counted_work_say_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"a.py": 7.0, "b.py": 2.0}
    made = [("in memory", {(file, 1, "encode"): count for file, count in calls.items()}), ("journal", {})]
    monkeypatch.setattr(counted, "_calls", lambda items, over_http: made)
    (memory, journal) = counted.counted_rows(1)
    assert (memory.name, memory.value, memory.budget) == ("one item, in memory, counted", 9, None)
    assert memory.detail == "calls; encoded 9, asdict 0, evolve 0"
    assert (journal.name, journal.value) == ("one item, journal, counted", 0)


def test_connections_are_counted(monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    """Of litellm with `--long`: that it can be measured is known of the other one."""
    budgets = dict(connections.ADAPTERS) if long else {"openai_endpoint": connections.ADAPTERS["openai_endpoint"]}
    monkeypatch.setattr(connections, "ADAPTERS", budgets)
    rows = {row.name: row for row in connections.connection_rows(1)}
    assert {name: row.budget for name, row in rows.items()} == {
        f"connections over HTTPS, {adapter}": budget for adapter, budget in budgets.items()
    }
    assert all(row.value >= 1 for row in rows.values())
    assert "2 calls, 1 in flight, 1 TLS handshakes" in rows["connections over HTTPS, openai_endpoint"].detail


def test_exports_are_measured_and_read_back(repository: Path) -> None:
    options = ["--results", "40", "--formats", "json"]
    command = [sys.executable, "-m", "tests.benchmarks.exports", *options]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NOT EQUAL" not in ran.stdout
    assert ran.stdout.count("  json ") == 4


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Judged:
    """`judged(*rows)`: the budget here and the verdict of every row, whose yardsticks are given as multiples of the
    reference; the exit code of the check, and what it says on stderr."""
    monkeypatch.setattr("sys.argv", ["benchmarks", "--check", "--only", "item"])

    def check(*given: dict[str, Any]) -> tuple[list[Any], int, str]:
        rows = []
        for number, row in enumerate(given):
            piece = row["yardstick"] * REFERENCE if "yardstick" in row else None
            rows.append(Row(**{"name": f"row {number}", **row, "yardstick": piece}))
        monkeypatch.setitem(vars(benchmarks)["GROUPS"], "item", lambda options: rows)
        code = benchmarks.main()
        return [[row.here and round(row.here, 6), row.verdict] for row in rows], code, capsys.readouterr().err

    return check


def test_a_budget_is_as_many_pieces_of_the_yardstick_on_any_machine(judged: Judged) -> None:
    """On a machine that is half as fast, twice the time is within the budget, and not a bit more; on a faster one, the
    budget is what was set."""
    usual = {"value": 59.0, "budget": 60.0, "yardstick": 1.0}
    slow = {"value": 119.0, "budget": 60.0, "yardstick": 2.0}
    rows, code, said = judged(usual, slow, {**slow, "value": 121.0}, {**usual, "value": 61.0, "yardstick": 0.5})
    assert rows == [[60.0, "within"], [120.0, "within"], [120.0, "OVER"], [60.0, "OVER"]]
    assert code == 1
    assert said.splitlines() == [
        "over its budget: row 2: 121.00 ms, budget 120 here",
        "over its budget: row 3: 61.00 ms, budget 60 here",
    ]


def test_no_machine_waits_faster_and_none_has_more_memory(judged: Judged) -> None:
    waits = {"value": 900.0, "budget": 800.0, "waited": 500.0}
    memory = {"value": 119.0, "budget": 120.0, "unit": "MB"}
    rows, code, said = judged({**waits, "yardstick": 2.0}, memory, {"value": 1.0, "yardstick": 1.0})
    assert rows == [[1100.0, "within"], [120.0, "within"], [None, ""]]
    assert (code, said) == (0, "")
    rows, code, _ = judged({**waits, "yardstick": 1.0})
    assert (rows, code) == ([[800.0, "OVER"]], 1)


def test_what_is_measured_in_a_process_of_its_own_is_a_program(repository: Path) -> None:
    """With shared imports none of them is started as one."""
    files = {file.stem: file.read_text("utf-8") for file in (repository / "tests" / "benchmarks").glob("*.py")}
    named = {name for text in files.values() for name in re.findall(r'\bmeasured\("(\w+)"', text)}
    assert {"memory", "reports", "resume", "templates", "throughput"} <= named
    for name in named:
        assert files[name].endswith('if __name__ == "__main__":\n    main()\n'), name


def test_numbers_of_shared_imports_are_not_checked(repository: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--share-imports", "--check"]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, "measure without it to --check" in ran.stderr) == (2, True)
