"""`python -m tests.benchmarks` measures something and says so; whether a budget is kept is for people to judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_table_and_the_document(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "tests.benchmarks", "--rounds", "1", "--items", "3", "--json", str(out)]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = {row["name"]: row for row in json.loads(out.read_text("utf-8"))["rows"]}
    budgets = {name: row["budget"] for name, row in rows.items()}
    assert budgets == {
        "python -c pass": None,
        "import karenina_core": 60,
        "karenina --help": 120,
        "one item, template_only": 0.6,
        "quotation, verbatim": 2,
        "quotation, other marks": 2,
        "quotation, one word wrong": 2,
        "quotation, 2000 characters": 2,
        "quotation, 2000, wrong": 2,
        "100 KB, once per item": 40,
        "6 traits, 0.5 s judge, 6x": 800,
        "6 traits, 0.5 s judge, 1x": None,
    }
    assert all(row["milliseconds"] > 0 and name in ran.stdout for name, row in rows.items())
    assert rows["python -c pass"]["ratio"] == 1
    assert rows["karenina --help"]["ratio"] > 1


def test_exports_are_measured_and_read_back(repository: Path) -> None:
    options = ["--results", "40", "--formats", "json"]
    command = [sys.executable, "-m", "tests.benchmarks.exports", *options]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NOT EQUAL" not in ran.stdout
    assert ran.stdout.count("  json ") == 4
