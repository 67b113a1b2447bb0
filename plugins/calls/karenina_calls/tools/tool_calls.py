"""The tool calls of one reply of a model: they run at the same time, and each has exactly one answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from attrs import evolve

from karenina_core.errors import PortError, one_line
from karenina_core.ports.values import RunTool, Tool, ToolOutcome
from karenina_core.values.message import Message, ToolUseBlock

from ..ports.text import MOST_NESTED, sanitize

MOST_CHARACTERS = 100_000
"""Of one answer of a tool; what is longer is cut, with a note to the model. About 25,000 tokens at four characters
each. Chosen, not measured."""
AT_ONCE = 8
"""Tool calls of one reply that run at the same time. Chosen, not measured."""
MALFORMED = (
    f"the arguments were no JSON object, or nested more than {MOST_NESTED} levels deep; "
    "call the tool again with valid JSON"
)
current_call: ContextVar[ToolUseBlock | None] = ContextVar("karenina_tool_call", default=None)
"""The call that the running tool answers; None where an agent of an adapter's own has called it."""
UNANSWERED = ToolOutcome("there is no answer: the work was ended before the tool was done", is_error=True)


async def answered(
    calls: Sequence[ToolUseBlock],
    malformed: Collection[str],
    tools: Mapping[str, Tool],
    messages: list[Message],
    repeated: Counter[str],
) -> None:
    """Run the calls and append their answers to `messages`, in the order of the calls, one message each.

    `malformed` has the ids of calls whose arguments could not be read; they are not run. Where this is cancelled, the
    tools are cancelled and waited for; every answer that came is kept, and a call without one is answered by an error.
    `repeated` counts how often a call gave the same answer.

    Raises PortError where a tool raises one that is final: what the run is made of does not fit then, such as a
    recording without that call, and no model can deal with it.
    """
    places = asyncio.Semaphore(AT_ONCE)
    outcomes: dict[str, ToolOutcome] = {}

    async def one(call: ToolUseBlock) -> None:
        async with places:
            current_call.set(call)  # seen by this tool alone: every call has a task of its own
            outcomes[call.id] = await _outcome(call, tools, malformed=call.id in malformed)

    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(one(call))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for call in calls:
            outcome = outcomes.get(call.id, UNANSWERED)
            outcome = evolve(outcome, content=shortened_answer(sanitize(outcome.content)[0]))
            shown = _as_shown(repeated, call, outcome, readable=call.id not in malformed)
            messages.append(Message.tool_result(call.id, shown.content, shown.is_error))


async def _outcome(call: ToolUseBlock, tools: Mapping[str, Tool], *, malformed: bool) -> ToolOutcome:
    tool = tools.get(call.name)
    if tool is None or tool.run is None:
        return ToolOutcome(f"there is no tool {call.name!r}; there is: {', '.join(tools) or 'none'}", is_error=True)
    if malformed:
        return ToolOutcome(MALFORMED, is_error=True)
    return await run_tool(tool.run, call.input)


async def run_tool(run: RunTool, arguments: Mapping[str, Any]) -> ToolOutcome:
    """What a tool answers; what it raises, also by cancelling itself, is an error of the tool.

    Raises PortError where it is final, and CancelledError where the call is cancelled.
    """
    try:
        return proper_outcome(await run(arguments))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ToolOutcome("the tool failed: it has cancelled itself", is_error=True)
    except (Exception, SystemExit) as error:  # a tool runs code of its own; the model deals with its failure
        if isinstance(error, PortError) and error.final:
            raise
        return ToolOutcome(f"the tool failed: {one_line(error)}", is_error=True)


def proper_outcome(given: Any) -> ToolOutcome:
    """What a tool gave back; an error of the tool where that is no `ToolOutcome` with a text."""
    value = given.content if isinstance(given, ToolOutcome) else given
    if isinstance(given, ToolOutcome) and isinstance(value, str):
        return given
    return ToolOutcome(f"the tool failed: it gave back no text ({type(value).__name__})", is_error=True)


def on_warning(tool: Tool, warn: Callable[[str], None]) -> Tool:
    """The tool; `warn` is called with the warning of every outcome that has one."""
    run = tool.run
    if run is None:
        return tool

    async def watched(arguments: Mapping[str, Any]) -> ToolOutcome:
        outcome = proper_outcome(await run(arguments))
        if outcome.warning is not None:
            warn(outcome.warning)
        return outcome

    return evolve(tool, run=watched)


def shortened_answer(text: str, tolerance: int = 0) -> str:
    """An answer of a tool, cut where it is longer than the limit and so many characters that are tolerated."""
    if len(text) <= MOST_CHARACTERS + tolerance:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[cut: these are the first {MOST_CHARACTERS} of {len(text)} characters]"


def _as_shown(repeated: Counter[str], call: ToolUseBlock, outcome: ToolOutcome, *, readable: bool) -> ToolOutcome:
    """The outcome, with a note where the model repeats a call that gave the same answer."""
    facts = [call.name, call.input, readable, outcome.content]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    seen = repeated[key]
    repeated[key] = seen + 1
    if not seen or outcome.content == UNANSWERED.content:
        return outcome
    note = "[the same call gave the same answer before; repeating it will not change it]"
    return evolve(outcome, content=f"{outcome.content}\n{note}")
