"""litellm's own clients of Anthropic and of Google understand the scripted server, and it understands them."""

from __future__ import annotations

import logging

import pytest

from karenina_core import Karenina, ModelConfig
from karenina_core.testing import AnthropicMessages, GeminiGenerateContent, Wire, check_adapter

BROKEN_LINE = "its HTTP handler sends a request once more whose connection broke"
CLOSING = "for these providers litellm begins the task for its logs once more after the last port was closed"
USAGE = "litellm takes a reply without usage for a broken one; these providers always report it"
CASES: dict[str, tuple[str, Wire, dict[str, str]]] = {
    "anthropic": (
        "claude-sonnet-4-5",
        AnthropicMessages(),
        {"channels": "this protocol has no JSON mode, and litellm sends nothing in its place"},
    ),
    "gemini": (
        "gemini-2.5-flash",
        GeminiGenerateContent(),
        {
            "tools": "litellm leaves out the ids of calls",
            "fault_rate_limited": "litellm does not read the wait in the body of an error",
        },
    ),
}


@pytest.mark.parametrize("provider", CASES)
def test_litellm_over_the_protocol_of_a_provider(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    model, wire, known = CASES[provider]
    check_adapter(
        Karenina.default().adapters.get_spec("litellm"),
        config=ModelConfig(model_name=model, model_provider=provider, endpoint_base_url="http://127.0.0.1:9"),
        wire=wire,
        expected_failures={"one_attempt": BROKEN_LINE, "closing": CLOSING, "unknown_usage": USAGE, **known},
    )
