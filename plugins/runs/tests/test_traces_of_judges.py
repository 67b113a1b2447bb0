"""What judges write into a workspace, `.karenina`, is theirs alone: no answer, no other judge, no capture has it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_judging.services import WORKSPACE_COPY
from karenina_runs.execute.runner import Destination

from karenina_core import ArtifactKeys, Category, Stage, VerificationConfig, hookimpl

Make = Callable[..., Any]
TRACE = ".karenina/traces/trace_q0.txt"


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


class Tracing(Stage):
    """Plays a judge that keeps a trace in the workspace, and another that looks at a copy of it."""

    category = Category.GUARD
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def __init__(self) -> None:
        self.answered: list[list[str]] = []
        self.seen: list[list[str]] = []

    async def execute(self, context: Any) -> None:
        place = context.workspace
        self.answered.append(files(place))
        (place / "answer.txt").write_text("42")
        (place / TRACE).parent.mkdir(parents=True, exist_ok=True)
        (place / TRACE).write_text("all that was said")
        async with context.service(WORKSPACE_COPY)() as copy:
            self.seen.append(files(copy))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace root with a question's folder: an earlier run has left a trace in it, and a part has a like name."""
    folder = tmp_path / "root" / "rivers"
    for name in ("data.csv", ".karenina/traces/trace_old.txt", "part/.karenina/notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return tmp_path / "root"


@pytest.fixture
def run(world: Make, make_question: Make, root: Path, tmp_path: Path) -> Callable[..., Tracing]:
    def go(**facts: Any) -> Tracing:
        stage = Tracing()

        class Plays:
            @hookimpl
            def karenina_register_stages(self, registry: Any) -> None:
                registry.add(stage)

        here = world(Plays(), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
        config: VerificationConfig = here.config(**facts)
        (result,) = here.run(config, Destination(run_dir=tmp_path / "run"))
        assert str(result.outcome) == "passed"
        return stage

    return go


OF_THE_QUESTION = ["data.csv", "part/.karenina/notes.txt"]


def test_an_answer_is_worked_out_without_traces_of_earlier_runs(run: Callable[..., Tracing]) -> None:
    assert run().answered == [OF_THE_QUESTION]


@pytest.mark.parametrize("copy", [True, False])
def test_a_judge_s_copy_has_no_traces(copy: bool, run: Callable[..., Tracing], root: Path) -> None:
    assert run(workspace_copy=copy).seen == [["answer.txt", *OF_THE_QUESTION]]
    assert (root / "rivers" / ".karenina" / "traces" / "trace_old.txt").is_file()
    assert (root / "rivers" / TRACE).is_file() is not copy


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(("mode", "kept"), [("full", ["answer.txt", *OF_THE_QUESTION]), ("produced", ["answer.txt"])])
def test_traces_are_not_captured(
    mode: str, kept: list[str], copy: bool, run: Callable[..., Tracing], tmp_path: Path
) -> None:
    run(workspace_copy=copy, workspace_output_mode=mode)
    folder = tmp_path / "run" / "workspaces"
    (row,) = map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())
    assert (row["status"], row["copied_file_count"], row["copy_errors"]) == ("captured", len(kept), [])
    assert files(folder / row["destination"]) == kept


def test_what_is_private_does_not_stand_in_the_way_of_a_copy(run: Callable[..., Tracing], root: Path) -> None:
    (root / "rivers" / ".karenina" / "traces" / "trace_old.txt").unlink()
    for number in range(5):
        (root / "rivers" / ".karenina" / "traces" / f"trace_{number}.txt").write_text("x" * 100)
    os.symlink("/etc/hostname", root / "rivers" / ".karenina" / "away")
    assert run(workspace_max_files=5, workspace_max_bytes=50).answered == [OF_THE_QUESTION]
