"""The settings of deep judgment and of the embedding check: views of features, the environment, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.values.convert import structure, unstructure

MODES = ("disabled", "reasoning_only", "full")


def test_deep_judgment_alone_means_the_full_mode() -> None:
    assert VerificationConfig().deep_judgment_mode == "disabled"
    assert VerificationConfig(deep_judgment_enabled=True).deep_judgment_mode == "full"
    assert VerificationConfig(features=["deep_judgment"]).deep_judgment_mode == "full"


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_switches_the_feature(mode: Any) -> None:
    config = VerificationConfig(deep_judgment_mode=mode)
    assert config.deep_judgment_mode == mode
    assert config.deep_judgment_enabled is (mode != "disabled")
    assert structure(unstructure(config), VerificationConfig) == config
    assert structure({"deep_judgment_mode": mode}, VerificationConfig) == config


@given(st.lists(st.sampled_from(MODES), min_size=1, max_size=4))
def test_the_last_mode_given_to_a_copy_counts(modes: list[Any]) -> None:
    config = VerificationConfig()
    for mode in modes:
        config = evolve(config, deep_judgment_mode=mode)
    assert config.deep_judgment_mode == modes[-1]
    assert evolve(config, concurrency=3).deep_judgment_mode == modes[-1]
    assert evolve(config, features=()).deep_judgment_mode == "disabled"


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="'full' contradicts deep_judgment_enabled=False"):
        VerificationConfig(deep_judgment_mode="full", deep_judgment_enabled=False)
    with pytest.raises(ConfigError, match="must be one of disabled, reasoning_only, full, not 'half'"):
        VerificationConfig(deep_judgment_mode="half")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ConfigError, match="reasoning_only finds no excerpts to search for"):
        VerificationConfig(deep_judgment_mode="reasoning_only", deep_judgment_search_enabled=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deep_judgment_fuzzy_match_threshold", 1.1),
        ("deep_judgment_max_excerpts_per_attribute", 0),
        ("deep_judgment_excerpt_retry_attempts", -1),
        ("embedding_check_threshold", -0.1),
        ("embedding_check_threshold", "0.9"),
        ("deep_judgment_max_excerpts_per_attribute", 1.5),
        ("deep_judgment_excerpt_retry_attempts", True),
        ("deep_judgment_search_tool", 7),
        ("deep_judgment_search_tool", " "),
    ],
)
def test_values_outside_of_their_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        VerificationConfig(**{name: value})


def search(query: str) -> list[str]:
    return [query]


def test_a_function_as_search_tool_is_written_as_where_it_comes_from() -> None:
    config = VerificationConfig(deep_judgment_search_tool=search)
    assert config.deep_judgment_search_tool is search
    assert unstructure(config)["deep_judgment_search_tool"] == f"{__name__}.search"


@pytest.mark.parametrize(("text", "on"), [("1", True), ("yes", True), ("TRUE", True), ("off", False), ("", False)])
def test_the_environment_switches_the_embedding_check_where_the_field_is_not_given(
    text: str, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_CHECK", text)
    assert VerificationConfig().embedding_check_enabled is on
    assert not VerificationConfig(features=["abstention"]).embedding_check_enabled, "features are given"
    assert VerificationConfig(features=["embedding_check"]).embedding_check_enabled
    assert VerificationConfig(embedding_check_enabled=not on).embedding_check_enabled is not on
    assert not evolve(VerificationConfig(), features=()).embedding_check_enabled, "a copy does not ask again"
    assert not structure({"features": []}, VerificationConfig).embedding_check_enabled, "nor does what was written down"


def test_model_and_threshold_of_the_embedding_check_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EMBEDDING_CHECK_MODEL", "other")
    monkeypatch.setenv("EMBEDDING_CHECK_THRESHOLD", "0.5")
    config = VerificationConfig()
    assert (config.embedding_check_model, config.embedding_check_threshold) == ("other", 0.5)
    given = VerificationConfig(embedding_check_model="mine", embedding_check_threshold=0.9)
    assert (given.embedding_check_model, given.embedding_check_threshold) == ("mine", 0.9)


@pytest.mark.parametrize(
    ("variable", "text"),
    [("EMBEDDING_CHECK", "maybe"), ("EMBEDDING_CHECK_THRESHOLD", "high"), ("EMBEDDING_CHECK_THRESHOLD", "1.5")],
)
def test_what_the_environment_says_must_be_readable(variable: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigError, match=f"{variable}: the environment variable must be .*{text!r}"):
        VerificationConfig()


def test_a_model_keeps_its_home() -> None:
    from karenina_core.values.config import ModelConfig as reexported

    assert reexported is ModelConfig


def test_what_is_private_is_no_setting() -> None:
    with pytest.raises(ConfigError, match="_embedding_check_enabled: unknown setting"):
        structure({"_embedding_check_enabled": True}, VerificationConfig)
