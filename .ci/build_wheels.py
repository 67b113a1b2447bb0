"""Build the wheels of projects in one process, each by its own build backend (PEP 517), which must be installed.

`pip` starts three processes for a project. Usage: build_wheels.py FOLDER PROJECT ..., folders all.
"""

import importlib
import os
import sys
import tomllib
from pathlib import Path


def build(folder: Path, projects: list[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for project in projects:
        os.chdir(project)  # a backend builds the project in whose folder it is called
        table = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
        importlib.import_module(table["build-system"]["build-backend"]).build_wheel(str(folder))


if __name__ == "__main__":
    folder, *projects = [Path(name).resolve() for name in sys.argv[1:]]
    build(folder, projects)
