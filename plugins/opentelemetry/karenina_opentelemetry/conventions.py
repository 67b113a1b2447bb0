"""Names and forms of the OpenTelemetry conventions for generative AI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from karenina_core import ModelConfig
from karenina_core.ports.values import LLMResponse
from karenina_core.values.fields import is_number
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

__all__ = [
    "input_messages",
    "output_message",
    "provider_name",
    "request_facts",
    "sampling_facts",
    "server_facts",
    "text_message",
    "usage_facts",
]

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
    "claude_agent_sdk": "anthropic",
    "claude_tool": "anthropic",
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
