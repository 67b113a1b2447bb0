"""The commands of README.md are where .ci/run looks for them. See test_examples.py for what the first one prints."""

from __future__ import annotations

import re
import subprocess
import sys
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


def test_an_unknown_command_is_refused(repository: Path) -> None:
    script = repository / ".ci" / "readme_commands.py"
    ran = subprocess.run([sys.executable, script, "3"], capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "<!-- command 3 -->" in ran.stderr
