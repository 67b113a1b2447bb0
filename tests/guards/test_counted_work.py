"""What an item costs, in counted work: time differs from machine to machine, and grows where nobody looks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ITEMS = 100
CALLS = {"in memory": 2500, "run directory": 3500}
"""Calls of functions per item, Python's own and built-in ones. Before anybody raises it: what does the item do more?"""
ENCODED = {"in memory": 2, "run directory": 13}
"""Texts of JSON per item. In memory: the result's id, and the schema for the judge. With a directory also the result
itself; for each of two calls its key, and its reply; a checksum for each of three rows of the journal, and that of the
result once more as results.jsonl is made of it; and two digests of the question, each of which has one item here, for
the run's fingerprint."""
KEPT = 400
"""Bytes per item that a run with a directory may hold at its end; a result has ten thousand."""


@pytest.fixture(scope="module")
def counted(repository: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.counted", "--items", str(ITEMS)]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("where", CALLS)
def test_an_item_takes_no_more_calls_than_it_may(counted: Any, where: str) -> None:
    assert ITEMS < counted[where]["calls"] <= CALLS[where]


@pytest.mark.parametrize("where", CALLS)
def test_what_every_item_does_is_not_done_by_the_slow_ways(counted: Any, where: str) -> None:
    assert counted[where]["asdict"] == 0
    assert counted[where]["evolve"] <= 6
    assert 1 <= counted[where]["encoded"] <= ENCODED[where]


def test_a_run_with_a_directory_keeps_none_of_its_results(counted: Any) -> None:
    few, many = (counted["bytes"][str(items)] for items in (ITEMS, ITEMS * 10))
    assert many - few <= KEPT * ITEMS * 9
