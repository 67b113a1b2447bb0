"""An adapter for models behind the Acme protocol, which is invented: `POST /generate` with JSON of its own.

{"engine": "anvil-2", "dialogue": [{"who": "person", "says": "..."}], "heat": 0.0, "shape": {JSON Schema}}
{"engine": "anvil-2", "said": "...", "ended": "done", "words": {"read": 12, "said": 3}}
{"fault": {"code": "busy", "text": "..."}}                       with an HTTP status of 400 or more
"""

from collections.abc import Iterator
from typing import Any

from karenina_core import AdapterSpec, ModelConfig, hookimpl

KARENINA_API = 1
PREFIX = "acme:"


def check_config(config: ModelConfig) -> Iterator[str]:
    """What keeps a model from working, before anything is paid for: one `field: message` each."""
    if not (config.endpoint_base_url or "").startswith(("http://", "https://")):
        yield "endpoint_base_url: say where the Acme server is, such as https://acme.example"


SPEC = AdapterSpec(
    interface="acme",
    description="models behind the Acme protocol",
    llm_factory="karenina_example_acme.port:Acme",  # by name: karenina starts without the HTTP client
    config_checker=check_config,
    requires_modules=("aiohttp",),
    install_hint="pip install karenina-example-acme",
    requires_provider=False,
)


@hookimpl
def karenina_register_adapters(registry: Any) -> None:
    registry.register(SPEC)


@hookimpl
def karenina_resolve_model(model: str) -> str | None:
    """`acme:anvil-2` says the interface and the model in one text."""
    return SPEC.interface if model.startswith(PREFIX) else None
