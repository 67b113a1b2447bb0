"""Where karenina keeps what belongs to the user of this machine, and to no run."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_folder(name: str) -> Path | None:
    """A folder in the user's data directory; it need not be there. None where there is no home directory."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        given = Path(os.environ.get("XDG_DATA_HOME", ""))
        base = given if given.is_absolute() else home / ".local" / "share"
    return base / "karenina" / name
