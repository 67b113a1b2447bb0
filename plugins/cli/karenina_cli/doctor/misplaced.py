"""Entry points that nothing reads because their group is misspelt."""

from __future__ import annotations

import difflib
import re
from importlib.metadata import entry_points

from karenina_core.entry_points import name_and_version
from karenina_core.plugin.discovery import CORE, GROUP, recommended
from karenina_core.plugin.markers import PROJECT

MISSPELT = 0.85
"""From this likeness on (`difflib`) a group is a misspelling of another one: `karenina.plugin` and `karenina_plugins`
are 0.97 and 0.94 like `karenina.plugins`; of the groups that there are, `karenina.options` is most like it: 0.81."""


def misplaced() -> list[str]:
    """What installed packages declare in a group of entry points that nothing reads, and that is called almost like
    one of karenina's: `karenina.plugin`."""
    found = entry_points()
    every = [
        (name_and_version(point.dist)[0], point) for g in found.groups for point in found.select(group=g) if point.dist
    ]
    own = {*recommended(), CORE}
    ours = [point.group for name, point in every if re.sub(r"[-_.]+", "-", name).lower() in own]
    known = {group for group in (GROUP, *ours) if group.startswith(f"{PROJECT}.")}
    return sorted(
        f"{name} declares {point.name!r} in the group {point.group!r} of entry points, which nothing reads "
        f"(did you mean {close[0]!r}?); correct its pyproject.toml and install it again"
        for name, point in every
        if point.group not in known and (close := difflib.get_close_matches(point.group, sorted(known), 1, MISSPELT))
    )
