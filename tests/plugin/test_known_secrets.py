"""Secrets of a run: what models, settings of plugins and the environment are trusted with, each with its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import field, frozen
from karenina_calls.secrets.known_secrets import SECRET_VARIABLES, secret_settings, secrets_in_endpoint, secrets_of

from karenina_core import Karenina, ModelConfig

KEY = "canary-0815"


def model(**facts: Any) -> ModelConfig:
    return ModelConfig(model_name="m", interface="i", **facts)


@frozen
class Settings:
    token: str | None = field(default=None, metadata={SECRET_VARIABLES: True})
    environment: Mapping[str, tuple[str, ...]] = field(factory=dict, metadata={SECRET_VARIABLES: True})
    folder: str = "PLAIN"


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without secrets."""
    monkeypatch.setattr("os.environ", {})
    return monkeypatch


@pytest.fixture
def app(module: Callable[..., Any]) -> Karenina:
    plugins = {
        "plain": module(karenina_register_stages=lambda registry: None),
        "with": module(karenina_register_settings=lambda registry: registry.add(Settings)),
    }
    tables = {"with": {"token": "ONE", "environment": {"a": ["TWO", "THREE"], "b": ["FOUR"]}, "folder": "FIVE"}}
    return Karenina(plugins, settings=tables)


def test_variables_that_settings_of_plugins_name_are_secret_and_no_others(
    app: Karenina, empty: pytest.MonkeyPatch
) -> None:
    numbers = ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")
    empty.setattr("os.environ", {name: f"value-{name}" for name in numbers})
    assert secrets_of(app, []) == {f"value-{name}": name for name in numbers[:4]}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"endpoint_api_key": KEY}, {KEY: "endpoint_api_key"}),
        ({"endpoint_api_key": "12345678"}, {"12345678": "endpoint_api_key"}),  # whatever it looks like
        ({"endpoint_api_key": "1234567"}, {}),
        ({"api_key_env": "NAMED"}, {"whatever": "NAMED"}),
        ({"api_key_env": "NOT_SET"}, {}),
        ({"endpoint_base_url": f"https://anne:{KEY}@host/v1"}, {KEY: "endpoint_base_url"}),
        ({"extra_kwargs": {"api_key": KEY, "seed": "not-a-secret"}}, {KEY: "extra_kwargs"}),
        ({"mcp_urls_dict": {"a": f"https://host/?token={KEY}"}}, {KEY: "mcp_urls_dict"}),
    ],
)
def test_what_a_model_is_configured_with_is_secret(
    app: Karenina, empty: pytest.MonkeyPatch, facts: dict[str, Any], found: dict[str, str]
) -> None:
    empty.setattr("os.environ", {"NAMED": "whatever", "PLAIN": "no-secret"})
    assert secrets_of(app, [model(), model(**facts)]) == found


def test_a_variable_is_named_before_a_setting(app: Karenina, empty: pytest.MonkeyPatch) -> None:
    empty.setattr("os.environ", {"MY_API_KEY": KEY})
    assert secrets_of(app, [model(endpoint_api_key=KEY)]) == {KEY: "MY_API_KEY"}


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, []),
        ({"endpoint_base_url": "https://host/v1?version=2"}, []),
        ({"endpoint_base_url": "https://anne@host/v1"}, ["endpoint_base_url"]),
        ({"endpoint_base_url": "https://host/v1?version=2&api_key=x"}, ["endpoint_base_url"]),
        ({"endpoint_base_url": "https://host/v1?api_key="}, []),
        ({"endpoint_base_url": "http://[broken"}, []),
        ({"endpoint_api_key": KEY}, []),  # no file shows it
        ({"mcp_urls_dict": {"a": "https://host/mcp", "b": f"https://host/?token={KEY}"}}, ["mcp_urls_dict.b"]),
        ({"mcp_urls_dict": {"a": f"https://anne:{KEY}@host/?v=&w=x"}}, ["mcp_urls_dict.a"]),
        ({"extra_kwargs": {"seed": 3, "api_key": KEY}}, ["extra_kwargs.api_key"]),
        ({"extra_kwargs": {"extra_headers": {"X-Auth": KEY, "Accept": "text/plain"}}}, ["extra_kwargs.extra_headers"]),
        ({"extra_kwargs": {"extra_headers": {"X-Auth": ["text", KEY]}}}, ["extra_kwargs.extra_headers"]),
        ({"extra_kwargs": {"extra_body": {"X-Auth": KEY}}}, []),
        ({"extra_kwargs": {"headers": [{"Cookie": f"id={KEY}"}]}}, ["extra_kwargs.headers"]),
        ({"extra_kwargs": {"tokens": [KEY], "password": [1, KEY]}}, ["extra_kwargs.password"]),
        (
            {"extra_kwargs": {"Authorization": "Bearer 1234567"}, "endpoint_base_url": "http://u@h"},
            ["endpoint_base_url"],
        ),
        ({"extra_kwargs": {"headers": {"Authorization": "Bearer 12345678"}}}, ["extra_kwargs.headers"]),
    ],
)
def test_settings_that_would_show_a_secret_are_named(facts: dict[str, Any], shown: list[str]) -> None:
    assert secret_settings(model(**facts)) == shown


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://host/v1", []),
        ("https://anne:a:b@host/v1?version=2&x=y", ["anne", "a:b", "2", "y"]),
        ("https://:pw@host", ["pw"]),
        ("https://a@b@host", ["a@b"]),
        ("http://[broken?key=x", []),
    ],
)
def test_of_an_endpoint_the_user_the_password_and_the_query_are_secret(url: str, found: list[str]) -> None:
    assert list(secrets_in_endpoint(url)) == found


def test_a_bearer_is_no_part_of_its_token(app: Karenina, empty: pytest.MonkeyPatch) -> None:
    headers = {"extra_headers": {"Authorization": f"Bearer {KEY}"}}
    assert secrets_of(app, [model(extra_kwargs=headers)]) == {KEY: "extra_kwargs"}
