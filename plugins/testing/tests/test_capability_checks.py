"""A false declaration is found by the check of that capability, in both directions; a true one passes."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from karenina_openai_endpoint.batches import OpenAIBatches
from karenina_openai_endpoint.port import CAPABILITIES, OpenAIEndpoint
from karenina_testing.adapters.capabilities import CAPABILITIES as CHECKS

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.ports import LLMResponse, Message, PortCapabilities, UsageMetadata
from karenina_core.testing import adapter_checks

BARE = PortCapabilities(supports_system_prompt=False)
UNDECLARED: dict[str, dict[str, Any]] = {
    "system_prompt": {"supports_system_prompt": False},
    "channels": {"output_channels": ("json_schema", "tool_call", "text")},
    "tools": {"supports_tools": False},
    "streaming": {"supports_streaming": False},
    "thinking": {"reports_thinking": False},
    "cached_tokens": {"reports_cached_tokens": False},
}
"""Of a port that can do everything: what it keeps to itself."""
ABSENT: dict[str, dict[str, Any]] = {
    "system_prompt": {"supports_system_prompt": True},
    "channels": {"output_channels": ("json_object", "text"), "supports_structured_output": True},
    "tools": {"supports_tools": True},
    "streaming": {"supports_streaming": True},
    "thinking": {"reports_thinking": True},
    "cached_tokens": {"reports_cached_tokens": True},
}
"""Of a port that can do nothing but reply: what it says that it can."""


class Bare:
    """A port that sends texts and gives texts back."""

    capabilities = BARE

    def __init__(self, config: ModelConfig) -> None:
        self.inner = OpenAIEndpoint(config)

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, tools: Any = (), call: Any = None
    ) -> LLMResponse:
        texts = "\n".join(message.text for message in messages)
        reply = await self.inner.ainvoke([Message.user(texts)], temperature=temperature)
        used = reply.usage
        counted = UsageMetadata(used.input_tokens, used.output_tokens, used.total_tokens)
        return evolve(reply, usage=counted, thinking=None, structured=None, tool_calls=())

    async def aclose(self) -> None:
        await self.inner.aclose()


def spec(base: type, capabilities: PortCapabilities, **factories: Any) -> AdapterSpec:
    declaring = type("Declaring", (base,), {"capabilities": capabilities})
    return AdapterSpec(interface="planted", description="declares", llm_factory=declaring, **factories)


def broken(planted: AdapterSpec, failure: Any) -> dict[str, str]:
    """What the checks of capabilities say, by the names of those that fail."""
    checks = [check for check in adapter_checks(planted) if check.name in CHECKS]
    assert len(checks) == len(CHECKS)
    return {check.name: failure([check], check.name) for check in checks if check.find_fault() is not None}


@pytest.mark.parametrize("name", UNDECLARED)
def test_what_is_there_has_to_be_declared(name: str, failure: Any) -> None:
    found = broken(spec(OpenAIEndpoint, evolve(CAPABILITIES, **UNDECLARED[name])), failure)
    assert list(found) == [name]
    assert any(told in found[name] for told in (f"say {next(iter(UNDECLARED[name]))}=True", "add 'json_object'"))


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_declared_has_to_be_there(name: str, failure: Any) -> None:
    found = broken(spec(Bare, evolve(BARE, **ABSENT[name])), failure)
    assert list(found) == [name]


def test_batches_in_both_directions(failure: Any) -> None:
    hidden = broken(spec(OpenAIBatches, CAPABILITIES), failure)
    assert list(hidden) == ["batches"]
    assert "name it in batch_factory" in hidden["batches"]
    absent = broken(spec(Bare, BARE, batch_factory=Bare), failure)
    assert list(absent) == ["batches"]
    assert "has no encode, decode, submit" in absent["batches"]

    class Other(OpenAIBatches):
        def encode(self, messages: Any, *, output: Any = None, temperature: Any = None) -> str:
            return super().encode(messages[-1:], output=output, temperature=temperature)

    differs = broken(spec(OpenAIEndpoint, CAPABILITIES, batch_factory=Other), failure)
    assert list(differs) == ["batches"]
    assert "let encode make the same body" in differs["batches"]


def test_structured_output_and_its_channels_agree(failure: Any) -> None:
    found = broken(spec(OpenAIEndpoint, evolve(CAPABILITIES, supports_structured_output=False)), failure)
    assert list(found) == ["channels"]


def test_true_declarations_pass(failure: Any) -> None:
    everything = spec(OpenAIEndpoint, CAPABILITIES, batch_factory=OpenAIBatches)
    assert broken(everything, failure) == {}
    assert broken(spec(Bare, BARE), failure) == {}
