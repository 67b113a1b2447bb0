"""Traces as files: one name for every agent, who keeps them, and what is left of their folders."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from karenina_agentic.folders import own_folder, written_trace

from karenina_core import AgenticRubricTrait
from karenina_core.testing import Reply
from karenina_core.values.message import ToolUseBlock

TRACE = "I looked at the sales."
TRACES = Path(".karenina", "traces")


def trait(name: str = "right", **facts: Any) -> AgenticRubricTrait:
    known: dict[str, Any] = {"kind": "boolean", "description": f"Whether it is {name}."}
    return AgenticRubricTrait(name=name, **{**known, **facts})


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# One name


def test_agents_know_a_trace_by_one_name_whatever_it_is_called_in_the_workspace(
    evaluated: Any, scripted: Any, workspace: Path
) -> None:
    one = trait(materialize_trace=True, persist_trace=True)

    def reads(request: Any) -> Any:
        if request.messages[-1]["role"] == "tool":
            return "Read it."
        path = next(word for word in request.text.split() if word.startswith(".karenina/"))
        return Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": path})])

    first, second = (
        evaluated([one], scripted(reads, {"result": True}), workspace=workspace, response=TRACE) for _ in range(2)
    )
    files = [ran.details("right")["trace_file"] for ran in (first, second)]
    assert files[0] != files[1]
    assert [(workspace / file).read_text() for file in files] == [TRACE, TRACE]
    assert first.scripted.prompts() == second.scripted.prompts()
    assert first.traces == second.traces
    assert TRACE in (first.traces["right"] or "")


# Who keeps them


@pytest.mark.parametrize("strategy", ["individual", "shared"])
def test_only_traits_that_keep_the_trace_and_see_it_say_where_it_is(
    strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    traits = [
        trait("filed", materialize_trace=True),
        trait("keeper", materialize_trace=True, persist_trace=True),
        trait("reader", persist_trace=True),
        trait("blind", context_mode="workspace_only", persist_trace=True),
        trait("inline"),
    ]
    model = scripted(scores={"result": True})
    ran = evaluated(traits, model, workspace=workspace, response=TRACE, agentic_rubric_strategy=strategy)
    files = {one.name: ran.details(one.name).get("trace_file") for one in traits}
    assert {name for name, file in files.items() if file} == {"keeper", "reader"}
    assert (workspace / files["keeper"]).read_text() == TRACE
    assert files["reader"] == files["keeper"]


def test_a_trait_that_sees_no_trace_has_another_ones_kept_without_its_path(
    evaluated: Any, scripted: Any, workspace: Path
) -> None:
    traits = [trait("filed", materialize_trace=True), trait("blind", context_mode="workspace_only", persist_trace=True)]
    ran = evaluated(traits, scripted(scores={"result": True}), workspace=workspace, response=TRACE)
    assert len(list((workspace / TRACES).iterdir())) == 2
    assert "trace_file" not in {**ran.details("filed"), **ran.details("blind")}


# Their folders


@pytest.mark.parametrize("last", [0, 1])
def test_the_last_of_several_items_in_one_folder_takes_the_empty_folders_away(last: int, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    items = [ExitStack(), ExitStack()]
    first, second = (item.enter_context(written_trace(TRACE, "q1", tmp_path, keep=False)) for item in items)
    assert first.path != second.path
    assert first.name == second.name == "trace_q1.txt"
    items[1 - last].close()
    assert len(list((tmp_path / TRACES).iterdir())) == 1
    items[last].close()
    assert names(tmp_path) == ["mine.txt"]


@pytest.mark.parametrize("there", [".karenina/notes.txt", ".karenina/traces/trace_q1.txt"])
def test_folders_with_anything_else_in_them_stay(there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(parents=True)
    (tmp_path / there).write_text("kept")
    with written_trace(TRACE, "q1", tmp_path, keep=False) as written:
        assert written.path is not None
        assert written.path.read_text() == TRACE
    assert there in names(tmp_path)
    assert (tmp_path / there).read_text() == "kept"
    assert not written.path.exists()


def test_items_can_make_and_remove_one_folder_at_the_same_time(tmp_path: Path) -> None:
    problems: list[str] = []
    begin = threading.Barrier(4)

    def work() -> None:
        begin.wait(10)
        for _ in range(60):
            with written_trace(TRACE, "q1", tmp_path, keep=False) as written:
                if written.path is None or written.path.read_text() != TRACE:
                    problems.append(written.problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert problems == []
    assert names(tmp_path) == []


def test_a_folder_that_another_item_takes_away_just_now_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, late = Path.mkdir, [tmp_path / TRACES, tmp_path / TRACES.parent]

    def mkdir(folder: Path, **given: Any) -> None:
        if folder in late:
            late.remove(folder)
            raise FileExistsError(folder)  # it was there, and is removed
        usual(folder, **given)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with written_trace(TRACE, "q1", tmp_path, keep=False) as written:
        assert (written.problem, late) == ("", [])
        assert written.path == tmp_path / TRACES / "trace_q1.txt"
    assert names(tmp_path) == []


@pytest.mark.parametrize("link", [".karenina", ".karenina/traces"])
def test_an_empty_folder_that_a_link_leads_to_is_left_alone(link: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "work"
    (outside / "traces").mkdir(parents=True)
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(outside if link == ".karenina" else outside / "traces")
    with written_trace(TRACE, "q1", folder, keep=False) as written:
        assert "is a link" in written.problem
    assert (outside / "traces").is_dir()
    assert (folder / link).is_symlink()


def test_a_file_in_the_way_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".karenina").write_text("a file")
    with written_trace(TRACE, "q1", tmp_path, keep=False) as written:
        assert written.path is None
        assert "is a file" in written.problem
    assert (tmp_path / ".karenina").read_text() == "a file"


# What is in an agent's own folder


def own(copy: Path, trace_file: Path | None) -> dict[str, str]:
    """The files of the folder of an agent whose copy of the workspace is `copy`."""

    @asynccontextmanager
    async def copies() -> AsyncIterator[Path]:
        yield copy

    async def look() -> dict[str, str]:
        async with own_folder(copy.parent, trace_file, copies, trace_as="trace_q1.txt") as folder:
            assert folder == copy
            return {name: (copy / name).read_text() for name in names(copy) if (copy / name).is_file()}

    return asyncio.run(look())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Where a copy of a workspace is, made by somebody who leaves no trace out."""
    made = tmp_path / "copy"
    made.mkdir()
    (made / "totals.csv").write_text("42")
    return made


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    file = tmp_path / "trace_q1_2.txt"
    file.write_text(TRACE)
    return file


