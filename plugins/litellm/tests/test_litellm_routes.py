"""What the plugin says without litellm: its interfaces, where a model is asked, what a configuration lacks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import karenina_litellm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.models.model_ports import make_port
from karenina_litellm.routes import problems, route

from karenina_core.plugin.application import Karenina
from karenina_core.values.config import ModelConfig

ROUTED = ("claude_agent_sdk", "claude_tool", "langchain", "langchain_deep_agents", "openrouter")


def model(**fields: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "m", **fields})


def test_the_entry_module_imports_neither_litellm_nor_anything_else_that_is_slow() -> None:
    code = (
        "import sys, karenina_litellm; "
        "print(sorted({'litellm', 'openai', 'httpx', 'aiohttp', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ROUTED)
def test_names_of_older_files_are_served_and_the_manifest_names_the_adapter(name: str) -> None:
    app = Karenina({"litellm": karenina_litellm})
    resolution = app.adapters.resolve_interface(name)
    assert resolution.requested == name
    assert resolution.interface == "litellm"
    assert resolution.note == f"{name} is served by litellm"
    assert app.adapters.check_availability(name).available


def test_every_route_says_in_its_description_that_litellm_is_behind_it() -> None:
    app = Karenina({"litellm": karenina_litellm})
    assert set(app.adapters.get_interfaces()) == {"litellm", *ROUTED}
    assert all("litellm" in app.adapters.get_spec(name).description for name in ROUTED)


def test_the_port_is_made_from_the_import_string_and_opens_nothing() -> None:
    app = Karenina({"litellm": karenina_litellm})
    spec = app.adapters.get_spec("litellm")
    assert spec.llm_factory is not None
    port = make_port(app.adapters, spec.llm_factory, model(), spec)
    assert port.capabilities.output_channels == ("json_schema", "tool_call", "json_object", "text")


@pytest.mark.parametrize(
    ("text", "interface"),
    [("openai/gpt-x", "litellm"), ("a/b/c", "litellm"), ("gpt-x", None), ("/x", None), ("x/", None), ("", None)],
)
def test_a_model_with_a_provider_is_one_for_litellm(text: str, interface: str | None) -> None:
    assert Karenina({"litellm": karenina_litellm}).hooks.karenina_resolve_model(model=text) == interface


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "m"),
        ({"model_name": "groq/m"}, "groq/m"),
        ({"model_provider": "groq"}, "groq/m"),
        ({"model_provider": "openrouter", "model_name": "a/b"}, "openrouter/a/b"),
        ({"interface": "langchain", "model_provider": "openai"}, "openai/m"),
        ({"interface": "langchain", "model_provider": "anthropic"}, "anthropic/m"),
        ({"interface": "langchain", "model_provider": "google_genai"}, "gemini/m"),
        ({"interface": "langchain", "model_provider": "google_vertexai"}, "vertex_ai/m"),
        ({"interface": "langchain_deep_agents", "model_provider": "mistralai"}, "mistral/m"),
        ({"model_provider": "google_genai"}, "google_genai/m"),
        ({"interface": "openrouter", "model_name": "a/b"}, "openrouter/a/b"),
        ({"interface": "claude_tool"}, "anthropic/m"),
        ({"interface": "claude_agent_sdk"}, "anthropic/m"),
        ({"endpoint_base_url": "http://h"}, "openai/m"),
        ({"endpoint_base_url": "http://h", "model_name": "meta/m"}, "openai/meta/m"),
        ({"endpoint_base_url": "http://h", "model_provider": "groq"}, "groq/m"),
    ],
)
def test_the_name_that_litellm_is_given(fields: dict[str, Any], expected: str) -> None:
    assert route(model(**fields)).model == expected
    assert not list(problems(model(**fields)))


@pytest.mark.parametrize(
    ("url", "fields", "expected"),
    [
        ("http://h:8000", {}, "http://h:8000/v1"),
        ("http://h:8000/", {}, "http://h:8000/v1"),
        ("http://h/v1", {}, "http://h/v1"),
        ("http://h/v1/", {}, "http://h/v1"),
        ("http://h/api", {}, "http://h/api/v1"),
        ("http://h/v1beta/openai", {}, "http://h/v1beta/openai"),
        ("http://h/proxy/chat/completions", {}, "http://h/proxy"),
        ("http://h", {"extra_kwargs": {"endpoint_base_url_mode": "raw"}}, "http://h"),
        ("http://h", {"extra_kwargs": {"endpoint_base_url_mode": "auto_v1"}}, "http://h/v1"),
        ("http://h", {"model_provider": "hosted_vllm"}, "http://h/v1"),
        ("http://h", {"model_provider": "groq"}, "http://h"),
        ("http://h/v1", {"model_provider": "anthropic"}, "http://h"),
        ("http://h/v1", {"interface": "claude_tool"}, "http://h"),
    ],
)
def test_the_base_url_that_litellm_is_given(url: str, fields: dict[str, Any], expected: str) -> None:
    config = model(endpoint_base_url=url, **fields)
    assert route(config).base_url == expected
    assert not list(problems(config))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"interface": "langchain"}, "model_provider: the interface 'langchain' needs one"),
        (
            {"interface": "claude_tool", "model_provider": "openai"},
            "model_provider: the interface 'claude_tool' always",
        ),
        ({"interface": "openrouter", "model_provider": "openai"}, "model_provider: the interface 'openrouter' always"),
        ({"endpoint_base_url": "localhost:8000"}, "endpoint_base_url: must begin with http"),
        ({"endpoint_base_url": "ftp://h"}, "endpoint_base_url: must begin with http"),
        ({"endpoint_base_url": ""}, "endpoint_base_url: must begin with http"),
        ({"endpoint_base_url": "http://h:port"}, "endpoint_base_url: is not a URL"),
        ({"endpoint_base_url": "http://u:sk-1@h"}, "endpoint_base_url: must hold no user name"),
        ({"endpoint_base_url": "http://h?a=1", "model_provider": "groq"}, "endpoint_base_url: a query cannot be sent"),
        ({"extra_kwargs": {"endpoint_base_url_mode": "v1"}}, "extra_kwargs.endpoint_base_url_mode: must be one of"),
        ({"extra_kwargs": {"max_response_bytes": 0}}, "extra_kwargs.max_response_bytes: must be a positive number"),
        ({"extra_kwargs": {"num_retries": 3}}, "extra_kwargs.num_retries: is set by karenina; leave it out"),
        ({"extra_kwargs": {"api_key": "sk-1"}}, "extra_kwargs.api_key: is set by karenina; leave it out"),
        ({"api_key_env": "KARENINA_TEST_NOT_SET"}, "api_key_env: set the environment variable"),
        ({"endpoint_api_key": "sk-\n1"}, "endpoint_api_key: the key has a control character in it"),
    ],
)
def test_a_configuration_that_cannot_work_is_complained_about_with_its_field(
    fields: dict[str, Any], complaint: str
) -> None:
    found = list(problems(model(**fields)))
    assert len(found) == 1
    assert found[0].startswith(complaint)
    assert "sk-1" not in found[0]


@given(st.text(max_size=40), st.sampled_from([None, "openai", "groq", "anthropic"]))
def test_no_base_url_makes_the_checks_raise(url: str, provider: str | None) -> None:
    config = model(endpoint_base_url=url, model_provider=provider)
    assert all(line.startswith("endpoint_base_url: ") for line in problems(config))
    route(config)


@given(st.sampled_from(["http://h", "https://h:1/a", "http://h/v2"]), st.booleans())
def test_the_base_url_of_a_route_is_a_fixed_point(url: str, slash: bool) -> None:
    once = route(model(endpoint_base_url=url + "/" * slash)).base_url
    assert once is not None
    assert route(model(endpoint_base_url=once)).base_url == once


def test_prices_are_those_of_the_list_of_litellm_and_nothing_is_imported_for_them() -> None:
    code = (
        "import sys; from karenina_litellm.port import LiteLLM; from karenina_core import ModelConfig; "
        "print([LiteLLM(ModelConfig(model_name=name, model_provider='openai')).token_prices "
        "for name in ('gpt-4o-mini', 'no-such-model')], 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[(1.5e-07, 6e-07), None] False"
