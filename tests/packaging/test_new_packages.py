"""What `karenina plugins new` writes, built and installed from wheels, keeps its promises with no edit."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from karenina_testing.authoring.package import KINDS

Run = Callable[..., subprocess.CompletedProcess[str]]
NEW = """
import sys
from karenina_cli.root import karenina
for kind in sys.argv[1:]:
    karenina(["plugins", "new", kind, f"made-{kind}"], standalone_mode=False)
"""
CHECK = """
import sys
from karenina_core.testing import plugin_checks, run_checks
for kind in sys.argv[2:]:
    checks = plugin_checks(f"made-{kind}", max_examples=int(sys.argv[1]) or None)
    run_checks(checks)
    print(kind, len(checks))
"""


@pytest.fixture(scope="module")
def began() -> Iterator[list[float]]:
    """When the first package was asked for; the seconds until the last test are printed (`pytest -s`)."""
    moments: list[float] = []
    yield moments
    print(f"\n{len(KINDS)} kinds, from `plugins new` to green: {time.monotonic() - moments[0]:.0f} s")


@pytest.fixture(scope="module")
def made(
    bare: Callable[..., Path],
    build: Callable[..., list[Path]],
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
    pip: Callable[[Path], list[str | Path]],
    began: list[float],
) -> Path:
    """An environment with karenina's kit and a package of every kind."""
    venv, folder = bare("karenina-core[testing]", "karenina-calls[http]"), tmp_path_factory.mktemp("made")
    began.append(time.monotonic())
    run([venv / "bin" / "python", "-c", NEW, *KINDS], folder)
    wheels = [next(out.glob("*.whl")) for out in build(*(folder / f"karenina-made-{kind}" for kind in KINDS))]
    run([*pip(venv), "install", "--quiet", "--no-index", "--no-deps", "--no-compile", *wheels], folder)
    return venv


def test_they_keep_their_promises(made: Path, run: Run, tmp_path: Path, long: bool) -> None:
    ran = run([made / "bin" / "python", "-c", CHECK, "0" if long else "15", *KINDS], tmp_path)
    checked = dict(line.split() for line in ran.stdout.splitlines())
    assert [kind for kind in KINDS if int(checked[kind]) <= 6] == [], "what it brings was not checked"


def test_a_command_checks_one(made: Path, run: Run, tmp_path: Path) -> None:
    ran = run([made / "bin" / "karenina", "plugins", "check", "made-loader", "--timeout", "100", "--json"], tmp_path)
    found = json.loads(ran.stdout)
    assert found["broken"] == 0
    assert found["kept"] > 6
