"""Asserts of tests are rewritten once for all workers: each would do it for every file, half a minute of work."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import pytest


def test_files(config: pytest.Config) -> list[Path]:
    """Those that a session without names of single files or tests collects, largest first."""
    folders = [Path(config.invocation_params.dir, word) for word in config.args]
    found = {file for folder in folders for name in ("test_*.py", "conftest.py") for file in folder.rglob(name)}
    return sorted(found, key=lambda file: (-file.stat().st_size, file))


def rewrite(files: Sequence[Path], config: pytest.Config) -> None:
    """Keep the files with their asserts rewritten where every process of this pytest looks for them."""
    forking, processes = multiprocessing.get_context("fork"), os.cpu_count() or 1
    shares = [forking.Process(target=_rewritten, args=(files[n::processes], config)) for n in range(processes)]
    for share in shares:
        share.start()
    for share in shares:
        share.join()


def _rewritten(files: Sequence[Path], config: pytest.Config) -> None:
    """By what pytest does itself before it runs a file; a pytest that does it in another way does it later."""
    with contextlib.suppress(ImportError):
        from _pytest.assertion import rewrite as of_pytest

        state = config.stash[of_pytest.assertstate_key]
        for file in files:
            folder = of_pytest.get_cache_dir(file)
            kept = folder / (file.stem + of_pytest.PYC_TAIL)
            if of_pytest.try_makedirs(folder) and of_pytest._read_pyc(file, kept) is None:
                with contextlib.suppress(SyntaxError, UnicodeError):  # a worker says so
                    hashed, code = of_pytest._rewrite_test(file, config)
                    of_pytest._write_pyc(state, code, hashed, kept)
