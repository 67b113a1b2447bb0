"""Values that a setting cannot have are refused where they are given, by the name of the setting."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from attrs import fields

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.errors import ConfigError

NAN, INF = float("nan"), float("inf")
NO_COUNT = (None, 0, -1, True, 1.5, "5", NAN, INF)
NO_SECONDS = (None, 0, -1, True, "5", NAN, INF)
NO_SWITCH = (None, "false", "no", 0, 1)
NO_TABLE = (None, "a = b", ["a"], {1: "x"}, {"a": 5})
NO_TEXTS = ("a", 5, ["a", 5], {"a": "b"})


def without(values: tuple[Any, ...], *allowed: Any) -> tuple[Any, ...]:
    return tuple(value for value in values if not any(value is one for one in allowed))


OF_A_MODEL: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("id", "model_name", "model_provider", "system_prompt", "endpoint_base_url", "api_key_env"), (5, ["a"], True)
    ),
    "interface": (None, 5, ["litellm"]),
    "temperature": (-1, True, "0", NAN, INF),
    "max_tokens": without(NO_COUNT, None),
    "max_retries": without(NO_COUNT, 0),
    "endpoint_api_key": (5, ["k"]),
    "request_timeout": without(NO_SECONDS, None),
    "retry_policy": ({}, 3, "never"),
    "requests_per_minute": without(NO_SECONDS, None),
    "tokens_per_minute": without(NO_SECONDS, None),
    "batch": NO_SWITCH,
    "batch_max_calls": NO_COUNT,
    "batch_wait_seconds": NO_SECONDS,
    "input_cost_per_token": (-0.1, True, "0", NAN, INF),
    "output_cost_per_token": (-0.1, True, "0", NAN, INF),
    "extra_kwargs": (None, ["a"], "a"),
    "mcp_urls_dict": NO_TABLE,
    "mcp_tool_filter": NO_TEXTS,
    "mcp_tool_description_overrides": NO_TABLE,
    "agent_max_turns": NO_COUNT,
    "agent_timeout": without(NO_SECONDS, None),
    "agent_max_tool_calls": without(NO_COUNT, None),
    "agent_max_total_tokens": without(NO_COUNT, None),
    "agent_max_cost_usd": without(NO_SECONDS, None),
    "agent_max_repeated_calls": without(NO_COUNT, None),
    "manual_traces": (5, "a", {"q": 5}),
}
A_FRACTION = (None, -0.1, 1.1, True, "0.5", NAN)
A_TOOL = (None, "", " ", 5)
OF_A_RUN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("answering_models", "parsing_models"), (None, "m", ["m"], ModelConfig(model_name="m"))),
    "replicate_count": NO_COUNT,
    "evaluation_mode": ("rubric", 5, ["rubric_only"]),
    "features": ("abstention", 5, ["a", 5]),
    "deep_judgment_max_excerpts_per_attribute": NO_COUNT,
    "deep_judgment_fuzzy_match_threshold": A_FRACTION,
    "deep_judgment_excerpt_retry_attempts": without(NO_COUNT, 0),
    "deep_judgment_search_tool": A_TOOL,
    "rubric_trait_names": NO_TEXTS,
    "judge_with": (5, True, ["reference"]),
    "rubric_concurrency": NO_COUNT,
    "agentic_parsing_max_turns": NO_COUNT,
    "agentic_parsing_timeout": NO_SECONDS,
    "deep_judgment_rubric_config": (5, "a", {"globally": {}}),
    "deep_judgment_rubric_max_excerpts_default": NO_COUNT,
    "deep_judgment_rubric_fuzzy_match_threshold_default": A_FRACTION,
    "deep_judgment_rubric_excerpt_retry_attempts_default": without(NO_COUNT, 0),
    "deep_judgment_rubric_search_tool": A_TOOL,
    "embedding_check_embedder": (None, 5),
    "embedding_check_model": (None, 5),
    "embedding_check_threshold": A_FRACTION,
    "canary_threshold": A_FRACTION,
    "request_timeout": NO_SECONDS,
    "retry_policy": (None, {}, 3),
    "retry_max_elapsed_seconds": without(NO_SECONDS, None),
    "stage_idle_timeout": without(NO_SECONDS, None, 0, 0.0),
    "concurrency": NO_COUNT,
    "max_concurrent_requests": without(NO_COUNT, None),
    "answerer_concurrency_limits": (*without(NO_COUNT, None), {"m": 0}, {"m": None}, {"m": True}, {5: 1}, ["m"]),
    "budget_usd": without(NO_SECONDS, None),
    "budget_tokens": without(NO_COUNT, None),
    "executor": (None, 5),
    "workspace_output_exclude_patterns": (None, *NO_TEXTS),
    "workspace_max_bytes": NO_COUNT,
    "workspace_max_files": NO_COUNT,
    "few_shot_config": ({}, 5),
    "prompt_config": (None, {}, 5),
    **dict.fromkeys(
        (
            *("use_full_trace_for_template", "include_extraction_hints", "deep_judgment_reasoning_only"),
            *("deep_judgment_search_enabled", "use_full_trace_for_rubric", "agentic_rubric_parallel"),
            *("agentic_rubric_by_context", "agentic_parsing_materialize_trace", "agentic_parsing_persist_trace"),
            *("deep_judgment_rubric_global_excerpts", "deep_judgment_rubric_standard_scores"),
            *("workspace_copy", "workspace_cleanup", "canaries", "deep_judgment_bind_values"),
            "fail_fast",
        ),
        NO_SWITCH,
    ),
    **dict.fromkeys(
        (
            *("rubric_evaluation_strategy", "agentic_rubric_strategy", "agentic_parsing_trigger"),
            *("agentic_judge_context", "deep_judgment_rubric_mode", "code_policy", "workspace_output_mode"),
            *("task_ordering", "deep_judgment_on_invented"),
        ),
        (None, "Shared", "", 5, ["none"]),
    ),
    **dict.fromkeys(
        (
            *("abstention_enabled", "sufficiency_enabled", "deep_judgment_enabled", "embedding_check_enabled"),
            *("agentic_parsing",),
        ),
        without(NO_SWITCH, None),
    ),
    "deep_judgment_mode": ("half", 5, True),
}
WRONG = [
    (cls, name, values)
    for cls, refused in ((ModelConfig, OF_A_MODEL), (VerificationConfig, OF_A_RUN))
    for name, values in refused.items()
]


@pytest.mark.parametrize(("cls", "name", "values"), WRONG, ids=[f"{c.__name__}-{name}" for c, name, _ in WRONG])
def test_a_value_that_a_setting_cannot_have_is_refused_by_its_name(
    cls: Any, name: str, values: tuple[Any, ...]
) -> None:
    usual = {"model_name": "m"} if cls is ModelConfig else {}
    for value in values:
        try:
            cls(**{**usual, name: value})
        except ConfigError as error:
            (problem,) = error.problems
        else:
            pytest.fail(f"{value!r} is taken")
        assert problem.path == name, value
        assert problem.message, value
        assert not problem.message.startswith((name, f"'{name}")), value


def test_every_setting_has_values_that_are_refused() -> None:
    for cls, refused in ((ModelConfig, OF_A_MODEL), (VerificationConfig, OF_A_RUN)):
        assert {str(a.alias) for a in fields(cls)} == refused.keys()


def test_a_secret_that_was_put_in_the_wrong_place_is_not_shown() -> None:
    misplaced: dict[str, Any] = {
        "endpoint_api_key": ["sesame"],
        "mcp_urls_dict": "run --token sesame",
        "extra_kwargs": "sesame",
    }
    for name, value in misplaced.items():
        with pytest.raises(ConfigError) as caught:
            ModelConfig(model_name="m", **{name: value})
        assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("path", [Path("rivers") / "2024", PurePosixPath("rivers/2024"), "rivers/2024"])
def test_a_path_object_may_name_the_folder_of_a_question(path: Any, tmp_path: Path) -> None:
    question = Question(id="q", question="?", workspace_path=path)
    assert question.workspace_path == "rivers/2024"
    saved = Benchmark(name="b", questions=[question]).save(tmp_path / "b.jsonld")
    assert Benchmark.load(saved).questions[0].workspace_path == "rivers/2024"


@pytest.mark.parametrize("path", [5, ["rivers"], b"rivers"])
def test_what_is_no_path_is_refused_as_the_folder_of_a_question(path: Any) -> None:
    with pytest.raises(ConfigError, match=r"workspace_path: must be a path"):
        Question(id="q", question="?", workspace_path=path)
