"""`karenina verify --workspace-root`: where the questions' folders are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result

from karenina_core import Benchmark
from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]


def city(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "The capital is Paris."


@pytest.fixture
def in_folders(write_benchmark: Files, tmp_path: Path) -> Path:
    """A benchmark whose question works in the folder `maps`, which lies beneath `root`."""
    loaded = Benchmark.load(write_benchmark("q0"))
    (tmp_path / "root" / "maps").mkdir(parents=True)
    (tmp_path / "root" / "maps" / "france.txt").write_text("Paris")
    asked = [evolve(question, workspace_path="maps") for question in loaded.questions]
    return loaded.with_questions(asked).save(tmp_path / "maps.jsonld")


def test_without_a_root_the_run_is_refused_before_any_call(run: Run, in_folders: Path, served: Any) -> None:
    with ScriptedServer(city) as server:
        result = run("verify", in_folders, *served(server.url), "--out", "out")
    assert result.exit_code == 1
    assert "workspace_root: there is none, and question q0 works in the folder 'maps'" in result.stderr
    assert "--workspace-root DIR" in result.stderr
    assert server.requests == []
    assert not Path("out").exists()


def test_with_a_root_workspaces_are_copies_and_can_be_kept(run: Run, in_folders: Path, served: Any) -> None:
    keeping = ("--set", "run.workspace_output_mode=full")
    with ScriptedServer(city) as server:
        result = run("verify", in_folders, *served(server.url), "--workspace-root", "root", *keeping, "--out", "out")
    assert result.exit_code == 0, result.stderr
    (row,) = map(json.loads, Path("out/workspaces/manifest.jsonl").read_text("utf-8").splitlines())
    assert (row["status"], row["capture_mode"]) == ("captured", "full")
    assert (Path("out/workspaces") / row["destination"] / "france.txt").read_text() == "Paris"
    assert [path.name for path in Path("root").iterdir()] == ["maps"]
