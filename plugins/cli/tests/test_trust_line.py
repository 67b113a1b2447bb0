"""The command that is proposed to whoever trusts a file holds no secret of the one that was typed."""

from __future__ import annotations

import shlex

import pytest
from karenina_cli.options.flags import trust_line

KEY = "sk-abcdef-0815"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", f"models.m.endpoint_api_key={KEY}"],
        [f"--set=models.m.endpoint_api_key={KEY}"],
        ["--set", f'models.m.extra_kwargs={{"api_key"="{KEY}"}}'],
        ["--set", f'models.m.extra_kwargs={{"\\u0061pi_key"="{KEY}"}}'],
        ["--set", f'models.m.extra_kwargs={{"default_headers"={{"X-Auth"="{KEY}"}}}}'],
        ["--set", f'models.m.extra_kwargs={{"default_headers"={{"Authorization"="Bearer {KEY}"}}}}'],
        ["--set", f'models.m.extra_kwargs={{"headers"={{"Cookie"="{KEY}"}}}}'],
        ["--set", f"models.m.extra_kwargs.default_headers.X-Auth={KEY}"],
        ["--set", f"models.m.endpoint_base_url=https://u:{KEY}@h/v1"],
        ["--set", f"models.m.endpoint_base_url=https://h/v1?code={KEY}"],
        ["--set", f'models.m.mcp_urls_dict={{"s"="https://h/mcp?api_key={KEY}"}}'],
        ["--set", f'models.m.mcp_urls_dict={{"s"="python server.py --token {KEY}"}}'],
        ["--set", f"models.m.mcp_urls_dict.s=python server.py --token {KEY}"],
        ["--set", f'models.m.extra_kwargs={{"headers"={{"Cookie"="{KEY}"'],
        ["--answering-base-url", f"https://u:{KEY}@h/v1"],
        ["--answering-base-url", f"https://{KEY}@h/v1"],
        [f"--answering-base-url=https://h/v1?api-key={KEY}"],
        ["--answering-mcp", f"s=python x.py --token={KEY}"],
        ["--answering-mcp", f"s=python x.py --token {KEY}"],
        [f"--answering-mcp=s=https://h/mcp?key={KEY}"],
        ["--sink", f"postgres:postgresql://u:{KEY}@h/db"],
        [f"--sink=postgres:postgresql://h/db?sslpassword={KEY}"],
    ],
)
def test_the_proposed_command_has_no_secret(arguments: list[str]) -> None:
    line = trust_line(["verify", "b.jsonld", *arguments])
    assert KEY not in line
    assert shlex.split(line, comments=True)[4].startswith(arguments[0].partition("=")[0]), "what to type is there"
    assert line.endswith("  # type again what is [redacted] here")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "models.m.max_tokens=500"],
        ["--set", "models.m.api_key_env=MY_KEY"],
        ["--set", 'models.m.extra_kwargs={"default_headers"={"X-Region"="eu-central-1"}}'],
        ["--set", "models.m.endpoint_base_url=https://h/v1"],
        ["--answering-api-key-env=MY_KEY", "--budget-tokens=500"],
        ["--answering-api-key-env", "MY_KEY", "--answering-base-url", "https://h:8000/v1"],
        ["--answering-model", "openai/gpt-4.1", "--run-name", "a = b"],
        ["--sink", "sqlite:/a/b.db"],
    ],
)
def test_what_is_no_secret_is_proposed_as_it_was_typed(arguments: list[str]) -> None:
    typed = ["b.jsonld", *arguments]
    assert trust_line(["verify", *typed]) == shlex.join(["karenina", "verify", "--trust", *typed])
