"""Results that were written down, and results that must not be written twice."""

from __future__ import annotations

import json
from typing import NoReturn

from karenina_runs.results.lines import plain, portable_record, record

from karenina_core import VerificationResult
from karenina_core.errors import PluginError

__all__ = ["check_same", "plain", "portable_record", "record", "refuse", "result_of"]


def result_of(text: str | bytes) -> VerificationResult:
    """The result that a record holds; what a later version has added to it is kept as `extensions["unread"]`.

    Raises ConfigError and ValueError.
    """
    from .formats.other_tools import result_from

    try:
        return result_from(json.loads(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_same(new: VerificationResult, there: VerificationResult) -> None:
    """Raises PluginError where a place already has another result with the id of a new one."""
    if new != there:
        refuse(new)


def refuse(new: VerificationResult) -> NoReturn:
    """Raises PluginError: another result with this id is there."""
    raise PluginError(
        f"another result with the id {new.metadata.result_id} already exists, from a run of the same name "
        f"({new.metadata.run_name}); give this run another name, or write to another place"
    )
