"""Spans of calls: of attempts to ask a model, of embedders, of agents at work and of the tools that they call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

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
from karenina_core.ports.values import AgentResult, CallContext, LLMResponse, ParsePortResult, RunTool, ToolOutcome
from karenina_core.values.fields import is_number
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

from .tracing import Tracing, fill, harmless, tracing_of

PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google_anthropic_vertex": "gcp.vertex_ai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers that the conventions call something else."""
SPOKEN: Mapping[str, str] = {
    "anthropic": "anthropic",
    "claude_agent_sdk": "anthropic",
    "claude_tool": "anthropic",
    "gemini": "gcp.gemini",
    "openai_endpoint": "openai",
    "openrouter": "openrouter",
}
"""Interfaces that speak the protocol of one provider, whoever answers."""
SAMPLING = ("seed", "top_p", "top_k", "frequency_penalty", "presence_penalty")
PORTS = {"http": 80, "https": 443}


def provider_name(model: ModelConfig) -> str:
    """Whose protocol is spoken: that of the named provider, of the interface, or of the one that the name begins with;
    a server without a provider is one like openai's."""
    provider = model.model_provider or SPOKEN.get(model.interface)
    if provider is None and model.interface == "litellm":
        first, slash, _ = model.name.partition("/")
        provider = "openai" if model.endpoint_base_url else first if slash else None
    provider = provider or model.interface
    return PROVIDERS.get(provider, provider)


def request_facts(operation: str, model: ModelConfig) -> dict[str, Any]:
    """What is known before a model is asked."""
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider_name(model),
        "gen_ai.request.model": model.name,
    }


def server_facts(model: ModelConfig) -> dict[str, Any]:
    """Where a model is asked, as far as the configuration says so."""
    try:
        address = urlsplit(model.endpoint_base_url or "")
        port = address.port or PORTS.get(address.scheme)
    except ValueError:  # no URL, which its adapter complains about
        return {}
    return {"server.address": address.hostname, "server.port": port} if address.hostname else {}


def sampling_facts(model: ModelConfig) -> dict[str, Any]:
    """Numbers that are sent along with every request of the model."""
    sent = {name: model.extra_kwargs.get(name) for name in SAMPLING}
    facts = {f"gen_ai.request.{name}": value for name, value in sent.items() if is_number(value)}
    return {**facts, "gen_ai.request.max_tokens": model.max_tokens}


def usage_facts(usage: UsageMetadata, *, unavailable: bool) -> dict[str, Any]:
    """Tokens; none at all where the provider did not report them, so that nothing unknown is a number."""
    if unavailable:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
    }


def input_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """`[{"role", "parts": [...]}]`."""
    return [{"role": message.role, "parts": [_part(block) for block in message.content]} for message in messages]


def output_message(response: LLMResponse) -> list[dict[str, Any]]:
    """The reply in the same form, with why it ended."""
    blocks = [
        *([ThinkingBlock(response.thinking)] if response.thinking else []),
        *([TextBlock(response.content)] if response.content else []),
        *([TextBlock(response.structured)] if response.structured else []),
        *response.tool_calls,
    ]
    parts = [_part(block) for block in blocks]
    return [{"role": "assistant", "parts": parts, "finish_reason": response.finish_reason or "unknown"}]


def text_message(text: str) -> list[dict[str, Any]]:
    """A text of a model of which no more is known, in that form."""
    return [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "unknown"}]


def _part(block: Any) -> dict[str, Any]:
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": dict(block.input)}
    if isinstance(block, ToolResultBlock):
        return {"type": "tool_call_response", "id": block.tool_use_id, "response": block.content}
    if isinstance(block, ThinkingBlock):
        return {"type": "reasoning", "content": block.thinking}
    return {"type": "text", "content": block.text}


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
