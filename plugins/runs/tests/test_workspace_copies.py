"""Copies of folders: whole, their own, within their limits, whatever is in them and whoever changes it meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.files import folders
from karenina_calls.files.folders import FICLONE, Entry, Limits, contents, copy_tree, remove_tree

from karenina_core.errors import WorkspaceError

LIMITS = Limits(max_bytes=10_000_000, max_files=1000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a" * 3000)
    (folder / "deep" / "b.bin").write_bytes(os.urandom(2_500_000))
    (folder / "empty").touch()
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def looks(folder: Path) -> dict[str, tuple[str, bytes | str, bool]]:
    """Kind, content or target, and whether it is a program, by path."""
    found: dict[str, tuple[str, bytes | str, bool]] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path), False)
        elif path.is_dir():
            found[name] = ("folder", "", False)
        else:
            found[name] = ("file", path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR))
    return found


def held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


# Sharing blocks


def test_files_share_their_blocks_where_the_file_system_can(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that can is played: the request is what Linux documents, and no byte is copied besides."""
    asked: list[int] = []

    def clones(made: int, request: int, read: int) -> int:
        assert request == FICLONE == 0x40049409  # _IOW(0x94, 9, int)
        size = os.fstat(read).st_size
        assert os.lseek(read, 0, os.SEEK_CUR) == os.fstat(made).st_size == 0
        os.pwrite(made, os.pread(read, size, 0), 0)
        asked.append(size)
        return 0

    def never(*_: Any) -> None:
        raise AssertionError("the bytes were copied as well")

    monkeypatch.setattr("fcntl.ioctl", clones)
    monkeypatch.setattr(folders, "_copied_bytes", never)
    done = copy_tree(source, target, LIMITS)
    assert sorted(asked) == [0, 3000, 2_500_000]
    assert (done.files, done.bytes, done.left_out) == (3, 2_503_000, [])
    assert looks(target) == looks(source)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM])
