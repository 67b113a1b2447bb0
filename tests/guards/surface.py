"""What plugins may use, line by line: public names, and hooks with their arguments.

`python -m tests.guards.surface` writes it to surface.txt, if a fragment of changelog.d names everything that changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from karenina_core.names import GROUP, NAMES
from karenina_core.plugin.api import OLDEST_PLUGIN_API, PLUGIN_API
from karenina_core.plugin.discovery import KINDS, Source, discover, load
from karenina_core.plugin.kinds import HOOKS

WRITTEN = Path(__file__).with_name("surface.txt")
CHANGELOG = Path(__file__).parents[2] / "changelog.d"
COMMAND = "python -m tests.guards.surface"


def surface() -> list[str]:
    """The lines, sorted."""
    return sorted(_lines())


def _lines() -> Iterator[str]:
    yield f"versions of the plugin API: {OLDEST_PLUGIN_API} to {PLUGIN_API}"
    for table in (NAMES, *(load(source) for source in _ours(GROUP))):
        yield from (f"{package}.{name}" for package in NAMES for name in table.get(package, {}))
    for name, hook in HOOKS.items():
        parameters = inspect.signature(hook).parameters.values()
        yield f"{name}({', '.join(parameter.name for parameter in parameters)})"
    yield from (f"karenina_register_{source.name}(registry)" for source in _ours(KINDS))


def _ours(group: str) -> list[Source]:
    own = {path.parent.name for path in CHANGELOG.parent.glob("plugins/*/pyproject.toml")} | {"core"}
    return [source for source in discover(group) if source.distribution.removeprefix("karenina-") in own]


def unexplained(lines: Iterable[str], fragments: str) -> list[str]:
    """Those whose name, the last part without arguments, no fragment has in backquotes."""
    names = {line: line.partition("(")[0].rpartition(".")[2] for line in lines if not line.startswith("versions")}
    quoted = " ".join(fragments.split("`")[1::2])
    return [line for line, name in names.items() if name not in quoted.replace(".", " ").replace("(", " ").split()]


def main() -> int:
    """Returns the exit code."""
    before = WRITTEN.read_text("utf-8").splitlines() if WRITTEN.exists() else surface()
    changed = sorted(set(before) ^ set(surface()))
    fragments = "\n".join(path.read_text("utf-8") for path in CHANGELOG.glob("*.md"))
    if missing := unexplained(changed, fragments):
        print(f"no fragment of changelog.d names {', '.join(missing)} in backquotes; write one", file=sys.stderr)
        return 1
    WRITTEN.write_text("\n".join([*surface(), ""]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
