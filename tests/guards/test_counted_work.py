"""What an item costs, in counted work: time differs from machine to machine, and grows where nobody looks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ITEMS = 100
SEE = "python -m tests.benchmarks.counted --most 30"
CALLS = {"in memory": 1980, "run directory": 2500, "HTTP": 3430}
"""Calls of functions per item, Python's own and built-in ones, in the event loop's thread. HTTP: by openai_endpoint,
with a run directory and 50 items in flight. About 100 of them look whether the extracted values stand in the answer
(three fields, one of which is a number and one a list), keep what is found, and give parser ports the answer; about 110
look for secrets in what comes in, for an answer that is empty, and keep what rates need of each question; 8 ask the
tracing plugin after each item whether it counts items, 2 take the template of each question, which may be given as a
class or as data, and another 8 over HTTP are the client that adapters of several protocols share. The digest of each
item in its result takes 6, and 13 in all where a manifest has that of all of them. About 40 put tags of this process
around what judges read, look whether an error ends the run, and count what the progress shows."""
TEMPLATE = 1050
"""The same for a template that no other question has, beside its item: 1,022 are counted, a third of them to see
whether what the judge reads of its two fields gives an expected value away, and 50 because what is known of the classes
of primitives keeps none of these alive."""
REPORT = 3_180
"""The same for one more result of a report, whose metadata are read twice and the rest of it once. Half of them are its
HTML, a fifth reads it."""
WRITING = {"journal": 200, "HTTP, journal": 180}
"""The same in the thread that writes the journal. Some of them are made for every commit: on a busy machine there are
more, for fewer rows come at the same time. 145 and 137 are counted where nothing else goes on, 166 and 151 where three
others want each CPU."""
SEALED = 3
"""Texts of JSON per item in that thread: a checksum for each of two replies and a result."""
ENCODED = {"in memory": 2, "run directory": 11, "HTTP": 14}
"""Texts of JSON per item. In memory: the result's id, and the schema for the judge. With a directory also the result
itself; for each of two calls its key, and its reply; a checksum for its row of the journal as results.jsonl is made of
it (the rows are sealed in the writer's thread); and a digest of the question, of which there is one for each item here,
for the run's fingerprint, and its id and its entry as the fingerprint's file has them. HTTP: the body of each of two
requests, and the schema for one of them."""
EVOLVED = {"in memory": 1, "run directory": 1, "HTTP": 1}
"""Frozen things of which a copy with another value is made."""


SANDBOXED = {"host": 63, "worker": 61}
"""Calls of functions for one `verify` of a template's own in the sandbox: in the process that asks, and in the worker.
61 and 59 are counted; half of the latter fill the template again and run it a second time."""


@pytest.fixture(scope="module")
def counted(repository: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.counted", "--items", str(ITEMS)]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("where", CALLS)
def test_an_item_takes_no_more_calls_than_it_may(counted: Any, where: str, within_budget: Callable[..., None]) -> None:
    within_budget(f"calls of functions per item, {where}", counted[where]["calls"], CALLS[where], SEE)


def test_a_template_takes_no_more_calls_to_be_loaded_than_it_may(
    counted: Any, within_budget: Callable[..., None]
) -> None:
    within_budget("calls of functions per template", counted["distinct template"]["calls"], TEMPLATE, SEE)


def test_a_result_takes_no_more_calls_in_a_report_than_it_may(counted: Any, within_budget: Callable[..., None]) -> None:
    within_budget("calls of functions per result of a report", counted["report"]["calls"], REPORT, SEE)


@pytest.mark.parametrize("where", WRITING)
def test_an_item_takes_no_more_calls_to_be_written_than_it_may(
    counted: Any, where: str, within_budget: Callable[..., None]
) -> None:
    within_budget(f"calls of functions per item, {where}", counted[where]["calls"], WRITING[where], SEE)
    within_budget(f"texts of JSON per item, {where}", counted[where]["encoded"], SEALED, SEE)
    assert counted[where]["asdict"] == counted[where]["evolve"] == 0


@pytest.mark.parametrize("where", CALLS)
def test_what_every_item_does_is_not_done_by_the_slow_ways(
    counted: Any, where: str, within_budget: Callable[..., None]
) -> None:
    assert counted[where]["asdict"] == 0
    within_budget(f"calls of attrs.evolve per item, {where}", counted[where]["evolve"], EVOLVED[where], SEE)
    within_budget(f"texts of JSON per item, {where}", counted[where]["encoded"], ENCODED[where], SEE)


def test_a_verdict_in_the_sandbox_takes_no_more_calls_than_it_may(
    repository: Path, within_budget: Callable[..., None]
) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.sandbox"]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.keys() == SANDBOXED.keys()
    for where, calls in found.items():
        within_budget(
            f"calls of functions per verdict, {where}", calls, SANDBOXED[where], "python -m tests.benchmarks.sandbox"
        )
