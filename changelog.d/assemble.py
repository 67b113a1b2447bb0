"""Moves the fragments of this folder into CHANGELOG.md: `python changelog.d/assemble.py VERSION [DATE]`.

A fragment is a file `<name>.<added|changed|fixed>.md` of one or two sentences for users.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, date, datetime
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


def release(number: str, day: str, found: dict[str, list[Path]]) -> str:
    """The section of one version."""
    parts = [f"## {number} ({day})"]
    for kind, paths in found.items():
        if paths:
            lines = "\n".join(f"- {' '.join(path.read_text('utf-8').split())}" for path in paths)
            parts.append(f"### {kind.capitalize()}\n\n{lines}")
    return "\n\n".join(parts)


def main(folder: Path, number: str, day: str) -> None:
    """Write the section under the mark, above older ones, and delete the fragments. Raises ValueError."""
    changelog = folder.parent / "CHANGELOG.md"
    text = changelog.read_text("utf-8").replace(NOTHING_YET, "")
    found = fragments(folder)
    if MARK not in text or f"## {number} " in text or not any(found.values()):
        raise ValueError(
            f"nothing to do: no fragments, no {MARK.strip()} in CHANGELOG.md, or {number} is there already"
        )
    before, _, after = text.partition(MARK)
    changelog.write_text(f"{before}{MARK}\n{release(number, day, found)}\n{after}", "utf-8")
    for paths in found.values():
        for path in paths:
            path.unlink()


def version(text: str) -> str:
    """A version as packages have it. Raises ValueError, so that an option is not taken for one."""
    if re.fullmatch(r"\d+(\.\d+)+((a|b|rc)\d+)?", text) is None:
        raise ValueError(text)
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Move the fragments of this folder into CHANGELOG.md.")
    parser.add_argument("version", type=version, help="such as 0.2.0")
    parser.add_argument("date", type=date.fromisoformat, nargs="?", default=datetime.now(UTC).date(), help="today's")
    options = parser.parse_args()
    try:
        main(Path(__file__).parent, options.version, options.date.isoformat())
    except ValueError as error:
        sys.exit(str(error))
