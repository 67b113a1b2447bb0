"""A file that is replaced has its old content or its new one, also when the power fails at any moment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.files.atomic_files import flush_folder, replacing, write_atomically, write_json

NEW = b"new " * 5000


@pytest.fixture
def flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reached the disk, in order: of a file its size, of the folder what the replaced file then held."""
    seen: list[Any] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        folder = os.path.sameopenfile(handle, place)
        seen.append(("folder", (tmp_path / "f").read_bytes()) if folder else ("file", os.fstat(handle).st_size))
        fsync(handle)

    place = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "fsync", watched)
    return seen


def test_all_of_a_file_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    flushed: list[Any], tmp_path: Path
) -> None:
    """Else the name might be on the disk without the content after a power failure."""
    (tmp_path / "f").write_bytes(b"old")
    with replacing(tmp_path / "f") as file:
        file.write(NEW)
    assert flushed == [("file", len(NEW)), ("folder", NEW)]


def test_a_json_document_is_written_in_the_same_way(flushed: list[Any], tmp_path: Path) -> None:
    document = {"name": "Zoë \ud800", "list": [1, None]}
    write_json(tmp_path / "f", document)
    data = (tmp_path / "f").read_bytes()
    assert json.loads(data) == {"name": "Zoë ?", "list": [1, None]}
    assert flushed == [("file", len(data)), ("folder", data)]


def test_the_names_of_a_folder_are_flushed_and_a_folder_that_cannot_be_is_let_be(
    flushed: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"here")
    flush_folder(tmp_path)
    assert flushed == [("folder", b"here")]
    flush_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("before", [None, b"old"])
def test_what_fails_on_the_way_leaves_what_was_there(tmp_path: Path, before: bytes | None) -> None:
    if before is not None:
        (tmp_path / "f").write_bytes(before)

    def interrupted() -> None:
        with replacing(tmp_path / "f") as file:
            file.write(NEW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_file_that_is_being_written_is_hidden_and_has_the_name_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    with replacing(tmp_path / "f"):
        (written,) = tmp_path.iterdir()
        assert written.name.startswith(".f.")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_keeps_its_permissions_and_a_new_one_has_those_of_any_new_file(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(mode)
    write_atomically(tmp_path / "f", NEW)
    assert (tmp_path / "f").stat().st_mode & 0o777 == mode
    write_atomically(tmp_path / "g", NEW)
    (tmp_path / "h").touch()
    assert (tmp_path / "g").stat().st_mode == (tmp_path / "h").stat().st_mode
