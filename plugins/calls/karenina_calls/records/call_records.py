"""What the uses of a model by a stage come to."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from attrs import evolve

from karenina_core.errors import ErrorKind, KareninaError, ParseError
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.message import UsageMetadata

from ..ports.retry import Attempts
from .prices import may_have_cost

__all__ = ["record_of"]


def record_of(
    who: tuple[str, str], attempts: Attempts, started: float, error: BaseException | None = None, **facts: Any
) -> CallRecord:
    """The record of a call that is over. `who` is its task and its model; `error` is what it ended in."""
    usage_unavailable, unknown, replies = (
        facts.pop("usage_unavailable", False),
        attempts.unknown_costs,
        attempts.replies,
    )
    usage = facts.pop("usage", None) or UsageMetadata()
    if error is not None:
        facts["error_kind"] = _kind(error)
    if not attempts.asked and attempts.count:  # no middleware in front of the model has counted
        replies = int(error is None or isinstance(error, ParseError))
        unknown = int(not replies and may_have_cost(error))
    if not replies and not unknown and usage.cost_usd is None and not usage.total_tokens:
        usage = evolve(usage, cost_usd=0.0)
    return CallRecord(
        task=who[0],
        model=who[1],
        attempts=attempts.count,
        retries=attempts.retries,
        seconds=time.monotonic() - started - attempts.waited + attempts.seconds_before,
        usage=usage,
        usage_unavailable=usage_unavailable or (error is not None and unknown > 0),
        replies=replies,
        unknown_cost_attempts=unknown,
        **{name: value for name, value in facts.items() if value is not None},
    )


def _kind(error: BaseException) -> ErrorKind:
    if isinstance(error, KareninaError):
        return error.kind
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "stage"
