"""What other packages say on the page of the run that lies in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karenina_cli.entries import usable

from karenina_core.entry_points import owner
from karenina_core.errors import one_line
from karenina_core.plugin.command_line import Section

GROUP = "karenina.report"


def sections_of(folder: Path | None) -> Sequence[Section]:
    """The sections that functions `sections(folder)` of the group `karenina.report` give; nothing of results that lie
    in no folder. One that fails says so in its place."""
    found: list[Section] = []
    for point, sections in usable(GROUP, "section") if folder is not None else ():
        try:
            found += sections(folder)
        except Exception as error:  # code of another package
            what = f"the section {point.name!r} of {owner(point)} failed: {one_line(error)}"
            found.append(Section({}, point.name, before=[what]))
    return found
