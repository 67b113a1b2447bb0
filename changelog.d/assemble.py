"""Moves the fragments of this folder into CHANGELOG.md: `python changelog.d/assemble.py VERSION [DATE]`.

A fragment is a file `<name>.<added|changed|fixed>.md` of one or two sentences for users.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

KINDS = ("added", "changed", "fixed")
MARK = "<!-- releases -->\n"
NOTHING_YET = "\nNo version has been released yet.\n"


def fragments(folder: Path) -> dict[str, list[Path]]:
    """`{kind: files by name}`. Raises ValueError for a file that is no fragment, or an empty one."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.iterdir()):
        if path.name == Path(__file__).name or path.name == "__pycache__":
            continue
        named = re.fullmatch(rf"[\w-]+\.({'|'.join(KINDS)})\.md", path.name)
        if named is None or not path.read_text("utf-8").strip():
            raise ValueError(f"{path.name}: a fragment is called <name>.<{'|'.join(KINDS)}>.md and is not empty")
        found[named[1]].append(path)
    return found


def release(version: str, date: str, found: dict[str, list[Path]]) -> str:
    """The section of one version."""
    parts = [f"## {version} ({date})"]
    for kind, paths in found.items():
        if paths:
            lines = "\n".join(f"- {' '.join(path.read_text('utf-8').split())}" for path in paths)
            parts.append(f"### {kind.capitalize()}\n\n{lines}")
    return "\n\n".join(parts)


def main(folder: Path, version: str, date: str) -> None:
    """Write the section under the mark, above older ones, and delete the fragments. Raises ValueError."""
    changelog = folder.parent / "CHANGELOG.md"
    text = changelog.read_text("utf-8").replace(NOTHING_YET, "")
    found = fragments(folder)
    if MARK not in text or f"## {version} " in text or not any(found.values()):
        raise ValueError(
            f"nothing to do: no fragments, no {MARK.strip()} in CHANGELOG.md, or {version} is there already"
        )
    before, _, after = text.partition(MARK)
    changelog.write_text(f"{before}{MARK}\n{release(version, date, found)}\n{after}", "utf-8")
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python changelog.d/assemble.py VERSION [DATE]")
    try:
        main(Path(__file__).parent, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else f"{datetime.now(UTC):%Y-%m-%d}")
    except ValueError as error:
        sys.exit(str(error))
