"""Processes of the command line that begin quickly: forked from one that has carried out such commands already, so
that everything is imported.

    with Forking() as forking:
        started = forking.start("resume", folder, "--quiet")
        started.kill()

Each of them is a process of its own that carries out the command as the console script does. Loaded by path; run as a
program it is the process that forks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 120.0


class Forked:
    """A process that was forked."""

    def __init__(self, forking: Forking, pid: int, err: Path) -> None:
        self._forking, self.pid, self._err = forking, pid, err

    @property
    def stdout(self) -> str:
        return _text(self._err.with_suffix(".out"))

    @property
    def stderr(self) -> str:
        return _text(self._err)

    def poll(self, timeout: float = 0.0) -> int | None:
        """How it ended, if it has by then: negative for a signal."""
        return self._forking.code(self.pid, timeout)

    def wait(self, timeout: float = PATIENCE) -> int:
        code = self.poll(timeout)
        assert code is not None, f"process {self.pid} did not end:\n{self.stderr}"
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:  # until this was seen, nobody else has its id
            os.kill(self.pid, number)

    def kill(self) -> int:
        self.send_signal(signal.SIGKILL)
        return self.wait()


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""  # it may not have got that far


class Forking:
    """The process that forks, while its `with` block runs. `warm`: commands that it carries out before."""

    def __init__(self, *warm: list[str]) -> None:
        self._warm = list(warm)
        self._codes: dict[int, int] = {}
        self._begun = 0

    def __enter__(self) -> Forking:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(self._warm)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._rest = b""
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()  # it kills what it has forked, and ends
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            self._from.close()
            self._folder.cleanup()

    def start(
        self,
        *words: object,
        prelude: str = "",
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        ends: bool = False,
    ) -> Forked:
        """A process of `karenina WORDS`. `prelude` is code that it executes before, `folder` where it works,
        `environment` its whole environment where it is not ours. `ends`: as an interpreter does, which waits for its
        threads; otherwise it is gone with the command."""
        self._begun += 1
        err = Path(self._folder.name) / str(self._begun)
        wanted: dict[str, Any] = {"words": list(map(str, words)), "err": str(err), "prelude": prelude, "ends": ends}
        wanted |= {"folder": str(folder or Path.cwd())}
        wanted |= {"environment": dict(os.environ if environment is None else environment)}
        self._to.write(json.dumps(wanted).encode() + b"\n")
        self._to.flush()
        deadline = time.monotonic() + PATIENCE
        while (answer := self._answer(deadline - time.monotonic())) is not None:
            if "begun" in answer:
                self._codes.pop(answer["begun"], None)  # of one that has ended, and had the same id
                return Forked(self, answer["begun"], err)
        raise AssertionError("the process that forks does not answer")

    def code(self, pid: int, timeout: float) -> int | None:
        deadline = time.monotonic() + timeout
        while pid not in self._codes and self._answer(max(0.0, deadline - time.monotonic())) is not None:
            pass
        return self._codes.get(pid)

    def _answer(self, timeout: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + timeout
        while b"\n" not in self._rest:
            ready = select.poll()  # unlike `select.select`, also where a file descriptor is above 1023
            ready.register(self._from, select.POLLIN)
            if not ready.poll(1000 * max(0.0, deadline - time.monotonic())):
                return None
            more = os.read(self._from.fileno(), 65536)
            assert more, "the process that forks has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "ended" in answer:
            self._codes[answer["ended"]] = answer["code"]
        return answer


def serve(warm: str) -> None:
    """Fork a process for every line of stdin until there are no more."""
    out = os.dup(1)
    _redirect(os.devnull)
    for words in json.loads(warm):
        with contextlib.suppress(SystemExit):
            _carried_out(words)
    assert threading.active_count() == 1, "a thread cannot be forked"
    os.dup2(out, 1)
    running: dict[int, int] = {}  # pidfd: pid
    rest, alive = b"", True
    while alive:
        ready, _, _ = select.select([0, *running], [], [])
        for handle in ready:
            if handle:
                _tell(ended=(pid := running.pop(handle)), code=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os.close(handle)
            else:
                more = os.read(0, 65536)
                rest, alive = rest + more, bool(more)
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            pid = _forked(json.loads(line), list(running))
            running[os.pidfd_open(pid)] = pid
            _tell(begun=pid)
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)


def _forked(wanted: dict[str, Any], others: list[int]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    for handle in others:
        os.close(handle)
    _redirect(wanted["err"])
    _redirect(str(Path(wanted["err"]).with_suffix(".out")), 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    time.tzset()
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if wanted["ends"]:
        exec(wanted["prelude"], {})
        _carried_out(wanted["words"])
    try:
        exec(wanted["prelude"], {})  # what the test wants to happen in this process
        _carried_out(wanted["words"])
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)


def _carried_out(words: list[str]) -> NoReturn:
    from karenina_cli import main

    sys.argv = ["karenina", *words]
    main()


def _redirect(path: str, *outputs: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    for output in outputs or (1, 2):
        os.dup2(handle, output)
    os.close(handle)


def _tell(**facts: int) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
