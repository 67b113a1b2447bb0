"""What a session of the program is given of the machine: few variables, no settings, no foreign keys."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import evolve
from karenina_claude_agent_sdk.ports import ClaudeAgent

from karenina_core import ModelConfig
from karenina_core.values.message import Message

KEY = "sk-ant-canary-0123456789"
ASK = (Message.user("Why?"),)


@pytest.fixture
def environment(scripted: Any, says: Any) -> Any:
    """`environment(settings={...}, **fields of the model)`: the variables that the program was given."""

    def run(settings: dict[str, Any] | None = None, **fields: Any) -> dict[str, str]:
        program = scripted(says.reply(says.text("So.")), says.result("So."))
        config = ModelConfig(**{"model_name": "m", "interface": "claude_agent_sdk", **fields})
        asyncio.run(ClaudeAgent(config, evolve(program.settings, **(settings or {}))).arun(ASK))
        return dict(program.environment)

    return run


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-0123456789")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/my/settings")


def test_the_program_gets_what_it_needs_and_nothing_else(environment: Any) -> None:
    given = environment(endpoint_api_key=KEY)
    assert {"PATH", "HOME", "LC_TIME"} <= given.keys()
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "CLAUDECODE"} & given.keys()
    assert given["ANTHROPIC_API_KEY"] == KEY


def test_settings_and_logins_of_the_user_are_not_looked_at_where_there_is_a_key(environment: Any) -> None:
    assert "karenina-claude-" in environment(endpoint_api_key=KEY)["CLAUDE_CONFIG_DIR"]


def test_without_any_key_the_login_of_the_user_counts(environment: Any) -> None:
    given = environment()
    assert given["CLAUDE_CONFIG_DIR"] == "/my/settings"
    assert not [name for name in given if name.endswith(("_KEY", "_TOKEN"))]


def test_keys_of_the_environment_count_where_the_model_names_none(
    environment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "token-0123456789")
    given = environment()
    assert given["CLAUDE_CODE_OAUTH_TOKEN"] == "token-0123456789"
    assert given["CLAUDE_CONFIG_DIR"] != "/my/settings"
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in environment(endpoint_api_key=KEY), "a foreign key is in the environment"


def test_a_key_goes_into_the_variable_that_it_is_for(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "token-0123456789")
    monkeypatch.setenv("MY_KEY", KEY)
    assert "ANTHROPIC_API_KEY" not in environment(api_key_env="CLAUDE_CODE_OAUTH_TOKEN")
    assert environment(api_key_env="MY_KEY")["ANTHROPIC_API_KEY"] == KEY
    assert "MY_KEY" not in environment(api_key_env="MY_KEY")


def test_no_key_of_the_user_goes_to_another_server(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    given = environment(endpoint_base_url="https://gateway.example")
    assert given["ANTHROPIC_BASE_URL"] == "https://gateway.example"
    assert given["ANTHROPIC_API_KEY"] == "no-key"
    assert given["CLAUDE_CONFIG_DIR"] != "/my/settings", "the login of the user would be sent there"
    assert environment(endpoint_base_url="https://gateway.example", endpoint_api_key="k")["ANTHROPIC_API_KEY"] == "k"


def test_the_settings_name_more_variables(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert "HTTPS_PROXY" not in environment()
    assert environment({"environment": ("HTTPS_PROXY", "NOT_SET")})["HTTPS_PROXY"] == "http://proxy:3128"


def test_two_sessions_are_kept_apart(environment: Any) -> None:
    assert environment()["KARENINA_AGENT_SESSION"] != environment()["KARENINA_AGENT_SESSION"]
