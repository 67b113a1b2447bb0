"""An agent that an adapter brings along: its work under a clock, and a look at what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve

from karenina_core.errors import PortError
from karenina_core.ports.values import AgentConfig, AgentResult
from karenina_core.values.message import Message, UsageMetadata

from ..ports.excluded_wait import Clock, time_limit

__all__ = ["GRACE", "in_time", "is_proper", "out_of_time"]

GRACE = 30.0
"""Seconds that an agent is given beyond `AgentConfig.timeout`, to end its work itself and to report it. Chosen, not
measured: enough for a last reply."""


async def in_time(work: Callable[[], Awaitable[Any]], config: AgentConfig) -> Any:
    """What the agent gives back; it is cancelled when its time and the grace are over, which is a limit and no error.

    What it did until then is kept where it offers it: an agent that is cancelled may return an `AgentResult`, or raise
    a PortError with one as `agent_result` in its `evidence`. Raises what the agent raises before that.
    """
    seconds = None if config.timeout is None else config.timeout + GRACE
    clock: Clock | None = None
    offered: Any = None
    try:
        async with time_limit(seconds) as clock:
            offered = await work()
    except Exception as error:  # whatever it raises when it is cancelled, its time was up
        if clock is None or not clock.expired:
            raise
        offered = error.evidence.get("agent_result") if isinstance(error, PortError) else None
    if clock is None or not clock.expired:
        return offered
    done = offered if is_proper(offered) else AgentResult(final_response="")
    return evolve(done, limit="time", usage_unavailable=True)  # the cost of a call that was given up is unknown


def is_proper(result: Any) -> bool:
    """Whether this is an `AgentResult` whose parts are what they have to be."""
    return (
        isinstance(result, AgentResult)
        and isinstance(result.final_response, str)
        and isinstance(result.raw_trace, str)
        and isinstance(result.usage, UsageMetadata)
        and isinstance(result.trace_messages, tuple)
        and all(isinstance(message, Message) for message in result.trace_messages)
    )


def out_of_time(result: AgentResult) -> PortError | None:
    """Why this is no reply to keep: the clock ended the work, that of the agent or of its caller."""
    task = asyncio.current_task()
    if result.limit == "time" or (task is not None and task.cancelling()):
        return PortError("the agent did not end its work in time", kind="timeout")
    return None
