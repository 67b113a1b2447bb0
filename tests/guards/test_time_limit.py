"""A test that hangs fails with a traceback, also where it hangs in C code that no signal interrupts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HANGS = "import asyncio\n\ndef test_waits():\n    asyncio.run(asyncio.sleep(3600))\n\ndef test_fine(): pass\n"
HANGS_IN_C = "import itertools\n\ndef test_sums():\n    sum(itertools.repeat(0))\n"
EXAMPLES = "from hypothesis import settings\n\ndef test_it(): assert settings().max_examples == 30\n"
SLOW = "import time\n\ndef test_is_slow():\n    time.sleep(3)\n"


def session(
    repository: Path, folder: Path, tests: str, *options: str, of: str = "tests"
) -> subprocess.CompletedProcess[str]:
    """Pytest with the settings of this repository, but for limits of one second and of two. The tests are `of` the core
    or of the plugins, and no others are named."""
    for name in ("tests/conftest.py", "tests/rewriting.py", "tests/skips.txt", "plugins/conftest.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(repository / name, folder / name)
    (folder / of / "test_some.py").write_text(tests, "utf-8")
    plugins = [word for name in ("no:cacheprovider", "xdist", "pytest_timeout") for word in ("-p", name)]
    settings = ["-c", repository / "pyproject.toml", "--rootdir", folder, *plugins]
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=2"]
    command = [sys.executable, "-m", "pytest", *settings, *limits, *options, folder / of]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to start is most of what it takes
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_every_test_has_a_limit(core_pyproject: dict[str, Any]) -> None:
    settings = core_pyproject["tool"]["pytest"]["ini_options"]
    assert 0 < settings["timeout"] < settings["faulthandler_timeout"] <= 600
    assert settings["faulthandler_exit_on_timeout"] is True


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "workers"])
def test_a_test_that_hangs_fails_and_the_others_go_on(repository: Path, tmp_path: Path, options: list[str]) -> None:
    ran = session(repository, tmp_path, HANGS, *options)
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert "test_waits - Failed: Timeout (>1.0s)" in ran.stdout


def test_a_test_that_hangs_in_c_ends_its_process_and_says_where(repository: Path, tmp_path: Path) -> None:
    ran = session(repository, tmp_path, HANGS_IN_C)
    assert ran.returncode == 1
    assert "Timeout (0:00:02)!" in ran.stderr
    assert "in test_sums" in ran.stderr


@pytest.mark.parametrize("of", ["tests", "plugins"])
def test_full_forms_have_no_limit(repository: Path, tmp_path: Path, of: str) -> None:
    assert session(repository, tmp_path, SLOW, "--long", of=of).returncode == 0


def test_a_limit_and_few_examples_hold_also_where_only_tests_of_plugins_are_named(
    repository: Path, tmp_path: Path
) -> None:
    ran = session(repository, tmp_path, EXAMPLES + SLOW, of="plugins")
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout
    assert "test_is_slow - Failed: Timeout (>1.0s)" in ran.stdout
