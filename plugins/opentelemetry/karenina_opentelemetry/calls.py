"""Spans of calls: of attempts to ask a model, of embedders, of agents at work and of the tools that they call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from attrs import evolve
from karenina_calls.ports.port_calls import AgentCall, EmbedderCall, LLMCall, ParserCall
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.tool_calls import current_call, proper_outcome
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind

from karenina_core import ModelConfig
from karenina_core.errors import ParseError, PortError
from karenina_core.ports.middleware import CallTarget, Proceed
from karenina_core.ports.values import (
    AgentResult,
    CallContext,
    LLMResponse,
    ParsePortResult,
    RunTool,
    ToolOutcome,
)
from karenina_core.values.message import UsageMetadata

from .conventions import (
    PROVIDERS,
    input_messages,
    output_message,
    request_facts,
    sampling_facts,
    server_facts,
    text_message,
    usage_facts,
)
from .tracing import Tracing, fill, harmless, tracing_of

__all__ = ["around"]


def around(target: CallTarget, app: Any) -> Callable[[Any, Proceed], Awaitable[Any]] | None:
    """See the hook `karenina_wrap_call`. Searches have no spans. Neither have calls of an adapter's own agent and of
    tool servers by themselves: they are those of the work that they are made for."""
    if target.config is not None and target.kind in OF_MODELS:
        return partial(OF_MODELS[target.kind], tracing_of(app, target.config), target.config)
    return partial(_embeddings, tracing_of(app)) if target.kind == "embedder" else None


async def _chat(tracing: Tracing, model: ModelConfig, call: Any, proceed: Proceed) -> LLMResponse | ParsePortResult:
    """Of an `LLMCall` or a `ParserCall`."""
    context: CallContext | None = call.context
    of_call = (getattr(call, "temperature", None), context.temperature if context else None, model.temperature)
    away = proceed.capabilities.needs_provider  # else it is played back
    facts = {
        **request_facts("chat", model),
        **sampling_facts(model),
        **(server_facts(model) if away else {}),
        "gen_ai.request.temperature": next((t for t in of_call if t is not None), None),
        "gen_ai.output.type": "json" if isinstance(call, ParserCall) or call.output is not None else None,
        "karenina.task": context.task if context else None,
    }
    with tracing.span(f"chat {model.name}", facts, SpanKind.CLIENT if away else SpanKind.INTERNAL) as span:
        _asks(span, call, tracing)
        try:
            reply: LLMResponse | ParsePortResult = await proceed(call)
        except ParseError as error:
            _useless(span, error, tracing)
            raise
        _answered(span, reply, tracing)
        return reply


@harmless
def _asks(span: Span, call: LLMCall | ParserCall, tracing: Tracing) -> None:
    if tracing.settings.content:
        tracing.content(span, {"gen_ai.input.messages": input_messages(call.messages)})


@harmless
def _answered(span: Span, reply: LLMResponse | ParsePortResult, tracing: Tracing) -> None:
    if isinstance(reply, ParsePortResult):
        _replied(span, reply.usage, reply.raw, tracing, unknown=reply.usage_unavailable)
        return
    fill(span, usage_facts(reply.usage, unavailable=reply.usage_unavailable))
    reasons = [reply.finish_reason] if reply.finish_reason else None
    fill(span, {"gen_ai.response.model": reply.actual_model, "gen_ai.response.finish_reasons": reasons})
    tracing.content(span, {"gen_ai.output.messages": output_message(reply)})


@harmless
def _useless(span: Span, error: ParseError, tracing: Tracing) -> None:
    """What a reply cost that is no data."""
    if isinstance(error.usage, UsageMetadata):
        _replied(span, error.usage, error.raw_response, tracing, unknown=error.usage_unavailable)


def _replied(span: Span, usage: UsageMetadata, raw: str, tracing: Tracing, *, unknown: bool) -> None:
    fill(span, usage_facts(usage, unavailable=unknown))
    fill(span, {"gen_ai.response.model": usage.model})
    tracing.content(span, {"gen_ai.output.messages": text_message(raw)})


async def _embeddings(tracing: Tracing, call: EmbedderCall, proceed: Proceed) -> Embeddings:
    """What an embedder is given and what it gives back is in no span, whatever the settings are."""
    name, model = call.target.name, call.target.model
    first, slash, _ = model.partition("/")
    provider = first if slash and name == "litellm" else name
    facts = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "karenina.embedder": name,
    }
    with tracing.span(f"embeddings {model}", facts, SpanKind.CLIENT) as span:
        found = await proceed(call)
        _embedded(span, found)
        return found


@harmless
def _embedded(span: Span, found: Embeddings) -> None:
    fill(span, {"gen_ai.response.model": found.model})
    fill(span, {"gen_ai.embeddings.dimension.count": len(found.vectors[0]) if found.vectors else None})
    fill(span, {"gen_ai.usage.input_tokens": found.usage.input_tokens or None})


async def _work(tracing: Tracing, model: ModelConfig, call: AgentCall, proceed: Proceed) -> AgentResult:
    facts = {
        **request_facts("invoke_agent", model),
        **sampling_facts(model),
        "gen_ai.agent.name": model.id,
        "gen_ai.request.temperature": model.temperature,
        "karenina.task": call.context.task if call.context else None,
    }
    with tracing.span(f"invoke_agent {model.id}", facts) as span:
        if span.get_span_context().is_valid:
            here = trace.set_span_in_context(span)
            tools = [
                evolve(tool, run=partial(_run, tool.name, tool.run, tracing, here)) if tool.run is not None else tool
                for tool in call.tools
            ]
            call = evolve(call, tools=tools)
        try:
            result = await proceed(call)
        except PortError as error:
            _worked(span, error.evidence.get("agent_result"), tracing)
            raise
        _worked(span, result, tracing)
        return result


@harmless
def _worked(span: Span, result: object, tracing: Tracing) -> None:
    """What an agent did, also one that failed; nothing where an adapter does not say."""
    if not isinstance(result, AgentResult):
        return
    fill(span, usage_facts(result.usage, unavailable=result.usage_unavailable))
    facts = {"gen_ai.response.model": result.actual_model, "gen_ai.conversation.id": result.session_id}
    fill(span, {**facts, "karenina.agent.turns": result.turns, "karenina.agent.limit": result.limit})
    tracing.content(span, {"gen_ai.output.messages": text_message(result.final_response)})


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


OF_MODELS: Mapping[str, Callable[..., Awaitable[Any]]] = {"llm": _chat, "parser": _chat, "work": _work}
