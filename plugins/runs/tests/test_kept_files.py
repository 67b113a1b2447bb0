"""What stages have kept with a result is in the run directory, whatever becomes of the workspace."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_judging.services import KEEP_FILE
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.workspaces.workspace_capture import CaptureRow
from karenina_runs.workspaces.workspace_sources import WorkspaceChecks
from karenina_runs.workspaces.workspaces import Workspace, Workspaces, keep_file

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Category,
    ModelConfig,
    Rubric,
    Stage,
    VerificationConfig,
    hookimpl,
)
from karenina_core.errors import ContractError
from karenina_core.values.config import Secret

Make = Callable[..., Any]
PATH = ".karenina/traces/trace_q0.txt"
KEY = "a-key-that-nobody-may-see"
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2")]


class Keeping(Stage):
    """Plays an answering agent and a judge that keeps what was said."""

    category = Category.GUARD
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def __init__(self) -> None:
        self.kept: list[bool] = []

    def execute(self, context: Any) -> None:
        if context.workspace is not None:
            (context.workspace / "answer.txt").write_text("42")
        self.kept.append(context.service(KEEP_FILE)(PATH, f"all that was said with {KEY}\r\n\ud800"))


def playing(stage: Stage) -> Any:
    class Plays:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            registry.add(stage)

    return Plays()


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "rivers").mkdir(parents=True)
    (tmp_path / "root" / "rivers" / "data.csv").write_text("loire")
    return tmp_path / "root"


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "workspaces" / "manifest.jsonl").read_text().splitlines()]


CAPTURED = {"none": [], "produced": ["answer.txt"], "full": ["answer.txt", "data.csv"]}


@pytest.mark.parametrize("cleanup", [True, False])
@pytest.mark.parametrize("mode", CAPTURED)
def test_every_result_has_what_was_kept_for_it(
    mode: str, cleanup: bool, world: Make, make_question: Make, root: Path, tmp_path: Path
) -> None:
    stage = Keeping()
    here = world(playing(stage), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    config = here.config(parsing_models=JUDGES, workspace_output_mode=mode, workspace_cleanup=cleanup)
    results = here.run(config, Destination(run_dir=tmp_path / "run"))
    assert stage.kept == [True, True]
    found = {row["result_id"]: row for row in rows(tmp_path / "run")}
    assert set(found) == {result.metadata.result_id for result in results}
    for result_id, row in found.items():
        place = tmp_path / "run" / "workspaces" / row["destination"]
        assert row["destination"] == f"q0__{result_id}"
        assert (row["status"], row["copy_errors"], row["capture_mode"]) == ("captured", [], mode)
        assert files(place) == [PATH, *CAPTURED[mode]]
        assert row["copied_file_count"] == len(CAPTURED[mode]) + 1
        assert (place / PATH).read_bytes().endswith(b"\r\n?")


def test_it_is_kept_where_the_item_has_no_workspace(world: Make, tmp_path: Path) -> None:
    stage = Keeping()
    world(playing(stage)).run(destination=Destination(run_dir=tmp_path / "run"))
    (row,) = rows(tmp_path / "run")
    assert stage.kept == [True]
    assert files(tmp_path / "run" / "workspaces" / row["destination"]) == [PATH]


def test_it_is_kept_where_the_workspace_cannot_be(world: Make, make_question: Make, root: Path, tmp_path: Path) -> None:
    class Growing(Keeping):
        def execute(self, context: Any) -> None:
            super().execute(context)
            for number in range(5):
                (context.workspace / f"{number}.txt").write_text("x")

    here = world(playing(Growing()), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    config = here.config(workspace_output_mode="full", workspace_max_files=4)
    here.run(config, Destination(run_dir=tmp_path / "run"))
    (row,) = rows(tmp_path / "run")
    assert row["status"] == "captured_with_errors"
    assert "workspace_max_files" in row["copy_errors"][0]
    assert files(tmp_path / "run" / "workspaces" / row["destination"]) == [PATH]


def test_no_secret_of_the_run_is_in_it(world: Make, tmp_path: Path) -> None:
    secret = ModelConfig(model_name="a", interface="answering", endpoint_api_key=Secret(KEY))
    here = world(playing(Keeping()))
    here.run(here.config(answering_models=[secret]), Destination(run_dir=tmp_path / "run"))
    (row,) = rows(tmp_path / "run")
    text = (tmp_path / "run" / "workspaces" / row["destination"] / PATH).read_text()
    assert KEY not in text
    assert text.startswith("all that was said with [")


@pytest.mark.parametrize(
    ("facts", "stays"),
    [({}, False), ({"workspace_cleanup": False}, True), ({"workspace_copy": False}, True)],
)
def test_without_a_run_directory_it_stays_with_the_workspace(
    facts: dict[str, Any], stays: bool, world: Make, make_question: Make, root: Path
) -> None:
    stage = Keeping()
    here = world(playing(stage), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    here.run(here.config(**facts))
    assert stage.kept == [stays]


def test_nothing_is_written_where_nothing_was_kept(world: Make, tmp_path: Path) -> None:
    world().run(destination=Destination(run_dir=tmp_path / "run"))
    assert not (tmp_path / "run" / "workspaces").exists()


# Told before a run


PARSING = {"agentic_parsing": True, "agentic_parsing_materialize_trace": True, "agentic_parsing_persist_trace": True}


def kept_trait(**facts: Any) -> Rubric:
    known = {"name": "sound", "kind": "boolean", "description": "Is it?", "materialize_trace": True}
    return Rubric.from_traits([AgenticRubricTrait(**{**known, "persist_trace": True, **facts})])


@pytest.mark.parametrize(
    ("facts", "rubric", "asked"),
    [
        (PARSING, None, ["agentic_parsing_persist_trace"]),
        ({}, kept_trait(), ["persist_trace of the trait 'sound'"]),
        ({}, kept_trait(context_mode="trace_only"), ["persist_trace of the trait 'sound'"]),
        ({}, kept_trait(materialize_trace=False), []),
        ({}, kept_trait(persist_trace=False), []),
        ({**PARSING, "workspace_cleanup": False}, kept_trait(), []),
        ({**PARSING, "workspace_copy": False}, kept_trait(), []),
        ({**PARSING, "agentic_parsing_materialize_trace": False}, None, []),
    ],
)
def test_traces_that_go_with_their_workspace_are_told(
    facts: dict[str, Any], rubric: Rubric | None, asked: list[str], make_question: Make, root: Path
) -> None:
    config = VerificationConfig(agentic_judge_context="trace_and_workspace", **facts)
    question = make_question(0, workspace_path="rivers")
    notes = WorkspaceChecks(root, config, [question], {question.id: rubric}).unkept_traces()
    assert [note.partition(" has no effect: ")[0] for note in notes] == asked
    assert all("give a run directory" in note for note in notes)
    assert WorkspaceChecks(None, config, [question], {question.id: rubric}).unkept_traces() == []


# Results come first


def test_a_run_that_is_cut_off_while_a_workspace_is_kept_has_the_result(
    world: Make, make_question: Make, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow(workspace: Path, folder: Path, row: CaptureRow, *_: Any, **__: Any) -> CaptureRow:
        begun.set()
        ended.wait(10)
        raise OSError("the run was cut off")

    monkeypatch.setattr("karenina_runs.workspaces.workspaces.capture", slow)
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    prepared = here.prepare(here.config(workspace_output_mode="full"))

    async def cut_off() -> None:
        run = asyncio.ensure_future(execute(prepared, Destination(run_dir=tmp_path / "run")))
        assert await asyncio.to_thread(begun.wait, 10)
        run.cancel()
        ended.set()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cut_off())
    (line,) = (tmp_path / "run" / "results.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["metadata"]["question_id"] == "q0"
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "interrupted"
    assert not (tmp_path / "run" / "workspaces" / "manifest.jsonl").exists()


def test_a_folder_with_a_name_as_long_as_names_can_be_can_be_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "root" / ("ä" * 125)
    folder.mkdir(parents=True)
    (folder / "data.csv").write_text("loire")

    async def look() -> list[str]:
        spaces = Workspaces(tmp_path / "root", VerificationConfig(workspace_copy=False))
        async with spaces.lent(folder).investigation_copy() as place:
            assert place.parent == (tmp_path / "root").resolve()
            return files(place)

    assert asyncio.run(look()) == ["data.csv"]
    assert [path.name for path in (tmp_path / "root").iterdir()] == [folder.name]


@pytest.mark.parametrize("path", ["answer.txt", "/.karenina/x", ".karenina", ".karenina/../x", ".karenina//x", ""])
def test_files_are_kept_beneath_the_program_s_own_folder_alone(path: str) -> None:
    with pytest.raises(ContractError, match="beneath"):
        keep_file({}, None, path, "text")


def test_without_a_run_directory_a_file_stays_as_long_as_its_workspace_does(tmp_path: Path) -> None:
    assert keep_file(None, Workspace(tmp_path, is_copy=False), PATH, "text") is True
    assert keep_file(None, Workspace(tmp_path), PATH, "text") is False
    assert keep_file(None, None, PATH, "text") is False
