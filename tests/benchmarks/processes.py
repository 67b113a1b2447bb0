"""Measurements in processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .workload import REPOSITORY

__all__ = ["KILLED", "measured", "share_imports"]

KILLED = 9
"""The exit code of a process that ends without a word when it has printed its numbers."""
WARM = f"{__package__}.warm"
_sharing = multiprocessing.get_context("forkserver")
_shares = False
Files = tuple[Path, Path]
"""Of standard output and of standard error."""


def share_imports() -> None:
    """From here on processes are forked from one that has carried out runs. They begin quickly, and have the memory of
    that one: this shows that everything can be measured, and says nothing about how much it is."""
    global _shares
    _sharing.set_forkserver_preload([WARM])
    _shares = True


def measured(module: str, *words: object, environment: Mapping[str, str] | None = None) -> list[Any]:
    """What `python -m tests.benchmarks.MODULE WORDS` prints last: numbers, as JSON. `environment`: variables beside
    those of this process; as some are read by an import, imports are not shared then. Raises RuntimeError, with what
    the process says, where it fails."""
    named = [f"{__package__}.{module}", *map(str, words)]
    with tempfile.TemporaryDirectory() as folder:
        out, err = files = Path(folder) / "out", Path(folder) / "err"
        code = _forked(named, files) if _shares and not environment else _started(named, files, environment or {})
        if code not in (0, KILLED):
            raise RuntimeError(f"{' '.join(named)} ended with {code}:\n{err.read_text('utf-8')}")
        found: list[Any] = json.loads(out.read_text("utf-8").splitlines()[-1])
    return found


def _started(named: list[str], files: Files, environment: Mapping[str, str]) -> int:
    command, variables = [sys.executable, "-m", *named], {**os.environ, **environment}
    with files[0].open("wb") as out, files[1].open("wb") as err:
        return subprocess.call(command, cwd=REPOSITORY, env=variables, stdout=out, stderr=err)


def _forked(named: list[str], files: Files) -> int:
    process = _sharing.Process(target=_carry_out, args=(named, files))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _carry_out(named: list[str], files: Files) -> None:
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.argv = named
    import_module(named[0]).main()
