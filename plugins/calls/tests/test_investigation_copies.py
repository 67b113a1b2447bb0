"""A context that was made by hand lends copies of its workspace too, never the workspace itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from threading import get_ident

import pytest
from karenina_calls.files import investigation
from karenina_calls.files.investigation import temporary_copy

from karenina_core import VerificationConfig
from karenina_core.errors import WorkspaceError


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_what_an_investigation_does_is_seen_by_no_other(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "data.csv").write_text("1")

    async def look() -> Path:
        async with temporary_copy(tmp_path) as place:
            assert place is not None
            assert place.resolve() != tmp_path.resolve()
            assert (place / "deep" / "data.csv").read_text() == "1"
            (place / "deep" / "data.csv").write_text("spoiled")
            (place / "litter").write_text("x")
            return place

    gone = asyncio.run(look())
    assert not gone.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]
    assert (tmp_path / "deep" / "data.csv").read_text() == "1"


def test_traces_pipes_and_links_that_lead_away_are_not_in_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".karenina" / "traces").mkdir(parents=True)
    (work / "part" / ".karenina").mkdir(parents=True)
    (work / "a.txt").write_text("a")
    (work / "inside").symlink_to("a.txt")
    (work / "away").symlink_to(tmp_path)
    (work / "up").symlink_to("../elsewhere")
    os.mkfifo(work / "pipe")

    async def names() -> list[str]:
        async with temporary_copy(work) as place:
            assert place is not None
            return sorted(path.relative_to(place).as_posix() for path in place.rglob("*"))

    assert asyncio.run(names()) == ["a.txt", "inside", "part", "part/.karenina"]


def test_without_a_workspace_there_is_none_and_one_that_is_gone_is_reported(tmp_path: Path) -> None:
    async def look(workspace: Path | None) -> Path | None:
        async with temporary_copy(workspace) as place:
            return place

    assert asyncio.run(look(None)) is None
    with pytest.raises(WorkspaceError, match="cannot be copied"):
        asyncio.run(look(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        ({"workspace_max_bytes": 2999}, "workspace_max_bytes"),
        ({"workspace_max_files": 2}, "workspace_max_files"),
        ({"workspace_max_bytes": 3000, "workspace_max_files": 3}, None),
    ],
)
def test_a_copy_is_no_larger_than_the_configuration_allows(
    limits: dict[str, int], setting: str | None, tmp_path: Path, temporary: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in "abc":
        (work / name).write_text("x" * 1000)

    async def size() -> int:
        async with temporary_copy(work, VerificationConfig(**limits)) as place:
            assert place is not None
            return sum(path.stat().st_size for path in place.iterdir())

    if setting is None:
        assert asyncio.run(size()) == 3000
    else:
        with pytest.raises(WorkspaceError, match=f"raise {setting}"):
            asyncio.run(size())
    assert list(temporary.iterdir()) == []


def test_a_copy_is_taken_away_whatever_was_made_of_it_and_while_the_event_loop_goes_on(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, threads = tmp_path / "work", []
    (work / "deep").mkdir(parents=True)
    removed = investigation.remove_tree
    monkeypatch.setattr(investigation, "remove_tree", lambda path: (threads.append(get_ident()), removed(path)))

    async def spoil() -> None:
        async with temporary_copy(work) as place:
            assert place is not None
            (place / "deep" / "file").write_text("x")
            (place / "deep").chmod(0)
            raise RuntimeError("the investigation failed")

    with pytest.raises(RuntimeError, match="the investigation failed"):
        asyncio.run(spoil())
    assert list(temporary.iterdir()) == []
    assert threads != []
    assert get_ident() not in threads
