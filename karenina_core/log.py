"""Logging: structlog on top of the standard handlers, one line an event on stderr, secrets redacted last."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

from .secrets import masked, secrets_in


class _Logger:
    """A structlog logger, made when it first has something to say: structlog costs more to import than the core."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog  # lazy, see above

        logger = structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[structlog.stdlib.filter_by_level, _render],
            wrapper_class=structlog.stdlib.BoundLogger,
        )
        return getattr(logger, method)


def get_logger(name: str = "karenina") -> Any:
    """A structlog logger; silent until `configure` is called or the host program sets up logging."""
    return _Logger(name)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to whatever is stderr at that moment: progress bars and tests put another one in its place."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def configure(level: str = "WARNING") -> None:
    """Send karenina's log to stderr. Libraries never call this; the command line does."""
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("karenina")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def redact_with(redact: Callable[[str], str]) -> None:
    """Take secrets out of every line with this function, for the rest of the process.

    Without it, those of the environment are masked.
    """
    _redact[:] = [redact]


_redact: list[Callable[[str], str]] = [lambda line: masked(line, secrets_in(os.environ))]


def _render(_: Any, __: str, event: MutableMapping[str, Any]) -> str:
    return _redact[0](" ".join([str(event.pop("event", "")), *(f"{k}={v!r}" for k, v in event.items())]))
