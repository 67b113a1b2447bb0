"""The sources of a configuration, each as a layer of tables: a TOML file, the environment, `--set`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import fields_dict, frozen

from ..errors import ConfigError, Problem, did_you_mean
from ..model.config import FEATURE_FIELDS, VerificationConfig
from ..model.environment import read_switch

__all__ = [
    "ENVIRONMENT",
    "LISTS",
    "SWITCHES",
    "Layer",
    "environment_layer",
    "is_texts",
    "merged",
    "misshapen",
    "parse_setting",
    "read_layer",
    "settings_layer",
]

TABLES = ("run", "models", "plugins")
LISTS = ("disable", "only")
SWITCHES = tuple(FEATURE_FIELDS)
NUMBERS = (
    *("retry_max_elapsed_seconds", "max_concurrent_requests", "answerer_concurrency_limits"),
    *("budget_usd", "budget_tokens"),
)
"""Fields whose default says nothing about how their values are written."""
ENVIRONMENT = {
    "EMBEDDING_CHECK": "embedding_check_enabled",
    "EMBEDDING_CHECK_MODEL": "embedding_check_model",
    "EMBEDDING_CHECK_THRESHOLD": "embedding_check_threshold",
} | {
    f"KARENINA_{name.upper()}": name
    for name in (
        "replicate_count",
        "evaluation_mode",
        "use_full_trace_for_template",
        "use_full_trace_for_rubric",
        "rubric_evaluation_strategy",
        "rubric_concurrency",
        "agentic_rubric_strategy",
        "agentic_rubric_parallel",
        "agentic_rubric_by_context",
        "agentic_judge_context",
        "agentic_parsing_trigger",
        "agentic_parsing_max_turns",
        "agentic_parsing_timeout",
        "agentic_parsing_materialize_trace",
        "agentic_parsing_persist_trace",
        "deep_judgment_rubric_mode",
        "deep_judgment_rubric_global_excerpts",
        "deep_judgment_rubric_max_excerpts_default",
        "deep_judgment_rubric_fuzzy_match_threshold_default",
        "deep_judgment_rubric_excerpt_retry_attempts_default",
        "deep_judgment_rubric_search_tool",
        "include_extraction_hints",
        "deep_judgment_mode",
        "deep_judgment_max_excerpts_per_attribute",
        "deep_judgment_fuzzy_match_threshold",
        "deep_judgment_excerpt_retry_attempts",
        "deep_judgment_search_enabled",
        "deep_judgment_search_tool",
        "embedding_check_embedder",
        "embedding_check_model",
        "embedding_check_threshold",
        "request_timeout",
        "stage_idle_timeout",
        "concurrency",
        *NUMBERS,
        "task_ordering",
        "executor",
        "workspace_copy",
        "workspace_cleanup",
        "workspace_output_mode",
        "workspace_max_bytes",
        "workspace_max_files",
        *SWITCHES,
    )
}
"""Environment variables and the fields of `[run]` that they set. What may run code is not among them."""


@frozen
class Layer:
    """One source of settings: the tables of a `karenina.toml`, or a part of them."""

    label: str
    table: Mapping[str, Any]

    def run(self) -> Mapping[str, Any]:
        """Its `[run]` table."""
        found = self.table.get("run", {})
        return found if isinstance(found, Mapping) else {}


def read_layer(path: Path) -> Layer:
    """The layer of a configuration file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return Layer(str(path), tomllib.load(file))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}; check the path (--config FILE)") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise ConfigError(f"{path} is not a TOML file: {error}") from error


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """The layer of the environment: the variables in `ENVIRONMENT`. Empty ones count as not set.

    Raises ConfigError where a value cannot be read.
    """
    run: dict[str, Any] = {}
    problems: list[Problem] = []
    for variable, name in ENVIRONMENT.items():
        if text := environment.get(variable, "").strip():
            try:
                run[name] = _environment_value(name, text)
            except ValueError as error:
                problems.append(Problem(variable, str(error)))
    if problems:
        raise ConfigError(problems)
    return Layer("the environment", {"run": run} if run else {})


