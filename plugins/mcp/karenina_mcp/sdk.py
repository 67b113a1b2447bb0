"""The SDK of the protocol, imported when the first server is connected to."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import Any

from karenina_core.errors import AdapterUnavailableError, one_line
from karenina_core.plugin.registry import is_installed

INSTALL = 'pip install "karenina-mcp[sdk]"'


def missing() -> str | None:
    """What to type where the SDK is not installed."""
    return None if is_installed("mcp") else f"tool servers need the package mcp: {INSTALL}"


async def loaded() -> Any:
    """The module mcp. Its import takes most of a second and is done in a thread. Raises AdapterUnavailableError."""
    if problem := missing():
        raise AdapterUnavailableError(problem)
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # no tracebacks on stderr for what is reported here
    try:
        mcp = await asyncio.to_thread(importlib.import_module, "mcp")
    except ImportError as error:
        raise AdapterUnavailableError(f"the package mcp cannot be imported ({one_line(error)}): {INSTALL}") from error
    if not hasattr(mcp, "Client"):
        raise AdapterUnavailableError(f"the package mcp is too old: {INSTALL}")
    return mcp
