"""Runs that are continued in a way that another distribution brings, and by one that is not installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.execute.runner import Destination
from karenina_runs.folder.status import read_status
from karenina_runs.resume import aresume_run

from karenina_core.errors import RunDirectoryError

Make = Callable[..., Any]
STRANGER = """
from attrs import evolve, frozen
from karenina_runs.execute.continuation import Continuation, Progress


@frozen(kw_only=True)
class Recheck(Continuation):
    kind = "recheck"
    replaces = True
    task: str
    before: int

    def resumed(self, prepared, before):
        return evolve(self, reopens=True, again=before.again)

    def remaining(self, reader):
        return {self.task} - {end.task for end in reader.ends(self.before)}

    def progress(self, remaining):
        return Progress(self.kind, {"remaining": remaining}, f"{remaining} to be checked again")

    def replaced(self, journal):
        journal.repeat_calls(lambda call: call.result_id == self.task, journal.last_call)
        return self.remaining(journal.reader)

    def notes(self, writer):
        return tuple(f"not checked again: {task}" for task in sorted(writer.replaced))

    def ended(self, folder):
        (folder / "recheck.done").touch()


def begun(folder, manifest):
    return Recheck(**manifest["recheck"])
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that continues runs in a way of its own."""
    folder = tmp_path / "site"
    (info := folder / "stranger_recheck-1.0.dist-info").mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger-recheck\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[karenina.continuations]\nrecheck = stranger_recheck:begun\n", "utf-8")
    (folder / "stranger_recheck.py").write_text(STRANGER, "utf-8")
    monkeypatch.syspath_prepend(str(folder))


def _begun(here: Any, folder: Path) -> str:
    """A finished run of which one result is to be made again. Returns its task."""
    results = here.run(destination=Destination(run_dir=folder), run_name="the run")
    task: str = results[0].metadata.result_id
    path = folder / "manifest.json"
    facts = {"continuations": ["recheck"], "recheck": {"task": task, "before": len(results)}}
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **facts}), "utf-8")
    return task


@pytest.mark.usefixtures("stranger")
def test_a_run_is_continued_by_the_distribution_that_its_manifest_names(world: Make, tmp_path: Path) -> None:
    here, folder = world(questions=3), tmp_path / "run"
    _begun(here, folder)
    asked = len(here.answerer.calls), len(here.judge.calls)
    assert [row.text for row in read_status(folder).progress] == ["1 to be checked again"]
    assert read_status(folder).is_resumable
    results = asyncio.run(aresume_run(folder, benchmark=here.benchmark, app=here.app))
    assert (len(results), results.notes) == (3, ())
    assert (len(here.answerer.calls), len(here.judge.calls)) == (asked[0] + 1, asked[1] + 1)
    assert (folder / "recheck.done").is_file()
    assert read_status(folder).unrepaired == 0


def test_a_run_that_was_continued_by_what_is_not_installed_is_not_resumed(world: Make, tmp_path: Path) -> None:
    here, folder = world(questions=3), tmp_path / "run"
    _begun(here, folder)
    before = (folder / "results.jsonl").read_bytes()
    with pytest.raises(RunDirectoryError, match="was continued by 'recheck'; install the distribution"):
        asyncio.run(aresume_run(folder, benchmark=here.benchmark, app=here.app))
    assert (folder / "results.jsonl").read_bytes() == before
    assert any("'recheck'" in note for note in read_status(folder).notes)