def settings_layer(sets: Iterable[str]) -> Layer:
    """The layer of `--set` options, the later ones winning. Raises ConfigError."""
    table: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in sets:
        try:
            keys, value = parse_setting(text)
        except ConfigError as error:
            problems += error.problems
            continue
        for key in reversed(keys):
            value = {key: value}
        table = _merge(table, value)
    if problems:
        raise ConfigError(problems)
    return Layer("--set", table)


def parse_setting(text: str) -> tuple[tuple[str, ...], Any]:
    """`key.path=value` as keys and value. The value is read as TOML, and as a text where it is not TOML.

    A key with other characters than letters, digits, `_` and `-` is quoted: `models."gpt-4.1".temperature=0`. Raises
    ConfigError.
    """
    path, separator, value = text.partition("=")
    if not separator:
        raise ConfigError([Problem(f"--set {text}", "write --set key.path=value")])
    keys = _keys(path)
    if len(keys) < 2 or keys[0] not in TABLES:
        hint = did_you_mean(keys[0], TABLES) if keys else ""
        what = f"a path begins with run., models.NAME. or plugins.NAME.{hint}"
        raise ConfigError([Problem(f"--set {path}", what)])
    return keys, _toml_or_text(value)


def _keys(path: str) -> tuple[str, ...]:
    try:
        node: Any = tomllib.loads(f"{path} = 0")
    except ValueError:
        node = None
    keys: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        key, node = next(iter(node.items()))
        keys.append(key)
    if node != 0 or "\n" in path:
        raise ConfigError([Problem(f"--set {path}", 'is no path; quote unusual names: models."gpt-4.1".temperature')])
    return tuple(keys)


def _toml_or_text(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    return found["value"] if set(found) == {"value"} else text


def _environment_value(name: str, text: str) -> Any:
    if name == "deep_judgment_mode":
        return text
    default = False if name in SWITCHES else fields_dict(VerificationConfig)[name].default
    if isinstance(default, bool):
        return read_switch(text)
    if isinstance(default, int | float) or name in (*NUMBERS, "embedding_check_threshold"):
        return _toml_or_text(text)
    return text


def misshapen(layers: Sequence[Layer]) -> list[Problem]:
    """What is no table, no list or not known at the top of a layer."""
    problems = []
    for layer in layers:
        for name, value in layer.table.items():
            if name == "plugins" and not isinstance(value, Mapping):
                what = "expected tables [plugins.NAME]; the list of plugins to load is called only"
            elif name in TABLES and not isinstance(value, Mapping):
                what = f"expected a table [{name}], got {value!r}"
            elif name in LISTS and not is_texts(value):
                what = f"expected a list of plugin names, got {value!r}"
            elif name not in (*TABLES, *LISTS):
                what = f"unknown setting{did_you_mean(name, (*TABLES, *LISTS))}"
            else:
                problems += _no_tables(name, value, layer.label) if name in ("models", "plugins") else []
                continue
            problems.append(Problem(name, f"{what} (from {layer.label})"))
    return problems


def _no_tables(name: str, value: Mapping[str, Any], label: str) -> list[Problem]:
    return [
        Problem(f"{name}.{key}", f"expected a table [{name}.{key}], got {entry!r} (from {label})")
        for key, entry in value.items()
        if not isinstance(entry, Mapping)
    ]


def is_texts(value: Any) -> bool:
    """Whether the value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def merged(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All of them in one, the later ones winning: tables key by key, everything else as a whole."""
    whole: dict[str, Any] = {}
    for table in tables:
        whole = _merge(whole, table)
    return whole


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    whole = dict(below)
    for key, value in above.items():
        old = whole.get(key)
        whole[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return whole
