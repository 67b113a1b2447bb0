"""The configuration of a run as its manifest has it, written and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_calls.models.untrusted_models import replaced_models
from karenina_calls.tools.tool_servers import shown_address

from karenina_core import Karenina
from karenina_core.errors import ConfigError, Problem
from karenina_core.values.config import ModelConfig, VerificationConfig, facts
from karenina_core.values.convert import unstructure

from ..plan.items import Prepared
from ..results.sinks import without_password
from .config_file import Flags, Layer, RunConfig, has_path, load_config, merged, read_layer, settings_layer

ROLES = ("answering", "parsing")
HINTS = {
    "endpoint_api_key": "keys are not written; name the variable that holds it: --set {owner}.api_key_env=VARIABLE",
    "manual_traces": "recorded answers are not written; give them again: --manual-traces FILE",
    "sinks": "passwords are not written; give every sink of the run again: --sink NAME:TARGET",
}
FROM_PYTHON = "a function or an object cannot be written; resume from Python: karenina_core.resume_run(DIR, config=...)"
MASKED = "it holds something secret and was not written; give it again: --set {path}=VALUE"
OWN_FILES = {"replay": ("record",)}
"""Settings of plugins that name a new file for each run. What the first process recorded is in the journal too."""


def recorded(prepared: Prepared, sinks: Sequence[str], redact: Callable[[str], str]) -> dict[str, Any]:
    """What a manifest says about configuration, plugins and sinks, secrets aside.

    `tables` has the names under which models can be changed with `--set models.NAME.FIELD`. `not_written` lists what is
    missing: `[{"path", "hint"}]`, paths as in a configuration file.
    """
    config, app = prepared.config, prepared.app
    tables = model_tables(config)
    plugin_settings = json.loads(json.dumps({name: dict(table) for name, table in app.tables.items()}, default=str))
    data = dict(unstructure(config))
    for role in ROLES:  # addresses of tool servers may hold something secret
        data[f"{role}_models"] = [
            {**model, "mcp_urls_dict": {name: shown_address(at) for name, at in model["mcp_urls_dict"].items()}}
            for model in data[f"{role}_models"]
        ]
    missing = [
        *_missing_of_models(config, tables, redact),
        *(
            f"run.{name}"
            for name, about in facts().items()
            if about.write and not isinstance(getattr(config, name), str)
        ),
        *masked_paths(plugin_settings, redact, "plugins"),
        *(["sinks"] if any(redact(without_password(uri)) != uri for uri in sinks) else []),
    ]
    hints = {}
    for path in missing:
        owner, _, name = path.rpartition(".")
        hint = FROM_PYTHON if path.startswith("run.") else HINTS.get(name, MASKED)
        hints[path] = hint.format(owner=owner, path=path)
    return {
        "config": data,
        "tables": tables,
        "plugin_settings": plugin_settings,
        "blocked_plugins": [info.name for info in app.plugins if info.state == "blocked"],
        "sinks": [without_password(uri) for uri in sinks],
        "not_written": [{"path": path, "hint": hint} for path, hint in hints.items()],
    }


def rubric_definition(prepared: Prepared) -> dict[str, Any] | None:
    """The traits that all questions of a run share, as data; None where there are none. Functions are left out, and of
    the model that a trait names everything but which one it is.
    """
    rubric, names = prepared.benchmark.rubric, prepared.config.rubric_trait_names
    if rubric is None or prepared.mode == "template_only":
        return None
    named = replaced_models(
        rubric if names is None else rubric.only(names),
        lambda model: ModelConfig(
            interface=model.interface, model_provider=model.model_provider, model_name=model.model_name
        ),
    )
    data: dict[str, Any] = unstructure(named)
    del data["provenance"]  # of what is evaluated for one question
    for trait in data["callable_traits"]:
        del trait["callable_code"]
    return data if any(data.values()) else None


def rebuilt(
    manifest: Mapping[str, Any], path: Path | None, sets: Iterable[str], flags: Flags, app: Karenina | None = None
) -> RunConfig:
    """The application, where it is not there, and the configuration of a run, with what a file, `--set` and flags say
    instead.

    The environment's settings are those with which the run began. Raises ConfigError with everything that was not
    written and is not given now, and with every other problem.
    """
    sets = tuple(sets)
    base = _layer(manifest, trusted=flags.trust)
    given = merged(layer.table for layer in (*([read_layer(path)] if path else []), settings_layer(sets)))
    problems = []
    for row in manifest.get("not_written", ()):
        owner, _, name = row["path"].rpartition(".")
        is_given = (
            row["path"] == "sinks"  # no part of the configuration
            or any(name == supplied.name for supplied in flags.supplied)
            or has_path(given, row["path"])
            or (name == "endpoint_api_key" and has_path(given, f"{owner}.api_key_env"))
        )
        if not is_given:
            problems.append(Problem(row["path"], row["hint"]))
    if problems:
        raise ConfigError(problems)
    return load_config(path, sets, flags, base=base, app=app)


def model_tables(config: VerificationConfig) -> dict[str, list[str]]:
    """The name of a table for every model, by role: its id. Models that differ have different names."""
    known: dict[str, ModelConfig] = {}
    found: dict[str, list[str]] = {role: [] for role in ROLES}
    for role, models in zip(ROLES, (config.answering_models, config.parsing_models), strict=True):
        for model in models:
            names = [str(model.id), *(f"{model.id} ({number})" for number in range(2, len(known) + 3))]
            found[role].append(next(name for name in names if known.setdefault(name, model) == model))
    return found


def _missing_of_models(
    config: VerificationConfig, tables: Mapping[str, list[str]], redact: Callable[[str], str]
) -> Iterator[str]:
    for role, models in zip(ROLES, (config.answering_models, config.parsing_models), strict=True):
        for name, model in zip(tables[role], models, strict=True):
            owner = f"models.{name}"
            if model.endpoint_api_key is not None:
                yield f"{owner}.endpoint_api_key"
            if model.manual_traces is not None:
                yield f"{owner}.manual_traces"
            for server, at in model.mcp_urls_dict.items():
                if redact(shown_address(at)) != at:
                    yield f"{owner}.mcp_urls_dict.{server}"
            plain = {name: value for name, value in unstructure(model).items() if name != "mcp_urls_dict"}
            yield from masked_paths(json.loads(json.dumps(plain, default=str)), redact, owner)


def masked_paths(value: Any, redact: Callable[[str], str], path: str) -> Iterator[str]:
    """Paths of texts that a redacted file does not have."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from masked_paths(item, redact, f"{path}.{name}")
    elif isinstance(value, list):
        if any(True for item in value for _ in masked_paths(item, redact, path)):
            yield path
    elif isinstance(value, str) and redact(value) != value:
        yield path


def _layer(manifest: Mapping[str, Any], *, trusted: bool) -> Layer:
    """The configuration with which the run began, as a configuration file would have it. Raises ConfigError."""
    try:
        run = dict(manifest["config"])
        listed = {role: list(run.pop(f"{role}_models")) for role in ROLES}
        tables = manifest["tables"]
        models = {name: model for role in ROLES for name, model in zip(tables[role], listed[role], strict=True)}
        plugins = {
            name: {key: value for key, value in table.items() if key not in OWN_FILES.get(name, ())}
            for name, table in manifest["plugin_settings"].items()
        }
        blocked = list(manifest["blocked_plugins"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the manifest does not say how the run was configured ({error!r})") from error
    if run.get("code_policy") == "trusted":
        if not trusted and manifest.get("trusted_code") is None:  # else the store is asked again
            what = "the run was started with --trust; add that again (--trust)"
            raise ConfigError([Problem("run.code_policy", what)])
        del run["code_policy"]
    run |= {f"{role}_models": tables[role] for role in ROLES}
    return Layer("the run's manifest", {"run": run, "models": models, "plugins": plugins, "disable": blocked})
