"""Print what karenina's distributions depend on, those left out that are named as arguments, one requirement a line.

Extras count where another distribution asks for them (`karenina-calls[http]`).

Usage: wheel_requirements.py [FOLDER ...], folders of plugins/.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = re.compile(r"(karenina-[a-z-]+)(?:\[([\w,-]+)\])?")


def projects() -> dict[str, dict[str, Any]]:
    """The table `project` of the core and of every plugin, by the name of the distribution."""
    files = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    found = [tomllib.loads(file.read_text("utf-8"))["project"] for file in files]
    return {project["name"]: project for project in found}


def needed(tables: dict[str, dict[str, Any]], left_out: set[str]) -> Iterator[str]:
    """Requirements on packages of others."""
    for name in tables.keys() - left_out:
        for requirement in tables[name].get("dependencies", []):
            if ours := OURS.match(requirement):
                for extra in filter(None, (ours[2] or "").split(",")):
                    yield from (r for r in tables[ours[1]]["optional-dependencies"][extra] if not OURS.match(r))
            else:
                yield requirement


if __name__ == "__main__":
    print("\n".join(sorted(set(needed(projects(), {f"karenina-{name}" for name in sys.argv[1:]})))))
