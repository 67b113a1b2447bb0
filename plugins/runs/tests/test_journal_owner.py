"""One process writes to a run directory, and the others are told which."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.files.run_lock import LOCK, WAITS, RunLock, marked, owner_of
from karenina_runs.folder.directory import RunDirectory
from karenina_runs.journal.journal import Journal

from karenina_core.errors import RunDirectoryError

OWNER = """\
import sys, time
from pathlib import Path
from karenina_runs.files.run_lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(60)
"""

ELSEWHERE = """\
import importlib, os, pkgutil, signal, sys
import asyncio, multiprocessing, sqlite3, subprocess, tempfile  # parts of Python have their own ways there
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
for name in ("pread", "pwrite", "fork", "register_at_fork", "killpg", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1"):
    delattr(signal, name)
import karenina_core
for module in pkgutil.walk_packages(karenina_core.__path__, "karenina_core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from pathlib import Path
from karenina_core.errors import RunDirectoryError
from karenina_runs.journal.check import check
from karenina_runs.files.run_lock import RunLock
assert check(sys.argv[1]).sound
try:
    RunLock(Path(sys.argv[1])).acquire()
except RunDirectoryError as error:
    print(error)
"""


@contextmanager
def owner(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "mine\n"
            yield process
        finally:
            process.kill()


def test_a_second_owner_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        begun = time.monotonic()
        with pytest.raises(RunDirectoryError, match=f"is being written by process {process.pid};.*kill -TERM"):
            RunLock(tmp_path).acquire()
        with pytest.raises(RunDirectoryError, match=f"process {process.pid};"):
            Journal.open(tmp_path)
        assert time.monotonic() - begun < 20
        assert owner_of(tmp_path) == process.pid
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run.lock"]


def test_a_stopped_owner_keeps_what_it_owns_and_a_killed_one_does_not(tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(RunDirectoryError, match=f"process {process.pid};"):
            RunLock(tmp_path).acquire()
        os.kill(process.pid, signal.SIGCONT)
        with pytest.raises(RunDirectoryError):
            RunLock(tmp_path).acquire()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert owner_of(tmp_path) is None
        with RunLock(tmp_path):
            assert owner_of(tmp_path) == os.getpid()


def test_within_a_process_there_is_one_owner_too(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        with pytest.raises(RunDirectoryError, match=f"process {os.getpid()};"):
            RunLock(tmp_path).acquire()
        with pytest.raises(RunDirectoryError, match=f"process {os.getpid()};"):
            Journal.open(tmp_path)
    assert owner_of(tmp_path) is None
    RunLock(tmp_path).acquire().release()


def test_who_is_refused_has_nothing_open(tmp_path: Path, times_open: Callable[[Path], int]) -> None:
    with RunLock(tmp_path) as lock:
        for _ in range(2):
            with pytest.raises(RunDirectoryError, match="is being written"):
                RunLock(tmp_path).acquire()
        assert times_open(lock.path) == 1


def test_a_lock_that_cannot_be_written_is_not_held(tmp_path: Path, times_open: Callable[[Path], int]) -> None:
    lock = RunLock(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(RunDirectoryError, match=r"run\.lock cannot be written: .*; free space"):
            lock.acquire()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not lock.held
    assert times_open(lock.path) == 0
    with lock.acquire():
        assert owner_of(tmp_path) == os.getpid()


def test_where_the_system_has_no_lock_left_nothing_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times_open: Callable[[Path], int]
) -> None:
    def flock(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    facts = {name: getattr(fcntl, name) for name in ("LOCK_EX", "LOCK_SH", "LOCK_NB", "LOCK_UN")}
    monkeypatch.setattr("karenina_runs.files.run_lock.fcntl", SimpleNamespace(flock=flock, **facts))
    lock = RunLock(tmp_path)
    with pytest.raises(RunDirectoryError, match=f"cannot be written: {os.strerror(errno.ENOLCK)}"):
        lock.acquire()
    assert not lock.held
    assert times_open(lock.path) == 0


@pytest.mark.parametrize("waits", [1, WAITS])
def test_who_asks_for_the_owner_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    """Whoever asks holds the lock for a moment: others who ask may hold it too, and an owner waits for its end."""
    RunLock(tmp_path).acquire().release()
    with (tmp_path / LOCK).open("rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert owner_of(tmp_path) is None
        waited = []

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == waits:
                fcntl.flock(asking, fcntl.LOCK_UN)

        monkeypatch.setattr("karenina_runs.files.run_lock.time", SimpleNamespace(sleep=sleep))
        with RunLock(tmp_path):
            assert owner_of(tmp_path) == os.getpid()
        assert len(waited) == waits


def test_a_child_that_outlives_its_owner_owns_nothing(tmp_path: Path) -> None:
    lock = RunLock(tmp_path).acquire()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        assert owner_of(tmp_path) == os.getpid()
        lock.release()
        with RunLock(tmp_path):
            assert owner_of(tmp_path) == os.getpid()
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


def test_of_two_journals_with_a_lock_of_their_caller_the_caller_releases_it(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lock:
        Journal.open(tmp_path, lock=lock).close()
        assert lock.held
        assert owner_of(tmp_path) == os.getpid()
        Journal.open(tmp_path, lock=lock).close()
    assert owner_of(tmp_path) is None


def test_what_the_journal_held_survives_its_owner(tmp_path: Path) -> None:
    assert marked(tmp_path) == {}
    with RunLock(tmp_path) as lock:
        lock.mark({"calls": 12, "results": 5})
        lock.mark({"calls": 9})
    assert marked(tmp_path) == {"calls": 9}
    with RunLock(tmp_path):
        assert marked(tmp_path) == {"calls": 9}


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "that of another process"])
def test_an_owner_whose_lock_was_removed_writes_neither_the_manifest_nor_the_journal(
    tmp_path: Path, replaced: bool
) -> None:
    request = Request(
        "llm", {"interface": "i", "model_name": "m"}, "generation", 1, ({"role": "user", "content": "?"},)
    )

    async def work() -> None:
        directory = RunDirectory(tmp_path)
        directory.lock.acquire()
        directory.update(status="running")
        journal = Journal.open(tmp_path, lock=directory.lock)
        directory.lock.check()
        (tmp_path / LOCK).unlink()
        if replaced:
            (tmp_path / LOCK).touch()
        before = (tmp_path / "manifest.json").read_bytes()
        with pytest.raises(OSError, match="another process may write here now"):
            directory.lock.check()
        with pytest.raises(RunDirectoryError, match="another process may write here now"):
            directory.update(status="completed")
        with pytest.raises(RunDirectoryError, match="another process may write here now"):
            await journal.put(StoredCall(request.key, 0, request), {"reply": {}}, CallFacts())
        with contextlib.suppress(RunDirectoryError):
            await journal.aclose()
        directory.release()
        assert (tmp_path / "manifest.json").read_bytes() == before

    asyncio.run(work())


def test_an_owner_whose_lock_was_removed_keeps_no_other_from_writing(tmp_path: Path) -> None:
    first, second = (
        Request("llm", {"interface": "i", "model_name": "m"}, "generation", 1, ({"role": "user", "content": text},))
        for text in "ab"
    )

    async def work() -> None:
        lost = Journal.open(tmp_path)
        (tmp_path / LOCK).unlink()
        with pytest.raises(RunDirectoryError, match="another process may write here now"):
            await lost.put(StoredCall(first.key, 0, first), {"reply": {}}, CallFacts())
        other = Journal.open(tmp_path)
        await other.put(StoredCall(second.key, 0, second), {"reply": {}}, CallFacts())
        assert await other.take(StoredCall(first.key, 0, first)) is None
        assert await other.take(StoredCall(second.key, 0, second)) is not None
        await other.aclose()
        with pytest.raises(RunDirectoryError):
            await lost.aclose()

    asyncio.run(work())


def test_where_nobody_ever_was_there_is_no_owner(tmp_path: Path) -> None:
    assert owner_of(tmp_path) is None
    assert owner_of(tmp_path / "nothing") is None
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        RunLock(tmp_path / "nothing").acquire()
    assert list(tmp_path.iterdir()) == []


def test_a_system_without_such_locks_can_read_runs_and_is_told_why_it_cannot_write_them(tmp_path: Path) -> None:
    """As Windows: what is missing there is taken away here."""
    Journal.open(tmp_path, run_id="the run").close()
    told = subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert told.stderr == ""
    assert "run this on Linux or macOS" in told.stdout
