"""One benchmark and one script: whatever protocol the models are reached by, the verdicts are the same."""

from __future__ import annotations

from typing import Any

import pytest

from karenina_core import Benchmark, ModelConfig, VerificationConfig
from karenina_core.testing import (
    AnthropicMessages,
    ChatCompletions,
    GeminiGenerateContent,
    ScriptedServer,
    ServedRequest,
    Wire,
)

ANSWER = "Digoxin inhibits the sodium-potassium ATPase. Hypokalaemia makes toxicity more likely."
FIELDS = {"pump": "sodium-potassium ATPase", "hypokalaemia_raises_risk": True}
DOORS: dict[str, tuple[Wire, dict[str, Any]]] = {
    "chat completions": (ChatCompletions(), {"interface": "openai_endpoint"}),
    "chat completions through litellm": (ChatCompletions(), {"interface": "litellm", "model_provider": "openai"}),
    "Anthropic": (AnthropicMessages(), {"interface": "anthropic"}),
    "Anthropic through litellm": (AnthropicMessages(), {"interface": "litellm", "model_provider": "anthropic"}),
    "Gemini through litellm": (GeminiGenerateContent(), {"interface": "litellm", "model_provider": "gemini"}),
}
MODELS = {"AnthropicMessages": "claude-sonnet-4-5", "GeminiGenerateContent": "gemini-2.5-flash"}


def script(request: ServedRequest) -> Any:
    assert request.text
    return ANSWER if request.channel == "text" else FIELDS


@pytest.mark.parametrize("door", DOORS)
def test_the_verdict_is_the_same_over_every_protocol(door: str) -> None:
    wire, fields = DOORS[door]
    with ScriptedServer(script, wire=wire) as server:
        name = MODELS.get(type(wire).__name__, "gpt-4.1")
        model = ModelConfig(model_name=name, endpoint_base_url=server.url, endpoint_api_key="k" * 20, **fields)
        run = VerificationConfig(answering_models=[model], parsing_models=[model])
        (result,) = Benchmark.load("examples/pharmacology.jsonld").run_verification(run, question_ids=["digoxin"])
    assert result.generation is not None
    assert result.template is not None
    assert (str(result.outcome), result.generation.raw_llm_response) == ("passed", ANSWER)
    assert result.template.parsed_llm_response == FIELDS
    assert result.template.judge_channel == "json_schema"
    assert server.count == 2
