"""Agents: the loop that makes one of any model that can call tools, and the clock of one that an adapter brings along.

The loop asks, runs the tools that the model calls, shows it their answers, and asks again.
Reaching a limit ends the work and is data: `AgentResult.limit`. What was done until then is kept. Errors of tools are
returned to the model; errors of the model are the caller's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import define, evolve, field
from karenina_vocabulary.traces import render_trace

from karenina_core.errors import PortError
from karenina_core.ports.values import AgentConfig, AgentResult, Limit, LLMResponse, Tool
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolUseBlock, UsageMetadata

from ..ports.text import is_nested_deeper
from ..ports.waiting import time_limit
from .tool_calls import answered

TRUNCATED = "truncated"
"""The flag of work whose last reply was cut off by `max_tokens`."""
GRACE = 30.0
"""Seconds that an agent is given beyond `AgentConfig.timeout`, to end its work itself and to report it. Chosen, not
measured: enough for a last reply."""


class AskWithTools(Protocol):
    """One call of the model, with its retries."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Awaitable[LLMResponse]: ...


@define(eq=False)
class _Work:
    """What has happened so far."""

    messages: list[Message]
    """The whole conversation."""
    given: int
    """How many of them were there at the beginning."""
    usage: UsageMetadata | None = None
    usage_unavailable: bool = False
    turns: int = 0
    tool_calls: int = 0
    flags: dict[str, None] = field(factory=dict)
    actual_model: str | None = None
    known_cost: float = 0.0
    """US dollars of the calls whose price is known."""
    repeated: Counter[str] = field(factory=Counter)
    """How often a call gave the same answer; see `answered`."""
    ids: set[str] = field(factory=set)
    """Those of all tool calls of the conversation."""
    is_asking: bool = False
    """Whether the model has been asked and has not replied yet."""
    limit: Limit | None = None

    def take(self, response: LLMResponse) -> tuple[list[ToolUseBlock], set[str]]:
        """Take a reply. Returns its tool calls, and the ids of those whose arguments could not be read."""
        calls = [self._sound(call) for call in response.tool_calls]
        pairs = zip(response.tool_calls, calls, strict=True)
        unread = response.malformed_calls
        lost = {call.id for at, (given, call) in enumerate(pairs) if at in unread or is_nested_deeper(given.input)}
        thought = (ThinkingBlock(response.thinking),) if response.thinking else ()
        text = (TextBlock(response.content),) if response.content else ()
        self.messages.append(
            Message("assistant", (*(response.thinking_blocks or thought), *text, *calls), response.usage)
        )
        self.turns += 1
        self.is_asking = False
        self.usage = response.usage if self.usage is None else self.usage + response.usage
        self.usage_unavailable = self.usage_unavailable or response.usage_unavailable
        self.known_cost += response.usage.cost_usd or 0.0
        self.flags |= dict.fromkeys(response.flags)
        if not calls and (response.is_partial or response.finish_reason == "length"):
            self.flags[TRUNCATED] = None
        self.actual_model = response.actual_model or self.actual_model
        return calls, lost

    def _sound(self, call: ToolUseBlock) -> ToolUseBlock:
        """The call with an id of its own, and with arguments that all later code can walk.

        Some servers begin to count again with every reply, and answers differ in these ids alone.
        """
        given = call.id or "call"
        identifier, number = given, 1
        while identifier in self.ids:
            number += 1
            identifier = f"{given}_{number}"
        self.ids.add(identifier)
        return evolve(call, id=identifier, input={} if is_nested_deeper(call.input) else call.input)

    def spent(self, config: AgentConfig) -> Limit | None:
        """The limit that prevents another call of the model."""
        usage = self.usage or UsageMetadata()
        if self.turns >= config.max_turns:
            return "turns"
        if config.max_total_tokens is not None and usage.total_tokens >= config.max_total_tokens:
            return "tokens"
        if config.max_cost_usd is not None and self.known_cost >= config.max_cost_usd:
            return "cost"
        most = config.max_repeated_calls
        return "repeated_calls" if most is not None and max(self.repeated.values(), default=0) > most else None

    def result(self) -> AgentResult:
        trace = tuple(self.messages[self.given :])
        last = trace[-1] if trace else None
        final = last.text if last is not None and last.role == "assistant" and not last.tool_calls else ""
        return AgentResult(
            final_response=final,
            raw_trace=render_trace(trace),
            trace_messages=trace,
            usage=self.usage or UsageMetadata(),
            turns=self.turns,
            limit=self.limit,
            usage_unavailable=self.usage_unavailable,
            flags=tuple(self.flags),
            actual_model=self.actual_model,
        )


async def run_agent_loop(
    ask: AskWithTools, messages: Sequence[Message], tools: Sequence[Tool], config: AgentConfig
) -> AgentResult:
    """Let the model work with the tools until it replies without calling one, or a limit is reached.

    The calls of one reply run at the same time; their answers follow in the order of the calls, one message each. A
    unknown tool, arguments that are no JSON object and whatever a tool raises are returned to the model as
    errors. No two calls have the same id: where a server gives one twice, the later call is given another.

    When the time is up, tools that are at work are cancelled and waited for; the answers that came are kept. Raises
    PortError where the model cannot be reached, and where a tool raises one that is final; its `evidence` then has what
    was done so far, under `agent_result`.
    """
    work = _Work(list(messages), len(messages))
    work.ids.update(call.id for message in messages for call in message.tool_calls)
    if config.system_prompt:
        work.messages.insert(0, Message.system(config.system_prompt))
        work.given += 1
    try:
        with time_limit(config.timeout) as clock:
            await _worked(work, ask, {tool.name: tool for tool in tools}, config)
    except TimeoutError:
        if not clock.expired:
            raise
        work.limit = "time"
        work.usage_unavailable |= work.is_asking  # the cost of a call that was given up is unknown
    except PortError as error:
        error.evidence = {**(error.evidence or {}), "agent_result": work.result()}
        raise
    return work.result()


async def _worked(work: _Work, ask: AskWithTools, tools: Mapping[str, Tool], config: AgentConfig) -> None:
    while True:
        work.is_asking = True
        response = await ask(work.messages, tuple(tools.values()))
        calls, lost = work.take(response)
        if not calls:
            return
        left = None if config.max_tool_calls is None else config.max_tool_calls - work.tool_calls
        allowed = calls[:left]
        await answered(allowed, lost, tools, work.messages, work.repeated)
        work.tool_calls += len(allowed)
        if len(allowed) < len(calls):
            work.limit = "tool_calls"
            return
        if (limit := work.spent(config)) is not None:
            work.limit = limit
            return


async def in_time(work: Callable[[], Awaitable[Any]], config: AgentConfig) -> Any:
    """What the agent gives back; it is cancelled when its time and the grace are over, which is a limit and no error.

    What it did until then is kept where it offers it: an agent that is cancelled may return an `AgentResult`, or raise
    a PortError with one as `agent_result` in its `evidence`. Raises what the agent raises before that.
    """
    seconds = None if config.timeout is None else config.timeout + GRACE
    clock: time_limit | None = None
    offered: Any = None
    try:
        with time_limit(seconds) as clock:
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
