"""Every distribution works beside nothing but what it declares: it is imported, and what it registers is active.

Each is placed in a folder of its own, and a process, which has imported the core alone, sees the folders of those that
are declared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("plugins/*/pyproject.toml"))
FOREIGN = {"compare", "litellm", "opentelemetry", "report", "trust"}
"""Those that depend on packages which the folder of wheels has not, such as numpy."""
NAMES = [folder.name for folder in FOLDERS if folder.name not in FOREIGN]
LOOK = """
import importlib, json, os, sys, traceback
sys.path[:0] = json.loads(sys.argv[1])
from karenina_core import Karenina
for name, folders in json.loads(sys.argv[2]).items():
    sys.stdout.flush()
    if not (pid := os.fork()):
        try:
            sys.path[:0] = folders
            importlib.import_module(f"karenina_{name.replace('-', '_')}")
            app = Karenina.installed()
            infos = (*app.plugins, *app.kinds, *app.sections, *app.result_parts)
            told = [[info.name, info.distribution, info.state, info.reason] for info in infos]
        except BaseException:
            told = traceback.format_exc()
        print(json.dumps([name, told]), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, name
"""
"""A process that sees what is in some folders looks, forked for each distribution, at what is in its own as well."""


@pytest.fixture(scope="module")
def folders(
    installed: dict[str, Distribution], placed: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """`{distribution: folder}` of what karenina's wheels and those that they need hold."""
    folder = tmp_path_factory.mktemp("alone")
    for name, found in installed.items():
        placed(found, folder / name)
    return {name: str(folder / name) for name in installed}


@pytest.fixture(scope="module")
def looked(folders: dict[str, str], closure: Callable[..., dict[str, Distribution]]) -> dict[str, Any]:
    """`{name: [[name, distribution, state, reason], ...]}` of what is there beside a distribution, or a traceback."""
    core = [folders[each] for each in closure("karenina-core")]
    seen = {name: [folders[each] for each in closure(f"karenina-{name}")] for name in NAMES}
    # -I -S: nothing of the environment that runs the tests, and of its working folder, is seen
    alone = [sys.executable, "-I", "-S", "-c", LOOK, json.dumps(core), json.dumps(seen)]
    ran = subprocess.run(alone, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(map(json.loads, ran.stdout.splitlines()))


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_works_alone(name: str, projects: dict[str, Path], looked: dict[str, Any]) -> None:
    listed = looked[name]
    assert isinstance(listed, list), listed
    assert [entry for entry in listed if entry[2] != "active"] == []
    distribution = f"karenina-{name}"
    project = tomllib.loads((projects[distribution] / "pyproject.toml").read_text("utf-8"))["project"]
    entries = set(project.get("entry-points", {}).get("karenina.plugins", {}))
    assert entries <= {entry[0] for entry in listed if entry[1] == distribution}
