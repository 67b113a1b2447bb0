"""`karenina config`: what a run would have, and where each setting is from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]
KEY = "sk-abcdefgh12345678"
FILE = f"""
[run]
parsing_models = ["judge"]

[models.judge]
model_name = "openai/gpt-4.1"
api_key_env = "JUDGE_KEY"

[models.local]
model_name = "l"
interface = "openai_endpoint"
endpoint_base_url = "http://localhost:8000/v1"
endpoint_api_key = "{KEY}"
"""


@pytest.fixture(autouse=True)
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_PRESETS_DIR", str(tmp_path / "presets"))


def rows(result: Result) -> dict[str, tuple[Any, str]]:
    return {row["path"]: (row["value"], row["from"]) for row in json.loads(result.stdout)["settings"]}


def test_every_setting_has_its_value_and_its_origin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("k.toml").write_text(FILE, "utf-8")
    assert run("preset", "save", "slow", "--concurrency", "2", "--replicates", "5").exit_code == 0
    monkeypatch.setenv("KARENINA_CONCURRENCY", "3")
    options = ("--preset", "slow", "--config", "k.toml", "--answering-model", "local", "--with", "abstention")
    found = run("config", *options, "--set", "models.local.temperature=0", "--json")
    assert found.exit_code == 0, found.stderr
    file = Path("presets/slow.json").resolve()
    assert rows(found) == {
        "run.answering_models": (["local"], "the command line"),
        "run.parsing_models": (["judge"], "k.toml"),
        "run.features": (["abstention"], "the command line"),
        "run.concurrency": (3, "the environment (KARENINA_CONCURRENCY)"),
        "run.replicate_count": (5, f"the preset {file}"),
        "models.local.model_name": ("l", "k.toml"),
        "models.local.interface": ("openai_endpoint", "k.toml"),
        "models.local.endpoint_base_url": ("http://localhost:8000/v1", "k.toml"),
        "models.local.endpoint_api_key": ("[redacted]", "k.toml"),
        "models.local.temperature": (0.0, "--set"),
        "models.judge.model_name": ("openai/gpt-4.1", "k.toml"),
        "models.judge.api_key_env": ("JUDGE_KEY", "k.toml"),
    }
    assert json.loads(found.stdout)["key_variables"] == {"JUDGE_KEY": "not set"}
    every = rows(run("config", *options, "--all", "--json"))
    assert every["run.request_timeout"] == (120.0, "the default")
    assert every["models.judge.temperature"] == (0.1, "the default")
    text = run("config", *options)
    assert KEY not in found.output + text.output
    assert "run.concurrency 3 the environment (KARENINA_CONCURRENCY)" in " ".join(text.stdout.split())
    assert "Everything else has its default (--all)." in text.stdout


def test_what_it_shows_can_be_typed_again(run: Run) -> None:
    """Every path of a setting that is not secret is one of `--set`, and gives the same."""
    model = "openai/gpt-4.1"
    shown = run(
        "config", "--answering-model", model, "--set", 'run.prompt_config.parsing="Be strict."', "--replicates", "2"
    )
    lines = [line.split("  ") for line in shown.stdout.splitlines()[1:] if line.startswith("  ")]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    sets = [f"{path}={value}" for path, value, _ in cells if not value.startswith("{") and "_models" not in path]
    again = run("config", "--answering-model", model, *(word for line in sets for word in ("--set", line)), "--json")
    assert again.exit_code == 0, again.stderr
    assert rows(again)["run.replicate_count"] == (2, "--set")
    assert rows(again)[f'models."{model}".model_name'] == (model, "--set")


def test_a_wrong_configuration_is_an_error_here_too(run: Run) -> None:
    result = run("config", "--set", "run.concurency=2")
    assert (result.exit_code, "did you mean 'concurrency'" in result.stderr) == (1, True)


def test_without_options_nothing_but_the_environment_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("config").stdout.strip() == "Everything has its default (--all)."
    monkeypatch.setenv("KARENINA_DISABLE", "acp")
    assert rows(run("config", "--json")) == {"disable": (["acp"], "the environment (KARENINA_DISABLE)")}


LOCAL = ("--interface", "openai_endpoint", "--base-url", "http://localhost:1/v1", "--api-key-env", "KEY_OF_IT")


def test_one_option_gives_both_roles_the_same_model(run: Run) -> None:
    once = rows(run("config", "--model", "small", *LOCAL, "--json"))
    both = [f"--{role}-{option.removeprefix('--')}" for role in ("answering", "parsing") for option in LOCAL[::2]]
    twice = ["--answering-model", "small", "--parsing-model", "small"]
    twice += [word for pair in zip(both, [*LOCAL[1::2]] * 2, strict=True) for word in pair]
    assert once == rows(run("config", *twice, "--json"))
    assert once["models.small.endpoint_base_url"] == ("http://localhost:1/v1", "the command line")


def test_what_is_given_for_a_role_wins_over_what_is_given_for_both(run: Run) -> None:
    found = rows(run("config", "--model", "small", *LOCAL, "--parsing-model", "j", "--parsing-base-url", "h", "--json"))
    assert (found["run.answering_models"][0], found["run.parsing_models"][0]) == (["small"], ["j"])
    assert found["models.small.endpoint_base_url"][0] == "http://localhost:1/v1"
    assert found["models.j.endpoint_base_url"][0] == "h"
    assert found["models.j.interface"][0] == "openai_endpoint"


def test_an_option_for_both_roles_without_a_model_is_named_as_it_was_typed(run: Run) -> None:
    refused = run("config", "--base-url", "u")
    assert refused.exit_code == 1
    assert "--base-url: there is no model to apply it to; name one with --model" in refused.stderr
    assert "--answering" not in refused.stderr
