"""Every distribution works beside nothing but what it declares: it is imported, and what it registers is active.

Each is placed in a folder of its own, and a process sees the folders of those that are declared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def folders(
    installed: dict[str, Distribution], placed: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """`{distribution: folder}` of what karenina's wheels and those that they need hold."""
    folder = tmp_path_factory.mktemp("alone")
    for name, found in installed.items():
        placed(found, folder / name)
    return {name: str(folder / name) for name in installed}


@pytest.mark.parametrize("name", [folder.name for folder in FOLDERS if folder.name not in FOREIGN])
def test_a_distribution_works_alone(
    name: str, projects: dict[str, Path], folders: dict[str, str], closure: Callable[..., dict[str, Distribution]]
) -> None:
    distribution = f"karenina-{name}"
    seen = [folders[each] for each in closure(distribution)]
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
