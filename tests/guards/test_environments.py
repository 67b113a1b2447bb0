"""The command that runs tests in odd environments sets each variable, one after the other, and says which one fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.environments import VARIABLES, failed

LOOKS = """\
import os

NAMES = {names!r}

def test_one_is_set():
    found = [name for name in NAMES if name in os.environ]
    with open({file!r}, "a") as file:
        print(*(f"{{name}}={{os.environ[name]}}" for name in found), file=file)
    assert found != ["X_TOKEN"]
"""


def test_each_variable_is_set_alone_and_one_that_makes_a_test_fail_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to start is most of what it takes
    seen, test = tmp_path / "seen", tmp_path / "test_looks.py"
    test.write_text(LOOKS.format(names=list(VARIABLES), file=str(seen)), "utf-8")
    assert failed([str(test), "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull]) == ["X_TOKEN=metadata"]
    assert seen.read_text("utf-8").splitlines() == [f"{name}={value}" for name, value in VARIABLES.items()]
