"""What a configuration means: the URL, the limits, and every problem at once before anything is paid for."""

from __future__ import annotations

from typing import Any

import karenina_openai_endpoint
import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.models.model_ports import make_port
from karenina_calls.wire.endpoints import max_response_bytes
from karenina_openai_endpoint.settings import check_config, completions_url, model_name

from karenina_core.errors import ConfigError
from karenina_core.plugin.adapters import AdapterRegistry
from karenina_core.values.config import ModelConfig

GOOD = "http://localhost:8000"


def config(url: str | None = GOOD, **fields: Any) -> ModelConfig:
    return ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=url, **fields)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/", "http://h:8000/v1/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("https://h/api/v1", "https://h/api/v1/chat/completions"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
        ("https://h/paas/v4", "https://h/paas/v4/chat/completions"),
        ("https://h/openai", "https://h/openai/v1/chat/completions"),
        ("https://h/version", "https://h/version/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/x/chat/completions/", "https://h/x/chat/completions"),
        ("https://h/v1?api-version=2", "https://h/v1/chat/completions?api-version=2"),
        ("http://[::1]:80", "http://[::1]:80/v1/chat/completions"),
    ],
)
def test_the_url(base: str, url: str) -> None:
    assert completions_url(config(base)) == url


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (
            "https://h/openai/deployments/d?api-version=2",
            "https://h/openai/deployments/d/chat/completions?api-version=2",
        ),
        ("http://h", "http://h/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
    ],
)
def test_raw_leaves_the_base_url_alone(base: str, url: str) -> None:
    assert completions_url(config(base, extra_kwargs={"endpoint_base_url_mode": "raw"})) == url


@given(st.text(max_size=30))
def test_any_text_is_a_url_or_a_problem(text: str) -> None:
    candidate = config(f"http://{text}")
    if not check_config(candidate):
        assert "/chat/completions" in completions_url(candidate)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": None}, "endpoint_base_url: .*--answering-base-url"),
        ({"url": "localhost:8000"}, "endpoint_base_url: must begin with http"),
        ({"url": "ftp://h"}, "endpoint_base_url: must begin with http"),
        ({"url": "http://"}, "endpoint_base_url: must begin with http"),
        ({"url": "http://h:port"}, "endpoint_base_url: is not a URL"),
        ({"url": "http://[h"}, "endpoint_base_url: is not a URL"),
        ({"url": "http://me:secret@h"}, "endpoint_base_url: must hold no user name or password"),
        ({"extra_kwargs": {"endpoint_base_url_mode": "v2"}}, "endpoint_base_url_mode: must be one of auto_v1, raw"),
        ({"extra_kwargs": {"max_response_bytes": 0}}, "max_response_bytes: must be a positive"),
        ({"extra_kwargs": {"max_response_bytes": True}}, "max_response_bytes: must be a positive"),
        ({"extra_kwargs": {"max_response_bytes": "8 MB"}}, "max_response_bytes: must be a positive"),
        ({"extra_kwargs": {"stream": True}}, "extra_kwargs.stream: is set by karenina"),
        ({"extra_kwargs": {"messages": []}}, "extra_kwargs.messages: is set by karenina"),
        ({"extra_kwargs": {"x": object()}}, "extra_kwargs: must be JSON"),
        ({"extra_kwargs": {"x": float("nan")}}, "extra_kwargs: must be JSON"),
        ({"api_key_env": "KARENINA_NO_SUCH_KEY"}, "api_key_env: set the environment variable KARENINA_NO_SUCH_KEY"),
        ({"endpoint_api_key": "one\ntwo"}, "endpoint_api_key: .*line break"),
    ],
)
def test_every_problem_names_its_field(fields: dict[str, Any], problem: str) -> None:
    (found,) = check_config(config(**fields))
    assert pytest.RaisesExc(ConfigError, match=problem).matches(ConfigError(found))
    assert "one\ntwo" not in found
    assert "secret" not in found


def test_all_problems_come_at_once() -> None:
    assert len(check_config(config(None, extra_kwargs={"model": "x", "max_response_bytes": -1}))) == 3


def test_a_good_configuration_has_no_problems() -> None:
    extra = {"top_p": 0.1, "endpoint_base_url_mode": "raw", "max_response_bytes": 1}
    assert check_config(config(extra_kwargs=extra, endpoint_api_key=" key\n")) == []
    assert max_response_bytes(config(extra_kwargs=extra)) == 1
    assert max_response_bytes(config()) == 8_000_000
    with pytest.raises(ConfigError):
        completions_url(config("nowhere"))


def test_the_plugin_registers_the_interface() -> None:
    registry = AdapterRegistry()
    karenina_openai_endpoint.karenina_register_adapters(registry)
    spec = registry.get_spec("openai_endpoint")
    assert registry.check_availability("openai_endpoint").available
    assert not spec.requires_provider
    assert spec.config_checker is not None
    assert list(spec.config_checker(config(None)))
    assert spec.llm_factory is not None
    made = make_port(registry, spec.llm_factory, config(), spec)
    assert type(made).__name__ == "OpenAIEndpoint"


def test_a_name_may_say_the_interface() -> None:
    assert karenina_openai_endpoint.karenina_resolve_model("openai_endpoint:llama3:8b") == "openai_endpoint"
    assert karenina_openai_endpoint.karenina_resolve_model("llama3:8b") is None
    assert karenina_openai_endpoint.karenina_resolve_model("openai/gpt-4.1") is None
    named = ModelConfig(model_name="openai_endpoint:llama3:8b", interface="openai_endpoint", endpoint_base_url=GOOD)
    assert model_name(named) == "llama3:8b"
    assert model_name(config()) == "m"
