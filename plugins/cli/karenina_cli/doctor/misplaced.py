"""Entry points that nothing reads because their group is misspelt."""

from __future__ import annotations

import difflib
import re
from importlib.metadata import entry_points

from karenina_core.entry_points import owner
from karenina_core.plugin.discovery import CORE, GROUP, recommended
from karenina_core.plugin.markers import PROJECT

MISSPELT = 0.85
"""From this likeness on (`difflib`) a group is a misspelling of another one: `karenina.plugin` and `karenina_plugins`
are 0.97 and 0.94 like `karenina.plugins`; of the groups that there are, `karenina.options` is most like it: 0.81."""


def misplaced() -> list[str]:
    """What installed packages declare in a group of entry points that nothing reads, and that is called almost like
    one of karenina's: `karenina.plugin`."""
    found, own = entry_points(), {*recommended(), CORE}
    ours = (
        group
        for group in found.groups
        if group.startswith(f"{PROJECT}.") and any(_normal(owner(point)) in own for point in found.select(group=group))
    )
    known = sorted({GROUP, *ours})
    likenesses = {group: difflib.get_close_matches(group, known, 1, MISSPELT) for group in found.groups - {*known}}
    return sorted(
        f"{owner(point)} declares {point.name!r} in the group {group!r} of entry points, which nothing reads "
        f"(did you mean {close[0]!r}?); correct its pyproject.toml and install it again"
        for group, close in likenesses.items()
        if close
        for point in found.select(group=group)
        if point.dist
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
