"""`python -m tests.benchmarks` measures something and says so; whether a budget is kept is for people to judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RELATIVE = {
    "6 items, 50 in flight": "6 items, 50 in flight, bare",
    "6 items, 50 in flight, kept": "6 items, 50 in flight, bare",
    "30 items, 500 in flight": "30 items, 500 in flight, bare",
    "30 items, 500 in flight, kept": "30 items, 500 in flight, bare",
    "memory, 1500 items": "memory, 150 items",
}
"""Rows whose budget is a multiple of what another row measures."""


def test_groups_can_be_chosen(repository: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--rounds", "1", "--items", "3", "--only", "item"]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert [line.partition("  ")[0] for line in ran.stdout.splitlines()[2:]] == [
        "one item, template_only",
        "one item, run directory",
    ]


def test_the_table_and_the_document(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "tests.benchmarks", "--rounds", "1", "--items", "3", "--json", str(out)]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = {row["name"]: row for row in json.loads(out.read_text("utf-8"))["rows"]}
    fixed = {name: row["budget"] for name, row in rows.items() if name not in RELATIVE}
    assert fixed == {
        "python -c pass": None,
        "import karenina_core": 60,
        "karenina --help": 120,
        "one item, template_only": 0.5,
        "one item, run directory": None,
        "one item, in memory, counted": None,
        "one item, run directory, counted": None,
        "quotation, verbatim": 2,
        "quotation, other marks": 2,
        "quotation, one word wrong": 2,
        "quotation, 2000 characters": 2,
        "quotation, 2000, wrong": 2,
        "100 KB, once per item": 40,
        "6 traits, 0.5 s judge, 6x": 800,
        "6 traits, 0.5 s judge, 1x": None,
        "6 items, 50 in flight, bare": None,
        "6 items, 50 in flight, memory": None,
        "6 items, 50 in flight, kept, memory": None,
        "30 items, 500 in flight, bare": None,
        "30 items, 500 in flight, memory": 120,
        "30 items, 500 in flight, kept, memory": 120,
        "memory, 15 items": None,
        "memory, 150 items": None,
        "writing, 15 items": 1.5,
        "writing, 1500 items": 1.5,
        "resume, 150 items, finished": None,
        "resume, 150 items, half done": None,
    }
    assert all(rows[name]["budget"] > rows[of]["value"] for name, of in RELATIVE.items())
    assert all(row["value"] > 0 and name in ran.stdout for name, row in rows.items())
    assert rows["python -c pass"]["ratio"] == 1
    assert rows["karenina --help"]["ratio"] > 1


def test_exports_are_measured_and_read_back(repository: Path) -> None:
    options = ["--results", "40", "--formats", "json"]
    command = [sys.executable, "-m", "tests.benchmarks.exports", *options]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NOT EQUAL" not in ran.stdout
    assert ran.stdout.count("  json ") == 4
