"""Presets: configurations that are saved under a name, each a file of JSON that holds no key.

    {"id": "...", "name": "...", "description": null, "config": {"run": {...}, "models": {...}, "plugins": {...}},
     "created_at": "...", "updated_at": "..."}

`config` has the tables of a `karenina.toml`, and nothing but these is read. A name is looked for in one folder of the
user's own and never in the working directory, for the reason that `config_file` gives; a file elsewhere is named by its
path.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import asdict, evolve, field, frozen
from karenina_calls.files.bounded import read_json
from karenina_calls.secrets.known_secrets import secret_settings, secrets_among, secrets_of
from karenina_calls.secrets.redaction import Secrets

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.secrets import MASK
from karenina_core.values.config import ModelConfig
from karenina_core.values.convert import structure, unstructure

from ..files.atomic_files import write_json
from ..files.user_folder import user_folder
from .config_file import LISTS, Flags, Layer, RunConfig, configure, misshapen
from .saved_config import masked_paths, model_tables

VARIABLE = "KARENINA_PRESETS_DIR"
SUFFIX = ".json"
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_FILE = 100, 500, 96
"""Characters of a name, a description, and the name of a file without its suffix."""
MOST_BYTES = 4 * 2**20
"""Of a preset. Chosen: one of a hundred models has a hundredth of it."""
TEXTS = ("id", "name", "description", "created_at", "updated_at")
TABLES = ("models", "run", "plugins")
WHERE_KEYS_ARE = ("endpoint_base_url", "mcp_urls_dict", "extra_kwargs")
NO_KEY = "a preset holds no key; leave it out, and name the variable that holds it in {owner}.api_key_env"
NO_SECRETS = "it holds something secret, which no preset does; leave it out, and give it to the run: --set {path}=VALUE"
MASKED = "a mask is not a value; write the value, or leave it out"
MASKS = re.compile(rf"\*{{3,}}|{re.escape(MASK)}")


@frozen(kw_only=True)
class Preset:
    """One saved configuration."""

    id: str = field(factory=lambda: str(uuid4()))
    name: str
    description: str | None = None
    config: Mapping[str, Any] = field(repr=False)
    """The tables of a `karenina.toml`."""
    created_at: str = field(factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """In UTC."""
    updated_at: str = field(factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @classmethod
    def read(cls, path: Path) -> Preset:
        """The preset in a file. Raises ConfigError, also where it holds a key, or a mask in the place of one."""
        try:
            data = read_json(path, MOST_BYTES)
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise ConfigError(
                f"{path} is not a preset: {error}; list the existing ones: karenina preset list"
            ) from None
        config = data.get("config") if isinstance(data, Mapping) else None
        if not isinstance(config, Mapping):
            raise ConfigError(f'{path} is not a preset: write {{"config": {{"run": {{...}}, "models": {{...}}}}}}')
        texts = {name: data[name] for name in TEXTS if isinstance(data.get(name), str)}
        label = f"the preset {path}"
        problems = [Problem(problem.path, f"{problem.message} (from {label})") for problem in found_secrets(config)]
        if problems := [*misshapen([Layer(label, config)]), *problems]:
            raise ConfigError(problems)
        return cls(**{"name": path.stem, **texts}, config=config)


def _names_file(reference: str) -> bool:
    return reference.endswith(SUFFIX) or "/" in reference or os.sep in reference


@frozen
class PresetFolder:
    """The presets that have names."""

    path: Path

    @classmethod
    def of_user(cls) -> PresetFolder:
        """The folder that `KARENINA_PRESETS_DIR` names, else one in the user's data directory. Raises ConfigError."""
        given = os.environ.get(VARIABLE, "").strip()
        folder = Path(given) if given else user_folder("presets")
        if folder is None:
            raise ConfigError(f"there is no home directory to keep presets in; name a folder with {VARIABLE}")
        return cls(folder)

    def files(self) -> list[Path]:
        """Those of all presets, in the order of their names."""
        return sorted(self.path.glob(f"*{SUFFIX}"))

    def find(self, reference: str, *, paths: bool = True) -> Path:
        """The file of a preset: a name of this folder or, with `paths`, also a path, which has a folder in it or ends
        with `.json`.

        Raises ConfigError where it is not there.
        """
        is_path = paths and _names_file(reference)
        path = Path(reference) if is_path else self.file_of(reference)
        if path.is_file():
            return path
        if is_path:
            raise ConfigError(f"there is no preset {path}; check the path")
        hint = did_you_mean(path.stem, [file.stem for file in self.files()])
        raise ConfigError(
            f"there is no preset {reference!r} in {self.path}{hint}; karenina preset list shows the existing ones; "
            f"give a file elsewhere by its path (./{path.name})"
        )

    def file_of(self, name: str) -> Path:
        """Where the preset of a name is or would be: small letters, digits and hyphens."""
        plain = re.sub(r"-+", "-", re.sub(r"[^a-z0-9-]", "", name.lower().replace(" ", "-"))).strip("-")
        return self.path / f"{plain[:LONGEST_FILE].rstrip('-') or 'preset'}{SUFFIX}"

    def save(self, preset: Preset, *, replace: bool = False) -> Path:
        """Write a preset; one that takes the place of another keeps its id, its date of creation and, without a new
        one, its description. Returns the file.

        Raises ConfigError where the name is taken and not to be replaced, where a text is too long, and where the file
        cannot be written.
        """
        problems = [
            Problem(what, f"has {len(text)} characters; {most} are the most")
            for what, text, most in (
                ("name", preset.name, LONGEST_NAME),
                ("description", preset.description or "", LONGEST_DESCRIPTION),
            )
            if len(text) > most
        ]
        if not preset.name.strip():
            problems.append(Problem("name", "a preset needs a name"))
        if _names_file(preset.name):
            problems.append(
                Problem("name", f"{preset.name!r} would be taken for a file name; leave out / and {SUFFIX}")
            )
        if problems := [*problems, *found_secrets(preset.config)]:
            raise ConfigError(problems)
        path = self.file_of(preset.name)
        if path.exists() and not replace:
            raise ConfigError(f"{path} already exists; choose another name, or replace it with --replace")
        if path.exists():
            old = Preset.read(path)
            description = old.description if preset.description is None else preset.description
            preset = evolve(preset, id=old.id, created_at=old.created_at, description=description)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(path, asdict(preset, recurse=False), indent=2)
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be written: {error.strerror}; another folder: {VARIABLE}=FOLDER"
            ) from error
        return path


