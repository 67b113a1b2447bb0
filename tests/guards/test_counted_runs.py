"""What a run holds and writes, in counted work: memory, threads, commits and bytes do not grow where nobody looks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SEE = "python -m tests.benchmarks.held"
UNDER_WAY = 22_900
"""Bytes that one more item under way holds while its model has not answered. Measured are some 22,600:
names of folders and the state of caches differ between machines."""
THREADS = 5
"""The caller's, the loop's, the one that writes the journal, the one that tells of stalls, and one that loads the
template, of which the run that is counted has one: however many items there are, none of them has one of its own."""
KEPT = 400
"""Bytes per item that a run with a directory may hold at its end; a result has ten thousand. Measured are 240 to 320: a
hundred are the row that each replicate has in the summary, others the buffers of rows that are just being packed."""
LEFT = 2
"""Objects that one more question with a template of its own may leave to the collector. Measured are 0 to 0.5; where
each template has a class of its own, which refers to itself, it is 23, and a run grows by 5 KB a question."""
REPORTED = 850
"""Bytes that a report keeps of one more result with five traits: numbers, names that others share, and what the page's
script knows of it. Measured are 460 to 790, by what earlier reports left in caches; the result itself takes ten times
as much."""
COMPARED = 1_900
"""The most that it holds of one while the numbers of the overview are computed. Measured are 1,380 to 1,710."""
COMMITS = 1.2
"""Commits of a run with a directory, of those that there were if what is under way were always committed together."""
AMPLIFICATION = 1.12
"""Bytes that are written, per byte of the replies and results that are to be kept; the journal packs them. It was 1.1
before prompts of judges became a third shorter: the pages around them did not."""


@pytest.fixture(scope="module")
def held(repository: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.held"]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_an_item_under_way_holds_no_more_than_it_may(held: Any, within_budget: Callable[..., None]) -> None:
    within_budget("bytes of an item under way", held["under_way"]["bytes"], UNDER_WAY, SEE)


def test_a_run_has_as_many_threads_however_many_items_are_under_way(
    held: Any, within_budget: Callable[..., None]
) -> None:
    within_budget("threads of a run", held["under_way"]["threads"], THREADS, SEE)


def test_a_run_with_a_directory_keeps_none_of_its_results(held: Any) -> None:
    (few, least), (many, most) = ((int(items), size) for items, size in held["kept"].items())
    assert (most - least) / (many - few) <= KEPT, f"memory grows with the run; see `{SEE}`, and what keeps a result"


def test_a_question_with_a_template_of_its_own_leaves_nothing_to_the_collector(held: Any) -> None:
    assert held["questions"] <= LEFT, f"what refers to itself stays until the collector looks; see `{SEE}`"


def test_a_report_holds_no_more_of_a_result_than_it_may(held: Any, within_budget: Callable[..., None]) -> None:
    within_budget("bytes of a result in a report", held["reported"]["held"], REPORTED, SEE)
    within_budget("bytes of a result while numbers are computed", held["reported"]["most"], COMPARED, SEE)


def test_rows_that_come_soon_after_one_another_are_one_commit(held: Any) -> None:
    """By the writer as it is. On a busy machine some bursts come too late for that; where no row waits for others, one
    in ten happens to be in time."""
    together = held["bursts"].count(1) / len(held["bursts"])
    assert together >= 0.25, f"commits of bursts: {held['bursts']}; see `{SEE}`, and how long a row waits for others"


def test_no_row_under_way_waits_for_the_commit_of_another(held: Any, within_budget: Callable[..., None]) -> None:
    """By a writer that gives rows all the time to join: what cannot join has to be committed before others can come."""
    within_budget("commits per reply, times the items under way", held["stored"]["commits"], COMMITS, SEE)


def test_rows_that_are_committed_together_take_hardly_more_than_is_kept(
    held: Any, within_budget: Callable[..., None]
) -> None:
    """By the same writer: rows that come at other times take more, as pages of the log, and how many do is chance."""
    within_budget("bytes written per byte kept", held["stored"]["amplification"], AMPLIFICATION, SEE)
