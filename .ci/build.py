"""Build sdist and wheel of projects in one process, each by its own build backend (PEP 517), which must be installed.

`pip` starts three processes for a project. Usage: build.py PROJECT FOLDER [PROJECT FOLDER ...]
"""

import importlib
import os
import sys
import tomllib
from pathlib import Path


def build(project: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(project)  # a backend builds the project in whose folder it is called
    table = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    backend = importlib.import_module(table["build-system"]["build-backend"])
    backend.build_sdist(str(folder))
    backend.build_wheel(str(folder))


if __name__ == "__main__":
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    for project, folder in zip(paths[::2], paths[1::2], strict=True):
        build(project, folder)
