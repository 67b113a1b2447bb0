"""Logging: structlog on top of the standard handlers; secrets are redacted last, in tracebacks too."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any

from .secrets import masked, secrets_in

TRACEBACK = "karenina_traceback"
"""The attribute of a log record that says where in its text a traceback begins, if it has one."""


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
    """A structlog logger; silent until the host program sets up logging, as the command line does."""
    return _Logger(name)


def redact_with(redact: Callable[[str], str]) -> None:
    """Take secrets out of every line with this function, for the rest of the process.

    Without it, those of the environment are masked.
    """
    _redact[:] = [redact]


def redacted(text: str) -> str:
    """The text without secrets."""
    return _redact[0](text)


_redact: list[Callable[[str], str]] = [lambda line: masked(line, secrets_in(os.environ))]


def _render(_: Any, __: str, event: MutableMapping[str, Any]) -> Any:
    """One line, and the traceback where there is an error as `exc_info`: without the values of variables."""
    text, error = str(event.pop("event", "")), event.pop("exc_info", None)
    line = redacted(" ".join([text, *(f"{k}={v!r}" for k, v in event.items())]))
    error = sys.exc_info()[1] if error is True else error
    if not isinstance(error, BaseException):
        return line
    trace = redacted("".join(traceback.format_exception(error)).rstrip())
    return (f"{line}\n{trace}",), {"extra": {TRACEBACK: len(line)}}
