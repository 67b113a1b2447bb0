"""Every distribution can be installed alone, with what it declares: it is imported, and what it registers is active."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("plugins/*/pyproject.toml"))
FOREIGN = {"compare", "litellm", "opentelemetry", "report"}
"""Those that depend on packages which the folder of wheels has not, such as numpy."""
LOOK = """
import importlib, json, sys
from karenina_core import Karenina
importlib.import_module(sys.argv[1])
app = Karenina.installed()
infos = (*app.plugins, *app.kinds, *app.sections, *app.result_parts)
print(json.dumps([[info.name, info.distribution, info.state, info.reason] for info in infos]))
"""


@pytest.mark.parametrize("name", [folder.name for folder in FOLDERS if folder.name not in FOREIGN])
def test_a_distribution_works_alone(
    name: str, projects: dict[str, Path], places: Callable[..., list[Path]], tmp_path: Path
) -> None:
    distribution = f"karenina-{name}"
    links = [option for place in places(distribution) for option in ("--find-links", str(place))]
    target = ["--quiet", "--no-index", "--no-compile", "--target", str(tmp_path / "site")]
    install = [sys.executable, "-m", "pip", "install", *target, *links, distribution]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    # -S: nothing of the environment that runs the tests is seen
    alone = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{LOOK}"]
    ran = subprocess.run(
        [*alone, f"karenina_{name.replace('-', '_')}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    listed = json.loads(ran.stdout)
    assert [entry for entry in listed if entry[2] != "active"] == []
    project = tomllib.loads((projects[distribution] / "pyproject.toml").read_text("utf-8"))["project"]
    declared = set(project.get("entry-points", {}).get("karenina.plugins", {}))
    assert declared <= {entry[0] for entry in listed if entry[1] == distribution}
