"""Where each setting in force is from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_runs.config.config_file import Flags, Layer, RunConfig, load_config
from karenina_runs.config.config_models import ModelFlags, Supplied
from karenina_runs.config.origins import InForce, in_force

FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "replicate_count": st.integers(1, 9),
    "concurrency": st.integers(1, 99),
    "include_extraction_hints": st.booleans(),
    "evaluation_mode": st.sampled_from(["template_only", "rubric_only"]),
}
layer = st.fixed_dictionaries({}, optional=dict(FIELDS))


def by_path(loaded: RunConfig) -> dict[str, InForce]:
    return {".".join(setting.keys): setting for setting in in_force(loaded)}


def origins(loaded: RunConfig) -> dict[str, str]:
    return {path: setting.origin for path, setting in by_path(loaded).items() if setting.origin}


@settings(deadline=None)  # plugins are loaded
@given(preset=layer, variables=layer, sets=layer, flags=layer)
def test_a_setting_is_from_where_its_value_was_said(
    preset: dict[str, Any], variables: dict[str, Any], sets: dict[str, Any], flags: dict[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(f"KARENINA_{name.upper()}", str(value))
        loaded = load_config(
            None,
            [f"run.{name}={json.dumps(value)}" for name, value in sets.items()],
            Flags(run=flags),
            models=False,
            preset=Layer("the preset", {"run": preset}),
        )
        found = by_path(loaded)
    said = {"the preset": preset, "--set": sets, "the command line": flags}
    said |= {f"the environment (KARENINA_{name.upper()})": variables for name in FIELDS}
    for name in FIELDS:
        setting = found[f"run.{name}"]
        assert setting.value == getattr(loaded.config, name)
        given = [table for table in (preset, variables, sets, flags) if name in table]
        assert bool(setting.origin) == bool(given)
        assert not given or said[setting.origin][name] == setting.value
        assert not given or said[setting.origin] is given[-1]


def test_features_are_from_everything_that_switched_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_SUFFICIENCY_ENABLED", "true")
    loaded = load_config(
        flags=Flags(features_off=["deep_judgment"]), preset=Layer("p", {"run": {"features": ["abstention"]}})
    )
    assert by_path(loaded)["run.features"].value == ["abstention", "sufficiency"]
    assert origins(loaded)["run.features"] == "p, the environment (KARENINA_SUFFICIENCY_ENABLED), the command line"
    loaded = load_config(sets=["run.deep_judgment_mode=reasoning_only"])
    assert origins(loaded) == {
        "run.features": "the environment (KARENINA_SUFFICIENCY_ENABLED), --set",
        "run.deep_judgment_reasoning_only": "--set",
    }


def test_fields_of_models_are_from_tables_flags_and_plugins(tmp_path: Path) -> None:
    file = tmp_path / "k.toml"
    file.write_text('[models.small]\nmodel_name = "s"\ninterface = "openai_endpoint"\nmax_tokens = 5\n', "utf-8")
    answering = ModelFlags(role="answering", models=("small", "anthropic:claude"), api_key_env="THE_KEY")
    parsing = ModelFlags(role="parsing", interface="manual")
    traces = Supplied("--manual-traces", "manual", "manual_traces", lambda: {"q": "a"})
    flags = Flags(answering=answering, parsing=parsing, supplied=(traces,))
    loaded = load_config(file, ["models.small.max_tokens=7"], flags)
    assert origins(loaded) == {
        "run.answering_models": "the command line",
        "models.small.model_name": str(file),
        "models.small.interface": str(file),
        "models.small.max_tokens": "--set",
        "models.small.api_key_env": "the command line",
        "models.anthropic:claude.model_name": "the command line",
        "models.anthropic:claude.interface": "a plugin, by the name of the model",
        "models.anthropic:claude.api_key_env": "the command line",
        "models.manual.interface": "the command line",
        "models.manual.manual_traces": "--manual-traces",
    }
    assert by_path(loaded)["models.manual.manual_traces"].value == "1 recorded answer"
    assert by_path(loaded)["models.small.temperature"] == InForce(("models", "small", "temperature"), 0.1, "")


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ["sk-abcdefgh12345678", "hunter2-hunter2", "a-password", "tok-0123456789", "pw"]
    monkeypatch.setenv("THEIR_PASSWORD", secrets[1])
    table = {
        "run": {"parsing_models": ["judge"], "prompt_config": {"parsing": f"Use {secrets[1]}."}},
        "models": {
            "judge": {
                "model_name": "j",
                "endpoint_api_key": secrets[0],
                "endpoint_base_url": f"https://me:{secrets[2]}@host/v1",
                "mcp_urls_dict": {"s": f"https://me:{secrets[4]}@host/mcp"},
                "extra_kwargs": {"headers": {"X-Auth-Token": secrets[3]}},
            }
        },
    }
    loaded = load_config(preset=Layer("p", table))
    shown = json.dumps([setting.value for setting in in_force(loaded)])
    assert not [secret for secret in secrets if secret in shown]
    assert by_path(loaded)["models.judge.endpoint_api_key"].value == "[redacted]"


def test_lists_and_settings_of_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_config(
        sets=['plugins.acp.command="agent"'],
        preset=Layer("p", {"disable": ["gemini"], "plugins": {"acp": {"command": "other"}}}),
    )
    assert origins(loaded) == {"disable": "p", "plugins.acp.command": "--set"}
    monkeypatch.setenv("KARENINA_DISABLE", "acp")
    found = by_path(load_config(preset=Layer("p", {"disable": ["gemini"]})))
    assert found["disable"] == InForce(("disable",), ["acp", "gemini"], "the environment (KARENINA_DISABLE), p")
