"""What the conformance checks are given: OpenAI's models, whose protocol the scripted server speaks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from karenina_core import ModelConfig

NOWHERE = "http://127.0.0.1:9/v1"


def options() -> dict[str, Any]:
    """Options of the checks; a text where the package of the provider is not there."""
    if find_spec("langchain") is None or find_spec("langchain_openai") is None:
        return {"langchain": 'not checked: pip install "karenina-langchain[library]" langchain-openai'}
    model = ModelConfig(
        model_name="conformance", model_provider="openai", interface="langchain", endpoint_base_url=NOWHERE
    )
    return {"langchain": {"config": model}}
