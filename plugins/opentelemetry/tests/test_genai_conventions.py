"""Names and forms are those of the conventions for generative AI, as the package of the conventions has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from karenina_opentelemetry.calls import (
    PROVIDERS,
    SPOKEN,
    output_message,
    provider_name,
    sampling_facts,
    server_facts,
)

from karenina_core import ModelConfig
from karenina_core.ports.values import LLMResponse
from karenina_core.values.message import ToolUseBlock

with warnings.catch_warnings():  # the conventions for generative AI are moving to a package of their own
    warnings.simplefilter("ignore")
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes import error_attributes, server_attributes

NAMES = {
    value
    for module in (gen_ai_attributes, error_attributes, server_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}
OLD = {
    "gen_ai.system",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens",
}
NEWER = {"moonshot_ai"}
"""Well known since the package was made."""


def well_known(enum: str) -> set[str]:
    return {member.value for member in getattr(gen_ai_attributes, enum)}


@pytest.mark.parametrize("content", [False, True])
def test_every_name_is_one_of_the_conventions_or_ours(traced: Callable[..., Any], content: bool) -> None:
    run = traced("q", "broken", answering="agent", content=content, rubric=True)
    events = [event for span in run.spans for event in span.events]
    used = {name for thing in (*run.spans, *events) for name in thing.attributes}
    assert used - NAMES == {name for name in used if name.startswith("karenina.")}
    assert used & OLD == set()
    operations = {span.attributes.get("gen_ai.operation.name") for span in run.spans} - {None}
    assert operations == {"chat", "invoke_agent", "execute_tool"} <= well_known("GenAiOperationNameValues")
    kinds = {span.attributes.get("gen_ai.output.type") for span in run.spans} - {None}
    assert kinds == {"json"} <= well_known("GenAiOutputTypeValues")
    for span in run.spans:
        operation = span.attributes.get("gen_ai.operation.name")
        if operation in ("chat", "invoke_agent"):
            assert span.name == f"{operation} {span.attributes['gen_ai.request.model']}"
            assert span.attributes["gen_ai.provider.name"] == "openai"


def test_what_a_sampler_decides_by_is_there_from_the_beginning(traced: Callable[..., Any]) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

    seen: dict[str, Any] = {}

    class Looks(Sampler):
        def should_sample(self, parent_context: Any, trace_id: int, name: str, *args: Any, **kw: Any) -> SamplingResult:
            seen[name] = kw.get("attributes") or (args[1] if len(args) > 1 else None)
            return ALWAYS_ON.should_sample(parent_context, trace_id, name, *args, **kw)

        def get_description(self) -> str:
            return "looks"

    traced("q", answering="agent", provider=TracerProvider(sampler=Looks()))
    asked = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}
    assert asked | {"server.address", "server.port"} <= set(seen["chat judge"])
    assert asked | {"gen_ai.agent.name"} <= set(seen["invoke_agent agent"])
    assert seen["execute_tool look"]["gen_ai.tool.name"] == "look"


def test_providers_are_called_as_the_conventions_call_them() -> None:
    known = well_known("GenAiProviderNameValues") | NEWER
    assert set(PROVIDERS.values()) <= known
    assert set(PROVIDERS) & known == set()
    assert set(SPOKEN.values()) - known == {"openrouter"}


@pytest.mark.parametrize(
    ("interface", "name", "provider", "url", "expected"),
    [
        ("openai_endpoint", "llama", None, "http://localhost:1", "openai"),
        ("claude_agent_sdk", "claude", None, None, "anthropic"),
        ("gemini", "gemini-2.5-pro", None, None, "gcp.gemini"),
        ("litellm", "mistral/large", None, None, "mistral_ai"),
        ("litellm", "meta/llama", None, "http://localhost:1/v1", "openai"),
        ("litellm", "large", "vertex_ai", None, "gcp.vertex_ai"),
        ("langchain", "gemini-2", "google_genai", None, "gcp.gemini"),
        ("somebody_elses", "org/model", None, None, "somebody_elses"),
    ],
)
def test_the_provider_is_whose_protocol_is_spoken(
    interface: str, name: str, provider: str | None, url: str | None, expected: str
) -> None:
    model = ModelConfig(interface=interface, model_name=name, model_provider=provider, endpoint_base_url=url)
    assert provider_name(model) == expected


@pytest.mark.parametrize(
    ("url", "facts"),
    [
        ("https://me:word@api.example.com/v1", {"server.address": "api.example.com", "server.port": 443}),
        ("http://localhost", {"server.address": "localhost", "server.port": 80}),
        ("http://[::1]:8080/v1", {"server.address": "::1", "server.port": 8080}),
        ("http://localhost:many", {}),
        ("http://[::1", {}),
        ("nothing", {}),
        (None, {}),
    ],
)
def test_a_server_has_an_address_and_a_port(url: str | None, facts: dict[str, Any]) -> None:
    model = ModelConfig(interface="openai_endpoint", model_name="m", endpoint_base_url=url)
    assert server_facts(model) == facts


def test_numbers_that_are_sent_along_are_recorded_and_nothing_else() -> None:
    extra = {"seed": 7, "top_p": 0.5, "top_k": "many", "stop": ["words"], "user": "somebody"}
    facts = sampling_facts(ModelConfig(interface="litellm", model_name="m", extra_kwargs=extra, max_tokens=9))
    assert facts == {"gen_ai.request.seed": 7, "gen_ai.request.top_p": 0.5, "gen_ai.request.max_tokens": 9}


def test_replies_have_the_parts_that_the_schema_of_messages_knows() -> None:
    response = LLMResponse(
        content="text", thinking="hm", structured='{"a": 1}', tool_calls=(ToolUseBlock("1", "look", {"at": 1}),)
    )
    assert output_message(response) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "text", "content": "text"},
                {"type": "text", "content": '{"a": 1}'},
                {"type": "tool_call", "id": "1", "name": "look", "arguments": {"at": 1}},
            ],
            "finish_reason": "unknown",
        }
    ]
