"""Asserts of all tests are rewritten once, before the workers of pytest begin: they find the files and read them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1]
COUNTING = """
import os
from _pytest.assertion import rewrite

REWRITE = rewrite._rewrite_test


def counted(file, config):
    with open("rewritten", "a") as found:
        print(os.environ.get("PYTEST_XDIST_WORKER", "before"), file.name, file=found)
    return REWRITE(file, config)


rewrite._rewrite_test = counted
"""


def test_workers_rewrite_nothing(tmp_path: Path) -> None:
    for name in ("tests/inner", "plugins/x"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("conftest.py", "rewriting.py", "skips.txt"):
        shutil.copy(FOLDER / name, tmp_path / "tests")
    (tmp_path / "counting.py").write_text(COUNTING, "utf-8")
    files = ("tests/test_a.py", "tests/inner/test_b.py", "plugins/x/test_c.py")
    for name in files:
        (tmp_path / name).write_text("def test_it():\n    assert 1 + 1 == 2\n", "utf-8")
    (tmp_path / "tests" / "test_broken.py").write_text("def test_it(:\n", "utf-8")
    own = ("PYTHONDONTWRITEBYTECODE", "PYTEST_XDIST_WORKER")  # the latter of the worker that this test runs in
    kept = {name: value for name, value in os.environ.items() if name not in own}
    options = ("-q", "-n", "2", "--import-mode=importlib", "-p", "xdist", "-p", "counting", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests", "plugins"],
        cwd=tmp_path,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "SyntaxError" in ran.stdout, ran.stdout + ran.stderr
    rewritten = (tmp_path / "rewritten").read_text("utf-8").splitlines()
    assert sorted(line for line in rewritten if line.endswith(("_a.py", "_b.py", "_c.py"))) == [
        *("before test_a.py", "before test_b.py", "before test_c.py")
    ]
