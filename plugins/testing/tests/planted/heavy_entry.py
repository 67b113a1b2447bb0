"""Imports aiohttp whenever karenina starts."""

from typing import Any

import aiohttp  # the fault

from karenina_core import hookimpl


@hookimpl
def karenina_classify_error(error: Any) -> str | None:
    return "connection" if isinstance(error, aiohttp.ClientError) else None
