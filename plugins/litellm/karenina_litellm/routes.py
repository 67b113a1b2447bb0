"""Which model of litellm a configuration means, and what is wrong with a configuration. Does not import litellm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

from attrs import field, frozen

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

MODE = "endpoint_base_url_mode"
MODES = ("auto_v1", "raw")
MAX_BYTES = "max_response_bytes"
OWN_SETTINGS = frozenset({MODE, MAX_BYTES})
"""Names in `extra_kwargs` that are meant for this adapter and not passed on."""
DEFAULT_MAX_BYTES = 8_000_000
SUFFIX = "/chat/completions"
VERSION = re.compile(r"v\d+\w*")
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
    parts = _split(config.endpoint_base_url or "")
    if not config.endpoint_base_url or parts is None:
        return Route(model, provider, None)
    # litellm appends /chat/completions, or /v1/messages for anthropic
    path = parts.path.rstrip("/")
    complete = path.endswith(SUFFIX)
    path = path.removesuffix(SUFFIX)
    if _mode(config) != "raw" and not complete:
        if provider == "anthropic":
            path = path.removesuffix("/v1")
        elif provider in OPENAI_SERVERS and not any(VERSION.fullmatch(segment) for segment in path.split("/")):
            path += "/v1"
    return Route(model, provider, urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(parse_qsl(parts.query)))


def _mode(config: ModelConfig) -> object:
    return config.extra_kwargs.get(MODE, MODES[0])


def most_text_bytes(config: ModelConfig) -> int:
    """How much text a reply may have."""
    return int(config.extra_kwargs.get(MAX_BYTES, DEFAULT_MAX_BYTES))


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
        parts = _split(config.endpoint_base_url)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            url = config.endpoint_base_url
            yield f"endpoint_base_url: {url!r} is no address of a server; write it like https://host/v1"
        elif parts.username is not None or parts.password is not None:
            yield "endpoint_base_url: must hold no user name or password; put the key into api_key_env"
        elif parts.query and (provider := route(config).provider) != "openai":
            remedy = "leave it out or use 'openai'"
            yield f"endpoint_base_url: a query cannot be sent to the provider {provider!r}; {remedy}"
    extra = config.extra_kwargs
    if (mode := _mode(config)) not in MODES:
        yield f"extra_kwargs.{MODE}: must be {' or '.join(MODES)}, not {mode!r}"
    limit = extra.get(MAX_BYTES, DEFAULT_MAX_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield f"extra_kwargs.{MAX_BYTES}: must be a positive number of bytes, not {limit!r}"
    for name in sorted(OWN_ARGUMENTS & set(extra)):
        yield f"extra_kwargs.{name}: is set by karenina; leave it out"
    try:
        key = (config.api_key() or "").strip()
    except ConfigError as error:
        yield from map(str, error.problems)
    else:
        if not key.isprintable():
            yield "endpoint_api_key: the key has a control character in it; copy it again"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError where it is no number
    except ValueError:
        return None
    return parts