def preset_layer(reference: str) -> Layer:
    """What a preset says of a run: that of a name, or in a file. Raises ConfigError."""
    path = PresetFolder.of_user().find(reference)
    return Layer(f"the preset {path}", Preset.read(path).config)


def preset_config(loaded: RunConfig) -> dict[str, Any]:
    """The tables that give this configuration again: what differs from the defaults.

    Raises ConfigError where they would hold a secret.
    """
    config, document, names = loaded.config, loaded.document, model_tables(loaded.config)
    defaults, plain = unstructure(configure((), Flags(), models=False)), unstructure(config)
    run = {name: value for name, value in plain.items() if value != defaults[name]}
    models = dict(document.get("models", {}))
    problems = []
    for role, used in (("answering", config.answering_models), ("parsing", config.parsing_models)):
        run |= {f"{role}_models": names[role]} if used else {}
        for name, model in zip(names[role], used, strict=True):
            models[name] = _of_model(model, name)
            if model.endpoint_api_key is not None:
                problems.append(_key(name))
    tables = {**{name: document.get(name) for name in (*LISTS, "plugins")}, "run": run, "models": models}
    written: dict[str, Any] = json.loads(
        json.dumps({name: table for name, table in tables.items() if table}, default=str)
    )
    redact = Secrets(secrets_of(loaded.app, (*config.answering_models, *config.parsing_models))).text
    problems += found_secrets(written)
    known = {problem.path for problem in problems}
    others = (path for path in _changed(written, redact) if not any(f"{path}.".startswith(f"{k}.") for k in known))
    problems += [Problem(path, NO_SECRETS.format(path=path)) for path in others]
    if problems:
        raise ConfigError(dict.fromkeys(problems))
    return written


def _of_model(model: ModelConfig, table: str) -> dict[str, Any]:
    """The fields of its table. Its interface is among them: what a plugin says of a name may change."""
    plain = unstructure(model)
    defaults = {**unstructure(ModelConfig(model_name=model.model_name)), "id": table, "model_name": "", "interface": ""}
    return {name: value for name, value in plain.items() if value != defaults[name]}


def found_secrets(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys, passwords in addresses and masks among the settings of a preset."""
    models, *others = (table if isinstance(table := config.get(name), Mapping) else {} for name in TABLES)
    for name, table in models.items():
        if not isinstance(table, Mapping):
            continue  # an error of its own
        if table.get("endpoint_api_key") is not None:
            yield _key(name)
        places = {setting: table[setting] for setting in WHERE_KEYS_ARE if setting in table}
        with suppress(ConfigError):  # an error of its own too
            model = structure({"model_name": "-", **places}, ModelConfig)
            paths = (f"models.{name}.{path}" for path in secret_settings(model))
            yield from (Problem(path, NO_SECRETS.format(path=path)) for path in paths)
    for table, settings in zip(TABLES[1:], others, strict=True):
        paths = (f"{table}.{name}" for name, value in settings.items() if any(secrets_among(value, name)))
        yield from (Problem(path, NO_SECRETS.format(path=path)) for path in paths)
    for path in _changed(config, lambda text: "" if MASKS.fullmatch(text) else text):
        yield Problem(path, MASKED)


def _changed(config: Mapping[str, Any], change: Callable[[str], str]) -> Iterator[str]:
    """The settings of which a text changes."""
    for table, settings in config.items():
        yield from masked_paths(settings, change, table)


def _key(model: str) -> Problem:
    return Problem(f"models.{model}.endpoint_api_key", NO_KEY.format(owner=f"models.{model}"))
