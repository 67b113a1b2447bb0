"""Workspaces of agents: what goes wrong with names from the clock, half the reasons, and a fresh folder per judge."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from karenina_runs.plan.items import Item
from karenina_runs.workspaces.workspace_sources import wants_workspace
from karenina_runs.workspaces.workspaces import Workspace, Workspaces

from karenina_core import AgenticRubricTrait, ModelConfig, Question, Rubric, VerificationConfig

ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
JUDGE = ModelConfig(model_name="j", interface="judging")
QUESTION = Question(id="q", question="Which river is it?", workspace_path="rivers")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rivers").mkdir()
    (tmp_path / "rivers" / "data.csv").write_text("loire")
    return tmp_path


def item(answering: ModelConfig) -> Item:
    return Item(QUESTION, answering, JUDGE, 1, None, None)  # type: ignore[arg-type]  # nothing of it is run


# Nobody takes away the workspace in which somebody else is at work

Make = Callable[[Path, ModelConfig], Path]
"""From the root and the answering model to a new workspace of the question."""


def ours(root: Path, answering: ModelConfig) -> Path:
    async def made() -> Path:
        spaces = Workspaces(root, VerificationConfig(workspace_cleanup=False))
        async with spaces.opened(item(answering)) as workspace:
            assert workspace is not None
            assert workspace.path is not None
            return workspace.path

    return asyncio.run(made())


def from_the_clock(root: Path, answering: ModelConfig) -> Path:
    """Named by second and process; what already exists is removed first."""
    place = root / f"rivers_run_{datetime.now(UTC):%Y%m%dT%H%M%S}_pid{os.getpid()}"
    if place.exists():
        shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(root / "rivers", place, dirs_exist_ok=True)
    return place


def workspaces_are_left_alone(make: Make, root: Path) -> None:
    together = threading.Barrier(len(ANSWERERS), timeout=60)

    def work(answering: ModelConfig) -> tuple[Path, str]:
        together.wait()
        try:
            place = make(root, answering)
            (place / "answer.txt").write_text(answering.name)
        except OSError:
            together.abort()  # else the other one would wait for ever
            raise
        together.wait()
        left = place / "answer.txt"
        return place, left.read_text() if left.exists() else ""

    for _ in range(3):  # a second may end between two of them, not three times
        with ThreadPoolExecutor(len(ANSWERERS)) as pool:
            seen = list(pool.map(work, ANSWERERS))
        assert len({place for place, _ in seen}) == len(seen)
        assert [text for _, text in seen] == [model.name for model in ANSWERERS]


def test_two_models_on_one_question_in_the_same_instant_leave_each_other_alone(root: Path) -> None:
    workspaces_are_left_alone(ours, root)
    assert (root / "rivers" / "data.csv").read_text() == "loire"


def test_names_from_the_clock_break_that(root: Path) -> None:
    with pytest.raises((AssertionError, OSError, threading.BrokenBarrierError)):
        workspaces_are_left_alone(from_the_clock, root)


# Whoever is to look at a workspace has one, whatever it is looked at for

Wants = Callable[[VerificationConfig, Rubric | None], bool]
AGENTIC = Rubric(agentic_traits=[AgenticRubricTrait(name="tidy", kind="boolean", description="Is it tidy?")])


def wanted(config: VerificationConfig, rubric: Rubric | None) -> bool:
    return wants_workspace(Question(id="q", question="Which river is it?"), config, rubric)


def for_agentic_parsing_only(config: VerificationConfig, rubric: Rubric | None) -> bool:
    return config.agentic_parsing


def investigations_have_a_workspace(wants: Wants) -> None:
    for parsing, rubric in product((False, True), (None, AGENTIC)):
        config = VerificationConfig(
            agentic_parsing=parsing, evaluation_mode="rubric_only" if rubric and not parsing else None
        )
        assert wants(config, rubric) == (parsing or rubric is not None)


def test_agentic_traits_have_a_workspace_without_agentic_parsing() -> None:
    investigations_have_a_workspace(wanted)


def test_asking_for_agentic_parsing_alone_breaks_that() -> None:
    with pytest.raises(AssertionError):
        investigations_have_a_workspace(for_agentic_parsing_only)


# Every judge of an answer sees what the answer's model left

Judged = Callable[[Path, int], Sequence[dict[str, str]]]
"""From the root and a number of judges to what each of them finds, after a model has written `answer.txt`."""


def found(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def shared(root: Path, judges: int) -> Sequence[dict[str, str]]:
    async def look(workspace: Workspace) -> dict[str, str]:
        async with workspace.investigation_copy() as copy:
            seen = found(copy)
            (copy / "answer.txt").write_text("spoiled")
            return seen

    async def judged() -> list[dict[str, str]]:
        async with Workspaces(root, VerificationConfig()).opened(item(ANSWERERS[0])) as workspace:
            assert workspace is not None
            assert workspace.path is not None
            (workspace.path / "answer.txt").write_text("Loire")
            return [await look(workspace) for _ in range(judges)]

    return asyncio.run(judged())


def fresh_for_each(root: Path, judges: int) -> Sequence[dict[str, str]]:
    """The first judge has the model's workspace, and every other one a new copy of the source."""
    seen = []
    for number in range(judges):
        place = root / f"copy{number}"
        shutil.copytree(root / "rivers", place)
        if number == 0:
            (place / "answer.txt").write_text("Loire")
        seen.append(found(place))
    return seen


def one_for_all(root: Path, judges: int) -> Sequence[dict[str, str]]:
    """All look at the folder itself, and the second at what the first did to it."""
    place = root / "one"
    shutil.copytree(root / "rivers", place)
    (place / "answer.txt").write_text("Loire")
    seen = []
    for _ in range(judges):
        seen.append(found(place))
        (place / "answer.txt").write_text("spoiled")
    return seen


def judges_see_what_was_left(judged: Judged, root: Path) -> None:
    assert list(judged(root, 3)) == [{"answer.txt": "Loire", "data.csv": "loire"}] * 3


def test_every_judge_sees_what_the_model_left(root: Path) -> None:
    judges_see_what_was_left(shared, root)


@pytest.mark.parametrize("variant", [fresh_for_each, one_for_all])
def test_a_fresh_copy_for_each_judge_and_one_folder_for_all_break_that(variant: Judged, root: Path) -> None:
    with pytest.raises(AssertionError):
        judges_see_what_was_left(variant, root)
