"""Which model of litellm a configuration means, and what is wrong with a configuration. Does not import litellm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from attrs import field, frozen
from karenina_calls.wire.endpoints import MODE, SUFFIX, address_problems, api_path, extra_problems, key_problems

from karenina_core.values.config import ModelConfig

ONE_PROVIDER = {"openrouter": "openrouter", "claude_tool": "anthropic", "claude_agent_sdk": "anthropic"}
"""Interfaces whose name says the provider."""
LANGCHAIN = ("langchain", "langchain_deep_agents")
LANGCHAIN_PROVIDERS = {
    "azure_openai": "azure",
    "bedrock_converse": "bedrock/converse",
    "fireworks": "fireworks_ai",
    "google_anthropic_vertex": "vertex_ai",
    "google_genai": "gemini",
    "google_vertexai": "vertex_ai",
    "ibm": "watsonx",
    "mistralai": "mistral",
    "nvidia": "nvidia_nim",
    "together": "together_ai",
}
"""langchain's names of providers, where litellm has another."""
OPENAI_SERVERS = frozenset({"openai", "custom_openai", "hosted_vllm", "litellm_proxy", "llamafile", "lm_studio"})
"""Providers that mean any server of the chat completions protocol, whose base URL ends in /v1."""
OWN_ARGUMENTS = frozenset(
    {"acompletion", "api_base", "api_key", "base_url", "cache", "caching", "callbacks", "client", "drop_params"}
    | {"fallbacks", "context_window_fallback_dict", "failure_callback", "max_retries", "max_tokens", "messages"}
    | {"mock_response", "model", "model_list", "n", "no-log", "num_retries", "request_timeout", "response_format"}
    | {"stream", "stream_options", "success_callback", "temperature", "timeout", "tool_choice", "tools"}
)
"""Arguments of litellm that this adapter sets itself, or that would make one call into several or into none."""


@frozen
class Route:
    """Where a model is asked."""

    model: str
    """As litellm wants it, `provider/name`; without a provider where the configuration names none."""
    provider: str | None
    base_url: str | None
    """None: the provider's own address."""
    query: Mapping[str, str] = field(factory=dict, repr=False)
    """Sent with every request."""

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}" if self.base_url else self.model


def route(config: ModelConfig) -> Route:
    """The route of a configuration.

    With a base URL and no provider the model is one of the provider `openai` under its whole name, which may contain
    slashes. Without either, the name may be `provider/name`.
    """
    provider = ONE_PROVIDER.get(config.interface, config.model_provider)
    if config.interface in LANGCHAIN and provider is not None:
        provider = LANGCHAIN_PROVIDERS.get(provider, provider)
    if provider is None and config.endpoint_base_url:
        provider = "openai"
    model = f"{provider}/{config.name}" if provider else config.name
    if provider is None and "/" in model:
        provider = model.partition("/")[0]
    url = config.endpoint_base_url
    if not url or any(address_problems(url)):
        return Route(model, provider, None)
    # litellm appends /chat/completions, or /v1/messages for anthropic
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix(SUFFIX)
    if provider in OPENAI_SERVERS:
        path = api_path(parts.path, config.extra_kwargs)
    elif provider == "anthropic" and config.extra_kwargs.get(MODE) != "raw":
        path = path.removesuffix("/v1")
    return Route(model, provider, urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(parse_qsl(parts.query)))


def problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with a configuration, as `field: message`. Nothing is asked and nothing imported."""
    fixed = ONE_PROVIDER.get(config.interface)
    if fixed and config.model_provider not in (None, fixed):
        yield (
            f"model_provider: the interface {config.interface!r} always asks {fixed}; remove the provider, or use the "
            f"interface 'litellm' for {config.model_provider}"
        )
    if config.interface in LANGCHAIN and route(config).provider is None:
        yield f"model_provider: the interface {config.interface!r} needs one, such as openai, anthropic or google_genai"
    if config.endpoint_base_url is not None:
        yield from address_problems(config.endpoint_base_url)
        asked = route(config)
        if asked.query and asked.provider != "openai":
            remedy = "leave it out or use 'openai'"
            yield f"endpoint_base_url: a query cannot be sent to the provider {asked.provider!r}; {remedy}"
    yield from extra_problems(config.extra_kwargs, OWN_ARGUMENTS)
    yield from key_problems(config)
