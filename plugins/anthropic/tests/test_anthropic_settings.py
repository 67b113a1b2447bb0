"""What a configuration means: the address, the key, and every problem before anything is paid for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from karenina_anthropic.settings import batches_url, check_config, endpoint_of, messages_url

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig


def config(url: str | None = None, **fields: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "m", "interface": "anthropic", "endpoint_base_url": url, **fields})


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (None, "https://api.anthropic.com/v1/messages"),
        ("http://h:8000", "http://h:8000/v1/messages"),
        ("http://h/v1/", "http://h/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/v1/messages", "https://h/v1/messages"),
        ("https://h/x?tenant=2", "https://h/x/v1/messages?tenant=2"),
    ],
)
def test_the_url(base: str | None, url: str) -> None:
    assert messages_url(config(base)) == url
    assert messages_url(config("http://h/x", extra_kwargs={"endpoint_base_url_mode": "raw"})) == "http://h/x/messages"


def test_the_url_of_batches() -> None:
    assert (
        batches_url("https://h/v1/messages?tenant=2", "/b/results")
        == "https://h/v1/messages/batches/b/results?tenant=2"
    )


def test_the_key_of_the_environment_goes_to_the_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (problem,) = check_config(config())
    assert problem.startswith("api_key_env: set the environment variable ANTHROPIC_API_KEY")
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        endpoint_of(config())
    monkeypatch.setenv("ANTHROPIC_API_KEY", " from-environment\n")
    monkeypatch.setenv("TEAM_KEY", "of-the-team")
    assert endpoint_of(config()).key == "from-environment"
    assert endpoint_of(config(api_key_env="TEAM_KEY")).key == "of-the-team"
    assert endpoint_of(config("http://gateway")).key == ""
    assert endpoint_of(config("http://gateway", api_key_env="TEAM_KEY")).key == "of-the-team"
    assert "of-the-team" not in repr(endpoint_of(config(api_key_env="TEAM_KEY")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "gateway"}, "endpoint_base_url: must begin with http"),
        ({"extra_kwargs": {"auth": "basic"}}, "extra_kwargs.auth: must be one of x-api-key, bearer"),
        ({"extra_kwargs": {"prompt_caching": "yes"}}, "extra_kwargs.prompt_caching: must be true or false"),
        ({"extra_kwargs": {"anthropic_beta": "one"}}, "extra_kwargs.anthropic_beta: must be a list"),
        ({"extra_kwargs": {"anthropic_version": ""}}, "extra_kwargs.anthropic_version: must be a version"),
        ({"extra_kwargs": {"system": "x"}}, "extra_kwargs.system: is set by karenina"),
        ({"extra_kwargs": {"max_tokens": 5}}, "extra_kwargs.max_tokens: is set by karenina"),
        ({"extra_kwargs": {"x": object()}}, "extra_kwargs: must be JSON"),
        ({"endpoint_api_key": "one\ntwo"}, "endpoint_api_key: "),
        ({"api_key_env": "KARENINA_NO_SUCH_KEY"}, "api_key_env: set the environment variable KARENINA_NO_SUCH_KEY"),
    ],
)
def test_every_problem_names_its_field(fields: dict[str, Any], problem: str) -> None:
    (found,) = check_config(config(**{"url": "http://gateway", **fields}))
    assert re.match(re.escape(problem), found)
