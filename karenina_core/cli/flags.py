"""From what click parsed to a configuration."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..run.config_file import Flags, RunConfig, load_config
from ..run.config_models import ModelFlags
from ..run.sinks import without_password
from .output import note

__all__ = ["configured", "model_flags", "trust_line"]

RUN_FIELDS = {
    "mode": "evaluation_mode",
    "replicates": "replicate_count",
    "concurrency": "concurrency",
    "budget_usd": "budget_usd",
    "budget_tokens": "budget_tokens",
}


def configured(options: Mapping[str, Any], *, trust_line: str = "", models: bool = True) -> RunConfig:
    """The configuration of a command that has the shared options. Raises ConfigError.

    `trust_line` is what to type to run Python templates in this process.
    """
    flags = Flags(
        run={field: options[name] for name, field in RUN_FIELDS.items() if options.get(name) is not None},
        answering=model_flags("answering", options),
        parsing=model_flags("parsing", options),
        features_on=options["features_on"],
        features_off=options["features_off"],
        manual_traces=options.get("manual_traces"),
        trust=options.get("trust", False),
        **({"trust_line": trust_line} if trust_line else {}),
    )
    loaded = load_config(options["config"], (*options["sets"], *_recording(options)), flags, models=models)
    for warning in loaded.app.warnings:
        note(f"Warning: {warning}")
    return loaded


def trust_line(arguments: Sequence[str]) -> str:
    """What the user typed, with `--trust` added, ready to be pasted into a shell; passwords of sinks are left out."""
    command, *rest = arguments
    return shlex.join(["karenina", command, "--trust", *map(without_password, rest)])


def _recording(options: Mapping[str, Any]) -> list[str]:
    """`--record` and `--replay` are settings of the plugin that does it."""
    files = {name: options.get(name) for name in ("record", "replay")}
    return [f"plugins.replay.{name}={json.dumps(str(file))}" for name, file in files.items() if file is not None]


def model_flags(role: Literal["answering", "parsing"], options: Mapping[str, Any]) -> ModelFlags:
    """What the options of one role say."""
    given = {name: options.get(f"{role}_{name}") for name in ("interface", "provider", "base_url", "api_key_env")}
    return ModelFlags(role=role, models=options.get(f"{role}_models", ()), **given)
