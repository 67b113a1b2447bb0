"""From what click parsed to a configuration."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..run.config_file import Flags, RunConfig, load_config
from ..run.config_models import ModelFlags
from ..run.sinks import without_password
from ..secrets import MASK, is_secret_name
from .output import note

__all__ = ["configured", "model_flags", "trust_line"]

NAMED = re.compile(r"([\w.-]+)[\"']?\s*[=:]")
"""A name in a table of TOML or JSON."""
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
    """What the user typed, with `--trust` added, ready to be pasted into a shell; what is secret is left out."""
    command, *rest = arguments
    settings = {place + 1 for place, word in enumerate(rest) if word == "--set"}
    shown = [
        _setting(word) if place in settings or word.startswith("--set=") else without_password(word)
        for place, word in enumerate(rest)
    ]
    line = shlex.join(["karenina", command, "--trust", *shown])
    return line if shown == rest else f"{line}  # type again what is {MASK} here"


def _setting(word: str) -> str:
    """A setting without its value where that is secret, or has a part that is."""
    path, mark, value = word.removeprefix("--set=").partition("=")
    names = [path, *(found[1] for found in NAMED.finditer(value))]
    if not any(is_secret_name(name) or name.lower() == "authorization" for name in names):
        return without_password(word)
    return f"{word[: len(word) - len(value)]}{MASK}" if mark else word


def _recording(options: Mapping[str, Any]) -> list[str]:
    """`--record` and `--replay` are settings of the plugin that does it."""
    files = {name: options.get(name) for name in ("record", "replay")}
    return [f"plugins.replay.{name}={json.dumps(str(file))}" for name, file in files.items() if file is not None]


def model_flags(role: Literal["answering", "parsing"], options: Mapping[str, Any]) -> ModelFlags:
    """What the options of one role say."""
    given = {name: options.get(f"{role}_{name}") for name in ("interface", "provider", "base_url", "api_key_env")}
    return ModelFlags(role=role, models=options.get(f"{role}_models", ()), **given)