def test_where_the_file_system_cannot_the_bytes_are_copied(
    code: int, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.ioctl", refuses)
    assert copy_tree(source, target, LIMITS).bytes == 2_503_000
    assert looks(target) == looks(source)


def test_what_is_written_to_a_copy_stays_in_it(source: Path, target: Path) -> None:
    """On this file system as it is, cloned or copied."""
    before = looks(source)
    copy_tree(source, target, LIMITS)
    for path in ("a.txt", "deep/b.bin"):
        with (target / path).open("r+b") as file:
            file.seek(100)
            file.write(b"changed")
    assert looks(source) == before
    assert looks(target) != before
    assert (source / "a.txt").stat().st_mtime_ns != (target / "a.txt").stat().st_mtime_ns


# Limits


def test_no_more_than_the_limit_is_ever_written(source: Path, target: Path) -> None:
    for number in range(50):
        (source / f"{number:02}.txt").write_bytes(b"x" * 1000)
    with pytest.raises(WorkspaceError, match=r"more than 20500 bytes; take some out, or raise workspace_max_bytes"):
        copy_tree(source, target, Limits(max_bytes=20_500, max_files=1000))
    assert held(target) == 20_000
    remove_tree(target)
    target.mkdir()
    with pytest.raises(WorkspaceError, match=r"more than 7 files and folders; .*raise workspace_max_files"):
        copy_tree(source, target, Limits(max_bytes=10**9, max_files=7))
    assert len(list(target.rglob("*"))) == 7


def test_a_sparse_file_counts_with_its_whole_length_and_is_refused_before_it_fills_the_disk(
    source: Path, target: Path
) -> None:
    os.truncate(source / "a.txt", 10**13)
    began = time.monotonic()
    with pytest.raises(WorkspaceError, match="workspace_max_bytes"):
        copy_tree(source, target, LIMITS)
    assert time.monotonic() - began < 1
    assert held(target) == 0
    os.truncate(source / "a.txt", 5_000_000)
    copy_tree(source, target, LIMITS)
    assert looks(target) == looks(source)


def test_a_file_that_grows_while_it_is_copied_has_an_end(source: Path, target: Path) -> None:
    def grows(by: int) -> Callable[[Entry], bool]:
        def wanted(entry: Entry) -> bool:
            if entry.path == "a.txt":
                os.truncate(source / "a.txt", by)
            return True

        return wanted

    assert copy_tree(source, target, LIMITS, wanted=grows(9000)).bytes == 2_509_000
    remove_tree(target)
    target.mkdir()
    with pytest.raises(WorkspaceError, match=r"a\.txt grew while it was copied; raise workspace_max_bytes"):
        copy_tree(source, target, LIMITS, wanted=grows(10**12))
    assert held(target) == 0


def test_a_tree_that_is_too_deep_is_refused(source: Path, target: Path) -> None:
    os.makedirs(source / "/".join("d" * 70))
    with pytest.raises(WorkspaceError, match="deeper than 64 folders; make the tree flatter"):
        copy_tree(source, target, LIMITS)


def test_hard_links_become_files_of_their_own_and_each_counts(source: Path, target: Path) -> None:
    os.link(source / "a.txt", source / "deep" / "same.txt")
    with pytest.raises(WorkspaceError, match="workspace_max_bytes"):
        copy_tree(source, target, Limits(max_bytes=2_505_000, max_files=1000))
    remove_tree(target)
    target.mkdir()
    copy_tree(source, target, LIMITS)
    assert {path.stat().st_nlink for path in target.rglob("*") if path.is_file()} == {1}


# What is no file


def test_pipes_sockets_and_devices_are_told_and_never_opened(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(source / "pipe")
    monkeypatch.chdir(source)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        expected = ["pipe", "socket"]
        try:
            os.mknod(source / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            expected = ["device", *expected]
        except PermissionError:  # only administrators make devices
            pass
        done = copy_tree(source, target, LIMITS)
    assert done.left_out == [f"{name} is neither a file nor a folder nor a link" for name in expected]
    assert sorted(path.name for path in target.iterdir()) == ["a.txt", "deep", "empty"]


def becomes(path: Path, make: Callable[[Path], object]) -> Callable[[Entry], bool]:
    """Puts something else in the place of a path after it was looked at and before it is opened."""

    def wanted(entry: Entry) -> bool:
        if entry.path == path.name:
            path.rename(path.with_name("away"))
            make(path)
        return True

    return wanted


@pytest.mark.parametrize("name", ["a.txt", "deep"])
@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_is_exchanged_while_it_is_copied_leads_nowhere(
    name: str, what: str, source: Path, target: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    leads_to = outside if name == "deep" else outside / "secret.txt"
    make = {"link": lambda path: path.symlink_to(leads_to), "pipe": os.mkfifo}[what]
    with pytest.raises(OSError):
        copy_tree(source, target, LIMITS, wanted=becomes(source / name, make))
    assert all(content != b"secret" for _, content, _ in looks(target).values())


# Whatever the names

NAMES = st.one_of(
    st.sampled_from(
        ["-rf", "~", " ", "a\nb", "\x1b[2J", "*", "é", "e\u0301", "\udcff", "..a", "a..", "x" * 255, "CON"]
    ),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
).filter(lambda name: name not in (".", "..") and len(os.fsencode(name)) <= 255 and name != ".karenina")
TREES: st.SearchStrategy[Mapping[str, Any]] = st.recursive(
    st.dictionaries(NAMES, st.tuples(st.binary(max_size=20), st.booleans()), max_size=3),
    lambda inner: st.dictionaries(NAMES, inner | st.tuples(st.binary(max_size=20), st.booleans()), max_size=3),
    max_leaves=8,
)


def plant(folder: Path, tree: Mapping[str, Any]) -> None:
    folder.mkdir()
    for name, what in tree.items():
        if isinstance(what, Mapping):
            plant(folder / name, what)
        else:
            (folder / name).write_bytes(what[0])
            (folder / name).chmod(0o755 if what[1] else 0o644)
            (folder / f"to {len(name)}").unlink(missing_ok=True)
            (folder / f"to {len(name)}").symlink_to(name)


@settings(database=None, deadline=None, max_examples=60)
@given(TREES)
def test_a_copy_is_the_folder_again_and_goes_without_a_trace(
    tmp_path_factory: pytest.TempPathFactory, tree: Mapping[str, Any]
) -> None:
    base = tmp_path_factory.mktemp("law")
    plant(base / "source", tree)
    (base / "target").mkdir()
    before = looks(base / "source")
    done = copy_tree(base / "source", base / "target", LIMITS)
    assert done.left_out == []
    assert looks(base / "target") == before
    assert {entry.path for entry in contents(base / "target", LIMITS)} == set(before)
    remove_tree(base / "target")
    assert [path.name for path in base.iterdir()] == ["source"]
    assert looks(base / "source") == before
    remove_tree(base)
