"""Spans of agents at work, and of every tool that they call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports.tool_calls import current_call, proper_outcome
from karenina_core.ports.values import AgentResult, CallContext, RunTool, Tool, ToolOutcome

from .conventions import request_facts, said, sampling_facts, usage_facts
from .tracing import Tracing, fill, harmless, tracing_of

__all__ = ["around_agent"]


def around_agent(model: ModelConfig, app: Any) -> Callable[..., Awaitable[AgentResult]]:
    """See the hook `karenina_wrap_agent`."""
    tracing = tracing_of(app, model)
    told = {"gen_ai.agent.name": model.id, "gen_ai.request.temperature": model.temperature}
    facts = {**request_facts("invoke_agent", model), **sampling_facts(model), **told}

    async def around(
        call: CallContext, tools: Sequence[Tool], proceed: Callable[[Sequence[Tool]], Awaitable[AgentResult]]
    ) -> AgentResult:
        with tracing.span(f"invoke_agent {model.id}", {**facts, "karenina.task": call.task}) as span:
            here = trace.set_span_in_context(span)
            traced = [_traced(tool, tracing, here) for tool in tools] if span.get_span_context().is_valid else tools
            try:
                result = await proceed(traced)
            except PortError as error:
                _tell(span, error.evidence.get("agent_result"), tracing)
                raise
            _tell(span, result, tracing)
            return result

    return around


@harmless
def _tell(span: Span, result: object, tracing: Tracing) -> None:
    """What an agent did, also one that failed; nothing where an adapter does not say."""
    if not isinstance(result, AgentResult):
        return
    fill(span, usage_facts(result.usage, unavailable=result.usage_unavailable))
    facts = {"gen_ai.response.model": result.actual_model, "gen_ai.conversation.id": result.session_id}
    fill(span, {**facts, "karenina.agent.turns": result.turns, "karenina.agent.limit": result.limit})
    tracing.content(span, {"gen_ai.output.messages": said(result.final_response)})


def _traced(tool: Tool, tracing: Tracing, agent: Context) -> Tool:
    if tool.run is None:
        return tool
    return evolve(tool, run=partial(_run, tool.name, tool.run, tracing, agent))


async def _run(name: str, run: RunTool, tracing: Tracing, agent: Context, arguments: Mapping[str, Any]) -> ToolOutcome:
    call = current_call.get()
    facts = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id if call is not None and call.name == name else None,
    }
    # An agent of an adapter's own may call from a task that is none of ours, so the parent is named.
    with tracing.span(f"execute_tool {name}", facts, within=agent) as span:
        tracing.content(span, {"gen_ai.tool.call.arguments": arguments})
        outcome = proper_outcome(await run(arguments))
        if outcome.is_error:
            tracing.failed(span, "tool_error", outcome.content)
        tracing.content(span, {"gen_ai.tool.call.result": outcome.content})
        return outcome
