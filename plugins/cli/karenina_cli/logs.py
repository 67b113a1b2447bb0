"""What the command line logs, and where to; see `options/log_options.py`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any, NamedTuple

from karenina_core.log import TRACEBACK

from .output import printable

LEVELS = ("debug", "info", "warning", "error")


class _Stderr(logging.StreamHandler[Any]):
    """Writes to whatever is stderr at that moment: progress bars and tests put another one in its place."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


class _Terminal(logging.Formatter):
    """One line an event, with its traceback where that is wanted; nothing that a terminal would obey."""

    def __init__(self, traceback: bool) -> None:
        super().__init__("%(levelname)s %(message)s")
        self._traceback = traceback

    def format(self, record: logging.LogRecord) -> str:
        begins, text = getattr(record, TRACEBACK, None), super().format(record)
        if begins is not None and not self._traceback:
            text = text[: len(record.levelname) + 1 + begins]
        return printable(text)


class Wanted(NamedTuple):
    """What is logged. Without a `level` warnings are, and everything goes to a `file`."""

    verbose: bool = False
    level: str | None = None
    file: Path | None = None
    traceback: bool = False
    """Whether errors of items and of commands are shown with their tracebacks."""

    def shows(self, record: logging.LogRecord) -> bool:
        """Whether a record is written to stderr."""
        level = self.level or ("info" if self.verbose else "warning")
        return record.levelno >= _number(level) or (self.traceback and hasattr(record, TRACEBACK))


def configure(wanted: Wanted) -> None:
    """Send karenina's log to stderr and to a file. Raises OSError where that cannot be written."""
    terminal = _Stderr()
    terminal.setFormatter(_Terminal(wanted.traceback or wanted.level == "debug"))
    terminal.addFilter(wanted.shows)
    handlers: list[logging.Handler] = [terminal]
    if wanted.file is not None:
        file = logging.FileHandler(wanted.file, encoding="utf-8", errors="backslashreplace")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        file.setLevel(_number(wanted.level or "debug"))
        handlers.append(file)
    end_file()
    logger = logging.getLogger("karenina")
    logger.handlers[:] = handlers
    logger.setLevel(_lowest(wanted))
    logger.propagate = False


def end_file() -> None:
    """Write to no file any more."""
    logger = logging.getLogger("karenina")
    for handler in [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)]:
        logger.removeHandler(handler)
        handler.close()


def _lowest(wanted: Wanted) -> int:
    """The level below which no handler writes anything."""
    if wanted.level is not None and not wanted.traceback:
        return _number(wanted.level)
    if wanted.file is not None:
        return logging.DEBUG
    return logging.INFO if wanted.verbose or wanted.traceback else logging.WARNING


def _number(level: str) -> int:
    found: int = getattr(logging, level.upper())
    return found
