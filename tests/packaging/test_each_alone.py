"""Every distribution works beside nothing but what it declares: it is imported, and what it registers is active.

Each wheel is unpacked into a folder of its own, and a process sees the folders of the distributions that are declared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("plugins/*/pyproject.toml"))
FOREIGN = {"compare", "litellm", "opentelemetry", "report", "trust"}
"""Those that depend on packages which the folder of wheels has not, such as numpy."""
LOOK = """
import importlib, json, sys
from karenina_core import Karenina
importlib.import_module(sys.argv[1])
app = Karenina.installed()
infos = (*app.plugins, *app.kinds, *app.sections, *app.result_parts)
print(json.dumps([[info.name, info.distribution, info.state, info.reason] for info in infos]))
"""


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


@pytest.fixture(scope="module")
def unpacked(
    wheels: Path, projects: dict[str, Path], build: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """`{distribution: folder}` of what karenina's wheels and those that they need hold."""
    folder = tmp_path_factory.mktemp("unpacked")
    ours = [
        built
        for name, project in projects.items()
        if name.removeprefix("karenina-") not in FOREIGN
        for built in build(project).glob("*.whl")
    ]
    found = {}
    for path in (*wheels.glob("*.whl"), *ours):
        name = normal(path.name.partition("-")[0])
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder / name)
        found[name] = folder / name
    return found


def declared(name: str, unpacked: dict[str, Path]) -> set[str]:
    """The distribution, and all that it declares, directly or not. Versions fit."""
    waiting, seen = [Requirement(name)], set()
    while waiting:
        wanted = waiting.pop()
        (info,) = unpacked[normal(wanted.name)].glob("*.dist-info")
        metadata = PathDistribution(info)
        assert wanted.specifier.contains(metadata.version, prereleases=True), f"{wanted} is not {metadata.version}"
        for extra in {"", *wanted.extras}:
            if (normal(wanted.name), extra) not in seen:
                seen.add((normal(wanted.name), extra))
                lines = map(Requirement, metadata.requires or ())
                waiting += [line for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]
    return {found for found, _ in seen}


@pytest.mark.parametrize("name", [folder.name for folder in FOLDERS if folder.name not in FOREIGN])
def test_a_distribution_works_alone(name: str, projects: dict[str, Path], unpacked: dict[str, Path]) -> None:
    distribution = f"karenina-{name}"
    seen = [str(unpacked[each]) for each in sorted(declared(distribution, unpacked))]
    # -I -S: nothing of the environment that runs the tests, and of its working folder, is seen
    alone = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {seen!r}\n{LOOK}"]
    ran = subprocess.run(
        [*alone, f"karenina_{name.replace('-', '_')}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    listed = json.loads(ran.stdout)
    assert [entry for entry in listed if entry[2] != "active"] == []
    project = tomllib.loads((projects[distribution] / "pyproject.toml").read_text("utf-8"))["project"]
    entries = set(project.get("entry-points", {}).get("karenina.plugins", {}))
    assert entries <= {entry[0] for entry in listed if entry[1] == distribution}
