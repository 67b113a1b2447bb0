"""Under CI a test that is skipped without being listed fails the session; without CI it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1]
TESTS = """
import pytest

def test_runs(): pass

def test_skips(): pytest.skip("no time")

@pytest.mark.parametrize("n", [1, 2])
def test_many(n): pytest.skip("no patience")

@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""
MODULE = "import pytest\npytest.importorskip('there_is_no_such_package')\n"
ALL = "tests/test_some.py::test_skips: slow\ntests/test_some.py::test_many: slower\n"


def session(folder: Path, listed: str, ci: str, other: str = "", *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on a folder with tests of its own, beside `tests`, as the plugins have them."""
    (folder / "tests").mkdir()
    (folder / "plugins").mkdir()
    for name in ("conftest.py", "rewriting.py"):
        shutil.copy(FOLDER / name, folder / "tests")
    (folder / "tests" / "skips.txt").write_text(listed, "utf-8")
    (folder / "tests" / "test_some.py").write_text(TESTS, "utf-8")
    (folder / "plugins" / "test_other.py").write_text(other or "def test_fine(): pass\n", "utf-8")
    always = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-p", "xdist"]
    command = [sys.executable, "-m", "pytest", *always, *options, "tests", "plugins"]
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to start is most of what it takes
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_listed_skips_pass(tmp_path: Path) -> None:
    ran = session(tmp_path, ALL, "true")
    assert ran.returncode == 0, ran.stdout
    assert "2 passed, 3 skipped, 1 xfailed" in ran.stdout


def test_unlisted_skips_and_skipped_modules_of_plugins_fail_under_ci(tmp_path: Path) -> None:
    ran = session(tmp_path, "tests/test_some.py::test_skips: slow\n", "1", MODULE)
    assert ran.returncode == 1, ran.stdout
    said = ran.stdout.split("skips.txt")[1]
    assert "tests/test_some.py::test_many[1]: Skipped: no patience" in said
    assert "plugins/test_other.py" in said
    assert "test_skips:" not in said


def test_what_workers_skip_counts_too(tmp_path: Path) -> None:
    ran = session(tmp_path, "tests/test_some.py::test_skips: slow\n", "true", MODULE, "-n", "2", "--dist", "loadfile")
    assert ran.returncode == 1, ran.stdout
    said = ran.stdout.split("skips.txt")[1]
    assert "tests/test_some.py::test_many[1]: Skipped: no patience" in said
    assert "plugins/test_other.py" in said
    assert "test_skips:" not in said


def test_without_ci_skips_are_free(tmp_path: Path, long: bool) -> None:
    for ci in ["false", "0", ""] if long else ["false"]:
        (folder := tmp_path / f"ci {ci}").mkdir()
        assert session(folder, "", ci).returncode == 0


def test_a_line_without_a_reason_stops_the_session(tmp_path: Path) -> None:
    ran = session(tmp_path, "tests/test_some.py::test_skips\n", "true")
    assert ran.returncode not in (0, 5)
    assert "write `test id: reason`" in ran.stdout + ran.stderr


def test_the_listed_files_exist(repository: Path) -> None:
    lines = (repository / "tests" / "skips.txt").read_text("utf-8").splitlines()
    tests = [line.partition(": ")[0] for line in lines if line and not line.startswith("#")]
    assert [test for test in tests if not (repository / test.partition("::")[0]).is_file()] == []
