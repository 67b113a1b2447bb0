"""The command line `karenina`. Modules of commands are light: what a command needs is imported when it runs."""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """The console script: runs the command that the arguments name and exits with its code."""
    from .root import karenina

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal cannot show must not end a paid run
            stream.reconfigure(errors="backslashreplace")
    karenina(prog_name="karenina")
    raise AssertionError("click ends the process")
