"""What a configuration means: the address, the key, and every problem before anything is paid for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from karenina_gemini.settings import check_config, endpoint_of, method_url

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig


def config(url: str | None = None, **fields: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "m", "interface": "gemini", "endpoint_base_url": url, **fields})


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (None, "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"),
        ("http://h:8000", "http://h:8000/v1beta/models/m:generateContent"),
        ("http://h/v1/", "http://h/v1/models/m:generateContent"),
        ("http://h/v1/publishers/google", "http://h/v1/publishers/google/models/m:generateContent"),
        ("https://h/gemini/models", "https://h/gemini/models/m:generateContent"),
        ("https://h/x?tenant=2", "https://h/x/v1beta/models/m:generateContent?tenant=2"),
    ],
)
def test_the_url(base: str | None, url: str) -> None:
    assert method_url(config(base), "generateContent") == url


def test_the_url_of_streams_raw_addresses_and_names_that_need_quoting() -> None:
    streamed = method_url(config("https://h/v1?tenant=2"), "streamGenerateContent", alt="sse")
    assert streamed == "https://h/v1/models/m:streamGenerateContent?tenant=2&alt=sse"
    raw = config("http://h/x", extra_kwargs={"endpoint_base_url_mode": "raw"})
    assert method_url(raw, "generateContent") == "http://h/x/models/m:generateContent"
    named = config("http://h/v1", model_name="gemini:models/a b?c")
    assert method_url(named, "generateContent") == "http://h/v1/models/a%20b%3Fc:generateContent"


def test_the_keys_of_the_environment_go_to_the_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    (problem,) = check_config(config())
    assert problem.startswith("api_key_env: set the environment variable GOOGLE_API_KEY or GEMINI_API_KEY")
    with pytest.raises(ConfigError, match="GEMINI_API_KEY"):
        endpoint_of(config())
    monkeypatch.setenv("GEMINI_API_KEY", " of-gemini\n")
    monkeypatch.setenv("TEAM_KEY", "of-the-team")
    assert endpoint_of(config()).key == "of-gemini"
    monkeypatch.setenv("GOOGLE_API_KEY", "of-google")
    assert endpoint_of(config()).key == "of-google"
    assert endpoint_of(config(api_key_env="TEAM_KEY")).key == "of-the-team"
    assert endpoint_of(config("http://gateway")).key == ""
    assert endpoint_of(config("http://gateway", api_key_env="TEAM_KEY")).key == "of-the-team"
    assert "of-the-team" not in repr(endpoint_of(config(api_key_env="TEAM_KEY")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "gateway"}, "endpoint_base_url: must begin with http"),
        ({"extra_kwargs": {"contents": []}}, "extra_kwargs.contents: is set by karenina"),
        ({"extra_kwargs": {"tools": []}}, "extra_kwargs.tools: is set by karenina"),
        ({"extra_kwargs": {"generationConfig": "x"}}, "extra_kwargs.generationConfig: must be a table"),
        (
            {"extra_kwargs": {"generationConfig": {"maxOutputTokens": 5}}},
            "extra_kwargs.generationConfig.maxOutputTokens: is set by karenina",
        ),
        ({"extra_kwargs": {"x": object()}}, "extra_kwargs: must be JSON"),
        ({"endpoint_api_key": "one\ntwo"}, "endpoint_api_key: "),
        ({"api_key_env": "KARENINA_NO_SUCH_KEY"}, "api_key_env: set the environment variable KARENINA_NO_SUCH_KEY"),
    ],
)
def test_every_problem_names_its_field(fields: dict[str, Any], problem: str) -> None:
    (found,) = check_config(config(**{"url": "http://gateway", **fields}))
    assert re.match(re.escape(problem), found)
