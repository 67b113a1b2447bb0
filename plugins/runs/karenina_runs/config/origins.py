"""The settings of a run that are in force, each with where it is from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, fields, frozen
from karenina_calls.secrets.known_secrets import secrets_among, secrets_of
from karenina_calls.secrets.redaction import Secrets

from karenina_core.errors import plural
from karenina_core.secrets import MASK
from karenina_core.values.config import ModelConfig, switches
from karenina_core.values.convert import unstructure

from ..results.sinks import without_password
from .config_file import ENVIRONMENT, LISTS, Flags, Layer, RunConfig, environment_names, without_views
from .config_models import COMMAND_LINE, ModelFlags
from .saved_config import model_tables

DEFAULT_INTERFACE = fields(ModelConfig).interface.default
PLUGIN = "a plugin, by the name of the model"
OF_PLUGINS = {"disable": "KARENINA_DISABLE", "only": "KARENINA_PLUGINS"}
"""Variables that name plugins, beside the lists of a configuration."""


@frozen
class InForce:
    """One setting."""

    keys: tuple[str, ...]
    """The path of it, as `--set` has it."""
    value: Any
    """Plain data, without secrets."""
    origin: str
    """Where it is from; nothing for a default."""


def in_force(loaded: RunConfig) -> Iterator[InForce]:
    """Every setting of `[run]`, every field of the models in use, and what is said of plugins."""
    models = (*loaded.config.answering_models, *loaded.config.parsing_models)
    named = {value: name for name, table in _tables(loaded.document, "plugins") for value in secrets_among(table, name)}
    redact = Secrets({**secrets_of(loaded.app, models), **named}).text
    layers = [without_views(layer, []) for layer in loaded.layers]
    for found in (*_lists(loaded), *_of_run(loaded, layers), *_of_models(loaded, layers), *_of_plugins(loaded)):
        yield evolve(found, value=_without_secrets(found.value, lambda text: without_password(redact(text))))


def _lists(loaded: RunConfig) -> Iterator[InForce]:
    for name in LISTS:
        named, listed = os.environ.get(OF_PLUGINS[name], "").strip(), loaded.document.get(name)
        labels = [layer.label for layer in loaded.layers if name in layer.table][-1:] if listed else []
        if named and name == "only":  # it takes the place of the list; blocked plugins add up
            listed, labels = None, []
        if named:
            labels = [f"{ENVIRONMENT} ({OF_PLUGINS[name]})", *labels]
        if labels:
            yield InForce((name,), [*(named.split(",") if named else []), *(listed or [])], ", ".join(labels))


def _of_run(loaded: RunConfig, layers: Sequence[Layer]) -> Iterator[InForce]:
    plain, flags = unstructure(loaded.config), loaded.flags
    plain |= {f"{role}_models": names for role, names in model_tables(loaded.config).items()}
    typed = {*flags.run, *(["features"] if flags.features_on or flags.features_off else [])}
    typed |= {f"{role.role}_models" for role in (flags.answering, flags.parsing) if role.models}
    typed |= {"code_policy"} if flags.trust else set()
    for name, value in plain.items():
        names = {name, *switches()} if name == "features" else {name}
        labels = [_label(layer, names) for layer in layers if names & layer.run().keys()]
        labels += [COMMAND_LINE] if name in typed else []
        # Features add up, and tables are merged; of everything else, the last one counts.
        joined = ", ".join(dict.fromkeys(labels)) if name == "features" or isinstance(value, Mapping) else _last(labels)
        yield InForce(("run", name), value, joined)


def _label(layer: Layer, names: set[str]) -> str:
    """Of a layer that says something of these fields. Of the environment, with the variables that do."""
    if layer.label != ENVIRONMENT:
        return layer.label
    known = environment_names().items()
    variables = [variable for variable, name in known if name in names and os.environ.get(variable, "").strip()]
    return f"{ENVIRONMENT} ({', '.join(variables)})" if variables else ENVIRONMENT


def _of_models(loaded: RunConfig, layers: Sequence[Layer]) -> Iterator[InForce]:
    names = model_tables(loaded.config)
    seen = set()
    for flags, models in (
        (loaded.flags.answering, loaded.config.answering_models),
        (loaded.flags.parsing, loaded.config.parsing_models),
    ):
        for name, model in zip(names[flags.role], models, strict=True):
            if name not in seen:
                seen.add(name)
                origins = _origins(model, layers, flags, loaded.flags)
                for field, value in _fields(model).items():
                    by_name = PLUGIN if field == "interface" and value != DEFAULT_INTERFACE else ""
                    yield InForce(("models", name, field), value, origins.get(field, by_name))


def _origins(model: ModelConfig, layers: Sequence[Layer], role: ModelFlags, flags: Flags) -> dict[str, str]:
    """Where the fields of a model are from, as far as something says them."""
    found = {"model_name": COMMAND_LINE} if model.name in role.models else {}
    for layer in layers:
        for name, table in _tables(layer.table, "models"):
            if table.get("id", name) == model.id:
                found |= dict.fromkeys(table, layer.label)
    found |= dict.fromkeys(role.fields(), COMMAND_LINE)
    return found | {flag.name: flag.option for flag in flags.supplied if flag.interface == model.interface}


def _fields(model: ModelConfig) -> dict[str, Any]:
    """With a mask in the place of a key, and the number of recorded answers."""
    key = {"endpoint_api_key": MASK} if model.endpoint_api_key is not None else {}
    traces = (
        {} if model.manual_traces is None else {"manual_traces": plural(len(model.manual_traces), "recorded answer")}
    )
    return {**unstructure(model), **key, **traces}


def _of_plugins(loaded: RunConfig) -> Iterator[InForce]:
    for name, table in _tables(loaded.document, "plugins"):
        for key, value in table.items():
            given = (
                layer.label for layer in loaded.layers if key in dict(_tables(layer.table, "plugins")).get(name, {})
            )
            yield InForce(("plugins", name, key), value, _last(given))


def _tables(document: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    return list(document.get(name, {}).items())


def _last(labels: Any) -> str:
    return next(reversed(list(labels)), "")


def _without_secrets(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_secrets(item, clean) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(item, clean) for item in value]
    return clean(value) if isinstance(value, str) else value
