"""Ways to keep file tools within a folder that look right and are not: each law holds for ours, rejects the variant."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.files.workspace_tools import workspace_tools

SECRET = "of the outside"
Read = Callable[[Path, str], str]
"""What a root and a path give; what is refused raises an exception."""
Write = Callable[[Path, str, str], None]


def _called(root: Path, name: str, arguments: dict[str, Any]) -> str:
    run = next(tool.run for tool in workspace_tools(root) if tool.name == name)
    assert run is not None

    async def calling() -> Any:
        return await run(arguments)

    outcome = asyncio.run(calling())
    if outcome.is_error:
        raise ValueError(outcome.content)
    return str(outcome.content)


def read(root: Path, path: str) -> str:
    return _called(root, "read_file", {"path": path})


def write(root: Path, path: str, content: str) -> None:
    _called(root, "write_file", {"path": path, "content": content})


def _attempt(read: Read, root: Path, path: str) -> str:
    try:
        return read(root, path)
    except (OSError, ValueError):
        return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "data").mkdir(parents=True)
    (root / "data" / "file.txt").write_text("inside")
    for outside in (tmp_path / "outside", tmp_path / "work-2"):
        outside.mkdir()
        (outside / "file.txt").write_text(SECRET)
    return root


# A path that begins with the root's letters need not be beneath it.


def read_by_prefix(root: Path, path: str) -> str:
    full = os.path.realpath(root / path)
    if not full.startswith(str(root)):
        raise ValueError("outside")
    return Path(full).read_text()


def law_a_neighbour_is_not_beneath(read: Read, root: Path) -> None:
    assert _attempt(read, root, "data/file.txt") == "inside"
    assert _attempt(read, root, "../work-2/file.txt") != SECRET


def test_a_neighbour_of_a_longer_name_is_not_beneath(root: Path) -> None:
    law_a_neighbour_is_not_beneath(read, root)


def test_the_law_of_neighbours_rejects_prefixes(root: Path) -> None:
    with pytest.raises(AssertionError):
        law_a_neighbour_is_not_beneath(read_by_prefix, root)


# What was checked by its path need not be what is opened by it a moment later.


def read_after_a_check(root: Path, path: str) -> str:
    full = (root / path).resolve()
    if not full.is_relative_to(root.resolve()):
        raise ValueError("outside")
    return _all_of(os.open(full, os.O_RDONLY))


def read_without_following_the_last(root: Path, path: str) -> str:
    """The flag holds for the last name alone; a folder on the way is followed all the same."""
    full = (root / path).resolve()
    if not full.is_relative_to(root.resolve()):
        raise ValueError("outside")
    return _all_of(os.open(full, os.O_RDONLY | os.O_NOFOLLOW))


def _all_of(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as file:
        return file.read()


@contextmanager
def _exchanged_before_opening(number: int, root: Path) -> Iterator[None]:
    """Just before the opening of that number, the folder `data` becomes a link to the outside."""
    opened, count = os.open, 0

    def opening(*arguments: Any, **options: Any) -> int:
        nonlocal count
        if count == number:
            (root / "data").rename(root / "aside")
            (root / "data").symlink_to(root.parent / "outside")
        count += 1
        return opened(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opening)
        # what the system offers is asked for by function
        patch.setattr(os, "supports_dir_fd", os.supports_dir_fd | {opening})
        yield
    if (root / "aside").exists():
        (root / "data").unlink()
        (root / "aside").rename(root / "data")


def law_a_folder_that_becomes_a_link_is_not_followed(read: Read, root: Path) -> None:
    assert read(root, "data/file.txt") == "inside"
    for number in range(6):
        with _exchanged_before_opening(number, root):
            assert _attempt(read, root, "data/file.txt") != SECRET


def test_a_folder_that_becomes_a_link_is_not_followed(root: Path) -> None:
    law_a_folder_that_becomes_a_link_is_not_followed(read, root)


@pytest.mark.parametrize("variant", [read_after_a_check, read_without_following_the_last])
def test_the_law_of_exchanged_folders_rejects_checks_of_paths(root: Path, variant: Read) -> None:
    with pytest.raises(AssertionError):
        law_a_folder_that_becomes_a_link_is_not_followed(variant, root)


# A hard link is an ordinary file, and its content is somewhere else as well.


def law_a_second_name_of_a_file_outside_is_not_read(read: Read, root: Path) -> None:
    os.link(root.parent / "outside" / "file.txt", root / "hard.txt")
    assert _attempt(read, root, "hard.txt") != SECRET


def test_a_second_name_of_a_file_outside_is_not_read(root: Path) -> None:
    law_a_second_name_of_a_file_outside_is_not_read(read, root)


def test_the_law_of_second_names_rejects_checks_of_paths(root: Path) -> None:
    with pytest.raises(AssertionError):
        law_a_second_name_of_a_file_outside_is_not_read(read_after_a_check, root)


# Who writes into a file writes into all that have it, and a half-written file is read by others.


def write_in_place(root: Path, path: str, content: str) -> None:
    full = (root / path).resolve()
    if not full.is_relative_to(root.resolve()):
        raise ValueError("outside")
    with full.open("w", encoding="utf-8") as file:
        file.write(content[:3])
        file.write(content[3:])


def law_a_second_name_of_a_file_outside_is_not_written(write: Write, root: Path) -> None:
    os.link(root.parent / "outside" / "file.txt", root / "hard.txt")
    with suppress(OSError, ValueError):
        write(root, "hard.txt", "mine")
    assert (root.parent / "outside" / "file.txt").read_text() == SECRET


def law_who_has_a_file_open_keeps_what_it_was(write: Write, root: Path) -> None:
    with (root / "data" / "file.txt").open(encoding="utf-8") as before:
        write(root, "data/file.txt", "a new text")
        assert before.read() == "inside"
    assert (root / "data" / "file.txt").read_text() == "a new text"


WRITING = [law_a_second_name_of_a_file_outside_is_not_written, law_who_has_a_file_open_keeps_what_it_was]


@pytest.mark.parametrize("law", WRITING)
def test_files_are_replaced_and_not_written_into(root: Path, law: Callable[[Write, Path], None]) -> None:
    law(write, root)


@pytest.mark.parametrize("law", WRITING)
def test_the_laws_of_writing_reject_writing_in_place(root: Path, law: Callable[[Write, Path], None]) -> None:
    with pytest.raises(AssertionError):
        law(write_in_place, root)
