"""Models that are added to those of a run: by the names and the flags of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from attrs import evolve
from karenina_calls.records.manual import MANUAL

from karenina_core.errors import ConfigError, Problem

from ..config.config_file import Flags, RunConfig, merged, read_layer, settings_layer
from ..config.config_models import ModelFlags
from ..config.saved_config import rebuilt


def rebuilt_with(manifest: Mapping[str, Any], path: Path | None, sets: Iterable[str], flags: Flags) -> RunConfig:
    """The configuration of a run with more models: those that `flags` name, in the way they say.

    A file or `--set` that lists models describes all of them, and those of the flags follow. Raises ConfigError like
    `rebuilt`, and where a model is there already.
    """
    sets = tuple(sets)
    given = merged(layer.table for layer in (*([read_layer(path)] if path else []), settings_layer(sets)))
    problems: list[Problem] = []
    config, tables = dict(manifest["config"]), dict(manifest["tables"])
    described = {name: table for name, table in given.get("models", {}).items() if isinstance(table, Mapping)}
    found: dict[str, Any] = {}
    for added in (flags.answering, flags.parsing):
        role = f"{added.role}_models"
        listed = given.get("run", {}).get(role, tables[added.role])
        there = dict(pair for name in tables for pair in zip(tables[name], config[f"{name}_models"], strict=True))
        more = _more(added, there, described, listed, problems)
        new = {name: table for name, table in more if table is not None}
        config[role] = [*config[role], *new.values()]
        tables[added.role] = [*tables[added.role], *new]
        found[added.role] = ModelFlags(role=added.role, models=(*listed, *(name for name, _ in more)) if more else ())
    if problems:
        raise ConfigError(problems)
    return rebuilt({**manifest, "config": config, "tables": tables}, path, sets, evolve(flags, **found))


def _more(
    added: ModelFlags,
    there: Mapping[str, Any],
    described: Mapping[str, Any],
    listed: Sequence[str],
    problems: list[Problem],
) -> list[tuple[str, dict[str, Any] | None]]:
    """The names of the models' tables, and those tables that there are not yet.

    `there` are the tables of the run, `described` those of a file and `--set`. A flag wins over these: where both have
    the same field of a model, it gets a table of another name.
    """
    fields, option = added.fields(), f"--{added.role}"
    if fields and not added.models:
        problems.append(Problem(f"{option}-*", f"there is no model to apply it to; name one with {option}-model"))
    if "api_key_env" in fields:  # the flag wins over a key that is there
        fields["endpoint_api_key"] = None
    taken = {*there, *(name for name, table in described.items() if fields.keys() & table.keys())}
    more: list[tuple[str, dict[str, Any] | None]] = []
    for name in added.models:
        if name in listed:
            problems.append(Problem(f"{option}-model", f"{name} is there already"))
        elif not fields and (name in there or name in described):
            more.append((name, None))
        else:
            table = {**there.get(name, {}), **described.get(name, {})}
            model_name = {} if table.get("interface") == MANUAL else {"model_name": name}
            names = (name if number == 1 else f"{name} ({number})" for number in count(1))
            free = next(other for other in names if other not in taken and other not in dict(more))
            more.append((free, {"id": name, **model_name, **table, **fields}))
    return more
