"""The embedder `litellm`: the embedding models of every provider that litellm reaches."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import field, frozen, validators
from karenina_calls.secrets.known_secrets import SECRET_VARIABLES
from karenina_calls.services.embedding import Embeddings

from karenina_core import hookimpl
from karenina_core.errors import AdapterUnavailableError, PortError, one_line
from karenina_core.plugin.registry import is_installed
from karenina_core.values.message import UsageMetadata

PACKAGES = ("karenina_litellm", "litellm", "openai")
REMEDIES: Mapping[str, str] = {
    "auth": "check the key (api_key_env in [plugins.embedder-litellm] names the variable that holds it)",
    "connection": "check api_base in [plugins.embedder-litellm] and that the server runs",
    "invalid_request": "check embedding_check_model and api_base in [plugins.embedder-litellm]",
}
ONE_PLAIN_CALL = {"max_retries": 0, "num_retries": 0, "drop_params": False, "caching": False, "no-log": True}
BACKSTOP_SECONDS = 5.0
"""litellm's own time limit comes after that of this embedder."""
NO_KEY = "no-key"
OPENAI = "openai"


@frozen(kw_only=True)
class LiteLLMSettings:
    """`[plugins.embedder-litellm]`: where the embedder `litellm` finds its model."""

    api_base: str | None = None
    """The address of a server, such as `http://localhost:11434/v1`. A model without a provider is called there with the
    OpenAI protocol, and nothing from the environment is sent to it."""
    api_key_env: str | None = field(default=None, metadata={SECRET_VARIABLES: True})
    """The environment variable that holds the key; the provider's own by default."""
    timeout: float = field(default=60.0, validator=validators.gt(0))
    """Seconds for one attempt. The run's retry policy sets how many there are."""
    input_cost_per_token: float | None = field(default=None, validator=validators.optional(validators.ge(0)))
    """US dollars, if litellm does not know the model's price; 0 for your own server."""


class LiteLLM:
    """An `EmbedderPort` of one model, `provider/name` as litellm takes it."""

    def __init__(self, model: str, settings: LiteLLMSettings | None = None) -> None:
        self.model = model
        self.settings = settings or LiteLLMSettings()

    @property
    def _route(self) -> str:
        """The model as litellm wants it: a server without a provider speaks the OpenAI protocol."""
        plain = self.settings.api_base and "/" not in self.model
        return f"{OPENAI}/{self.model}" if plain else self.model

    @property
    def _where(self) -> str:
        return f"{self._route} at {self.settings.api_base}" if self.settings.api_base else self._route

    @property
    def reports_cost(self) -> bool:
        """litellm knows prices of providers; only the settings know that of a server."""
        return self.settings.input_cost_per_token is not None or self.settings.api_base is None

    def problem(self) -> str | None:
        if missing := [package for package in PACKAGES if not is_installed(package)]:
            return f'{", ".join(missing)} must be installed: pip install "karenina-embedding[litellm]"'
        if "/" not in self._route:
            return (
                f"the embedder 'litellm' needs a provider before the model's name, such as openai/{self.model} "
                "(embedding_check_model), or a server (api_base in [plugins.embedder-litellm])"
            )
        variable = self.settings.api_key_env
        return f"set the environment variable {variable} to your key" if variable and not self._key() else None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        """One request. Raises PortError."""
        if problem := self.problem():
            raise AdapterUnavailableError(problem)
        if not texts:
            return Embeddings(vectors=(), model=self.model)
        from karenina_calls.wire.library_errors import known_secrets, port_error  # imported where an embedder is used
        from karenina_litellm import library

        litellm = await library.load()
        before = sys.exception()
        try:
            async with asyncio.timeout(self.settings.timeout), self._arguments() as arguments:
                response = await litellm.aembedding(input=list(texts), **arguments)
        except TimeoutError:
            late = f"{self._where}: no vectors within {self.settings.timeout:g} s; raise timeout or ask another model"
            raise PortError(late, kind="timeout") from None
        except Exception as error:  # what litellm raises has no common base, and its texts may hold the key
            raise port_error(
                error,
                where=self._where,
                secrets=known_secrets(self._key()),
                before=before,
                hint=lambda found, _: REMEDIES.get(found.kind, ""),
            ) from None
        return _embeddings(response, self.model, self._where, self.settings.input_cost_per_token)

    @asynccontextmanager
    async def _arguments(self) -> AsyncIterator[dict[str, Any]]:
        """The arguments of one call. A client that was made for it is closed after it."""
        base, key = self.settings.api_base, self._key()
        arguments = {"model": self._route, "timeout": self.settings.timeout + BACKSTOP_SECONDS, **ONE_PLAIN_CALL}
        if base:
            arguments["api_base"] = base
        if key or base:
            arguments["api_key"] = key or NO_KEY
        if self._route.partition("/")[0] != OPENAI:
            yield arguments
            return
        from karenina_litellm.library import endpoint_client

        async with endpoint_client(base, {}, key or (NO_KEY if base else None)) as client:
            yield {**arguments, "client": client, "encoding_format": "float"}

    def _key(self) -> str | None:
        variable = self.settings.api_key_env
        return (os.environ.get(variable, "").strip() or None) if variable else None


def _embeddings(response: Any, model: str, where: str, cost_per_token: float | None) -> Embeddings:
    """The vectors of a `litellm.EmbeddingResponse`, in the order of the texts. Raises PortError (`bad_response`)."""
    body = response.model_dump(warnings=False)
    try:
        rows = sorted(body["data"], key=lambda row: int(row["index"]))
        vectors = tuple(tuple(float(number) for number in row["embedding"]) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise PortError(f"{where}: the reply holds no vectors ({one_line(error)})", kind="bad_response") from None
    used = str(body.get("model") or model)
    tokens = (body.get("usage") or {}).get("prompt_tokens") or 0
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    price = float(cost) if isinstance(cost, int | float) and cost > 0 else None  # litellm's 0 is a price it misses
    if price is None and cost_per_token is not None and (tokens or not cost_per_token):
        price = tokens * cost_per_token
    usage = UsageMetadata(tokens, 0, tokens, cost_usd=price, model=used)
    return Embeddings(vectors=vectors, model=used, usage=usage, usage_unavailable=not tokens)


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add("karenina_embedding.litellm_plugin:LiteLLM", name="litellm")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_embedding.litellm_plugin:LiteLLMSettings")
