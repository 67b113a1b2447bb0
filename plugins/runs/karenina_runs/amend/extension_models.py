"""Models that are added to those of a run: by the names and the flags of the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from attrs import evolve

from karenina_core.errors import ConfigError, Problem

from ..answers.manual import MANUAL
from ..config.config_file import Flags, RunConfig
from ..config.config_layers import merged, read_layer, settings_layer
from ..config.config_models import ModelFlags
from ..config.saved_config import rebuilt

__all__ = ["rebuilt_with"]


def rebuilt_with(manifest: Mapping[str, Any], path: Path | None, sets: Iterable[str], flags: Flags) -> RunConfig:
    """The configuration of a run with more models: those that `flags` name, in the way they say.

    A file or `--set` that lists models describes all of them, and those of the flags follow. Raises ConfigError like
    `rebuilt`, and where a model is there already.
    """
    sets = tuple(sets)
    given = merged(layer.table for layer in (*([read_layer(path)] if path else []), settings_layer(sets)))
    problems: list[Problem] = []
    config, tables = dict(manifest["config"]), dict(manifest["tables"])
    found: dict[str, Any] = {}
    for added in (flags.answering, flags.parsing):
        listed = given.get("run", {}).get(f"{added.role}_models", tables[added.role])
        more = _more(added, _tables(config, tables), _told(given), listed, problems)
        new = {name: table for name, table in more if table is not None}
        config[f"{added.role}_models"] = [*config[f"{added.role}_models"], *new.values()]
        tables[added.role] = [*tables[added.role], *new]
        names = (*listed, *(name for name, _ in more)) if more else ()
        found[added.role] = ModelFlags(role=added.role, models=names)
    if problems:
        raise ConfigError(problems)
    return rebuilt({**manifest, "config": config, "tables": tables}, path, sets, evolve(flags, **found))


def _tables(config: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of the run's models, by name."""
    return dict(pair for role in tables for pair in zip(tables[role], config[f"{role}_models"], strict=True))


def _told(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a file and `--set` say of models, by the names of their tables."""
    return {name: table for name, table in given.get("models", {}).items() if isinstance(table, Mapping)}


def _more(
    added: ModelFlags,
    there: Mapping[str, Any],
    told: Mapping[str, Any],
    listed: Sequence[str],
    problems: list[Problem],
) -> list[tuple[str, dict[str, Any] | None]]:
    """The names of the models' tables, and those tables that there are not yet.

    `there` are the tables that there are. A flag wins over what is `told`: where both say the same of a model, it gets
    a table of another name.
    """
    fields, option = added.fields(), f"--{added.role}"
    if fields and not added.models:
        problems.append(Problem(f"{option}-*", f"there is no model to apply it to; name one with {option}-model"))
    if "api_key_env" in fields:  # the flag wins over a key that is there
        fields["endpoint_api_key"] = None
    taken = {*there, *(name for name, table in told.items() if fields.keys() & table.keys())}
    more: list[tuple[str, dict[str, Any] | None]] = []
    for name in added.models:
        if name in listed:
            problems.append(Problem(f"{option}-model", f"{name} is there already"))
        elif not fields and (name in there or name in told):
            more.append((name, None))
        else:
            table = {**there.get(name, {}), **told.get(name, {})}
            called = {} if table.get("interface") == MANUAL else {"model_name": name}
            more.append((_free(name, {*taken, *dict(more)}), {"id": name, **called, **table, **fields}))
    return more


def _free(name: str, taken: Collection[str]) -> str:
    names = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(name for name in names if name not in taken)
