"""README.md's first command prints what README.md shows, and both commands are where .ci/run looks for them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text("utf-8")


def _printed_command(repository: Path, name: str) -> str:
    script = repository / ".ci" / "readme_commands.py"
    ran = subprocess.run([sys.executable, script, name], capture_output=True, text=True, check=True)
    return ran.stdout.removesuffix("\n")


@pytest.mark.parametrize("name", ["1", "2"])
def test_a_command_is_one_line_that_installs_first(repository: Path, readme: str, name: str) -> None:
    command = _printed_command(repository, name)
    assert command in readme
    assert "\n" not in command
    assert re.match(
        r"pip install -r requirements-build\.txt && pip install --no-build-isolation -r requirements[\w-]*\.txt && \w",
        command,
    )


def test_the_first_command_prints_what_is_shown(
    repository: Path, readme: str, tmp_path: Path, matches: Callable[[str, str], bool]
) -> None:
    shutil.copytree(repository / "examples", tmp_path / "examples")
    command = _printed_command(repository, "1").rpartition(" && ")[2]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KARENINA_")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    shown = re.search(r"<!-- output 1 -->\n```text\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    assert matches(shown[1], ran.stdout), ran.stdout


def test_an_unknown_command_is_refused(repository: Path) -> None:
    script = repository / ".ci" / "readme_commands.py"
    ran = subprocess.run([sys.executable, script, "3"], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "<!-- command 3 -->" in ran.stderr
