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
    for kind in KINDS:
        run([venv / "bin" / "karenina", "plugins", "new", kind, f"made-{kind}"], folder)
    wheels = [next(out.glob("*.whl")) for out in build(*(folder / f"karenina-made-{kind}" for kind in KINDS))]
    run([*pip(venv), "install", "--quiet", "--no-index", "--no-deps", "--no-compile", *wheels], folder)
    return venv


@pytest.mark.parametrize("kind", KINDS)
def test_it_keeps_its_promises(kind: str, made: Path, run: Run, tmp_path: Path, long: bool) -> None:
    options = ["--timeout", "100", "--json", *([] if long else ["--examples", "15"])]
    ran = run([made / "bin" / "karenina", "plugins", "check", f"made-{kind}", *options], tmp_path)
    found = json.loads(ran.stdout)
    assert found["broken"] == 0
    assert found["kept"] > 6, "what it brings was not checked"
