"""What `karenina preset` does and prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import asdict
from karenina_runs.config.config_file import Layer, is_texts
from karenina_runs.config.presets import Preset, PresetFolder, preset_config

from karenina_core.errors import ConfigError

from ..options.flags import configured
from ..output import Part, Table, inline, note, own_stdout, print_found, print_parts

PLAIN = re.compile(r"[\w-]+")
"""A name that a path of `--set` need not quote."""


def listed(*, as_json: bool) -> None:
    """Raises ConfigError where there is no place for presets."""
    with own_stdout() as out:
        folder = PresetFolder.of_user()
        document, rows = [], []
        for path in folder.files():
            try:
                preset = Preset.read(path)
            except ConfigError as error:
                note(f"Warning: {error}")
                continue
            run = preset.config.get("run", {})
            models = (run.get(f"{role}_models", []) for role in ("answering", "parsing"))
            named = (", ".join(names) if is_texts(names) else "?" for names in models)
            rows.append((preset.name, *map(inline, named), inline(preset.description or "")))
            document.append({**asdict(preset, recurse=False), "file": str(path)})
        parts: list[Part] = [Table(("name", "answering models", "judges", "what it is for"), rows)]
        parts.append(f"{'They are' if rows else 'There are none'} in {folder.path}")
        print_found({"folder": str(folder.path), "presets": document}, parts, out, as_json=as_json)


def shown(reference: str, *, as_json: bool) -> None:
    """Raises ConfigError where it is not there or cannot be used."""
    with own_stdout() as out:
        path = PresetFolder.of_user().find(reference)
        preset = Preset.read(path)
        models = preset.config.get("models", {}).values()
        keys = key_variables(str(model["api_key_env"]) for model in models if model.get("api_key_env"))
        parts: list[Part] = [
            f"{preset.name}{': ' if preset.description else ''}{preset.description or ''}",
            f"in {path}, of {preset.updated_at}",
            "",
            Table(("setting", "value"), list(_settings(preset.config))),
            Table(("variable of a key", "now"), list(keys.items())),
        ]
        document = {**asdict(preset, recurse=False), "file": str(path), "key_variables": keys}
        print_found(document, parts, out, as_json=as_json)


def saved(name: str, description: str | None, options: Mapping[str, Any], *, replace: bool) -> None:
    """Raises ConfigError where the configuration cannot be used or saved."""
    with own_stdout() as out:
        config = preset_config(configured(options, base=Layer("the defaults", {})))
        if not config:
            raise ConfigError("these options do not differ from the defaults; add some, such as --config FILE")
        preset = Preset(name=name, description=description, config=config)
        path = PresetFolder.of_user().save(preset, replace=replace)
        line = shlex.join(["karenina", "verify", "BENCHMARK", "--preset", name])
        print_parts([f"saved: {path}", f"To use it: {line}"], out)


def deleted(name: str, *, yes: bool) -> None:
    """Raises ConfigError where there is none, and where nobody can be asked."""
    with own_stdout() as out:
        path = PresetFolder.of_user().find(name, paths=False)
        if not yes and not sys.stdin.isatty():
            raise ConfigError(f"{path} is not deleted without confirmation; add --yes")
        if yes or click.confirm(f"Delete {path}?", err=True):
            _remove(path)
            print_parts([f"deleted: {path}"], out)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise ConfigError(f"{path} cannot be deleted: {error.strerror}") from error


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and value of every setting."""
    for table, found in config.items():
        for name, value in found.items() if isinstance(found, Mapping) else (("", found),):
            inner = value.items() if table != "run" and isinstance(value, Mapping) else (("", value),)
            yield from ((as_path(filter(None, (table, name, key))), as_value(item)) for key, item in inner)


def as_path(keys: Iterable[str]) -> str:
    """The path of a setting, as `--set` has it."""
    return ".".join(key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in keys)


def as_value(value: Any) -> str:
    """A value in one line."""
    return inline(json.dumps(value, ensure_ascii=False, default=str))


def key_variables(names: Iterable[str]) -> dict[str, str]:
    """Whether these variables of the environment are set."""
    return {name: "set" if os.environ.get(name) else "not set" for name in sorted(set(names))}