@pytest.mark.parametrize("given", [True, False])
def test_traces_in_a_copy_are_taken_out_whoever_made_it(given: bool, copy: Path, trace_file: Path) -> None:
    (copy / TRACES).mkdir(parents=True)
    (copy / TRACES / "trace_other.txt").write_text("of another answer")
    expected = {".karenina/traces/trace_q1.txt": TRACE} if given else {}
    assert own(copy, trace_file if given else None) == {"totals.csv": "42", **expected}


@pytest.mark.parametrize("link", [".karenina", ".karenina/traces"])
@pytest.mark.parametrize("given", [True, False])
def test_nothing_is_written_or_removed_where_a_link_in_a_copy_leads(
    given: bool, link: str, copy: Path, trace_file: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "traces").mkdir(parents=True)
    (outside / "traces" / "precious.txt").write_text("precious")
    (copy / link).parent.mkdir(exist_ok=True)
    (copy / link).symlink_to(outside if link == ".karenina" else outside / "traces")
    found = own(copy, trace_file if given else None)
    assert names(outside) == ["traces", "traces/precious.txt"]
    assert found == {"totals.csv": "42", **({".karenina/traces/trace_q1.txt": TRACE} if given else {})}


def test_no_temporary_folder_is_made_where_somebody_else_makes_the_copy(
    copy: Path, trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> str:
        raise AssertionError("a folder that is not needed")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    assert own(copy, trace_file)["totals.csv"] == "42"
