"""The models of a run, from the tables of the configuration file and the flags of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from attrs import field, frozen
from karenina_calls.records.manual import MANUAL

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.convert import structure
from karenina_core.values.fields import texts
from karenina_core.values.model_config import ModelConfig

T = TypeVar("T")
COMMAND_LINE = "the command line"
FIELDS = {
    "interface": "interface",
    "provider": "model_provider",
    "base_url": "endpoint_base_url",
    "api_key_env": "api_key_env",
}
"""Flags of a role and the fields of ModelConfig that they set."""


@frozen(kw_only=True)
class ModelFlags:
    """Options of the command line for the models of one role; empty or None: not given."""

    role: Literal["answering", "parsing"]
    models: tuple[str, ...] = field(default=(), converter=texts)
    """Names of `[models.NAME]` tables or of models; they replace the list of the configuration file."""
    interface: str | None = None
    provider: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    both: frozenset[str] = frozenset()
    """Those of the options above that were given for both roles at once: `--model` in place of `--answering-model`."""

    def option(self, name: str) -> str:
        """What was typed to give `models`, `interface` and so on."""
        flag = name.removesuffix("s").replace("_", "-")
        return f"--{flag}" if name in self.both else f"--{self.role}-{flag}"

    def fields(self) -> dict[str, Any]:
        """The given flags as fields of ModelConfig."""
        return {name: value for flag, name in FIELDS.items() if (value := getattr(self, flag)) is not None}


@frozen
class Supplied:
    """An option that gives a field to every model behind an interface."""

    option: str
    interface: str
    name: str
    """The field of ModelConfig."""
    read: Callable[[], Any] = field(eq=False)


@frozen
class Tables:
    """The `[models.NAME]` tables, and the names that `[run]` lists by role."""

    models: Mapping[str, Any]
    listed: Mapping[str, Any]
    origins: Mapping[str, Mapping[str, str]] = field(factory=dict)
    """Where the fields of each table are from, by table and field."""


@frozen
class _Entry:
    """The data of one model before it is checked, and where its problems are reported."""

    path: str
    table: dict[str, Any]
    origins: Mapping[str, str] = field(factory=dict)
    """Where its fields are from, as far as it is known."""

    def with_origin(self, problem: Problem) -> Problem:
        """The problem with where its field is from."""
        name = re.split(r"[.\[]", problem.path.removeprefix(f"{self.path}."), maxsplit=1)[0]
        every = set(self.origins.values())
        label = self.origins.get(name) or (every.pop() if len(every) == 1 else None)
        return Problem(problem.path, f"{problem.message} (from {label})") if label else problem

    @property
    def is_manual(self) -> bool:
        return self.table.get("interface") == MANUAL


def configured_models(
    tables: Tables,
    roles: Sequence[ModelFlags],
    resolve_model: Callable[[str], str | None],
    supplied: Mapping[Supplied, Any],
) -> tuple[dict[str, tuple[ModelConfig, ...]], list[Problem]]:
    """The models by field of VerificationConfig, and everything that is wrong with them."""
    problems: list[Problem] = []
    entries = {flags.role: _entries(flags, tables, problems) for flags in roles}
    if not entries["parsing"] and len(entries["answering"]) == 1 and entries["answering"][0].is_manual:
        recorded = entries["answering"][0]  # recorded answers may have the judge's fields, so that no judge is called
        entries["parsing"] = [_Entry(f"{recorded.path} (as judge)", dict(recorded.table), recorded.origins)]
    every = [entry for role in entries.values() for entry in role]
    for flag in supplied:
        if not any(entry.table.get("interface") == flag.interface for entry in every):
            what = f"no model uses them; add --answering-interface {flag.interface}"
            problems.append(Problem(flag.option, what))
    made: dict[str, tuple[ModelConfig, ...]] = {}
    for role, listed in entries.items():
        for entry in listed:
            table, name = entry.table, entry.table.get("model_name")
            if "interface" not in table and isinstance(name, str) and (found := resolve_model(name)):
                table["interface"] = found
            for flag, value in supplied.items():
                if table.get("interface") == flag.interface:
                    table[flag.name] = {} if value is None else value  # what cannot be read is one problem, not two
        models = [_made(entry, problems) for entry in listed]
        made[f"{role}_models"] = tuple(model for model in models if model is not None)
    unused: list[Problem] = []
    for name, table in tables.models.items():
        if isinstance(table, Mapping) and not any(entry.path == f"models.{name}" for entry in every):
            _made(_Entry(f"models.{name}", {"id": name, **table}, tables.origins.get(name, {})), unused)
    # Recorded answers are only missed where they are used.
    return made, problems + [problem for problem in unused if not problem.path.endswith(".manual_traces")]


def structure_fields(table: Mapping[str, Any], cls: type[T], path: str, together: Sequence[str] = ()) -> T:
    """Like `structure`, with the mistakes of every field: a constructor stops at the first value that it refuses.

    `together` are fields that make sense only with each other. Raises ConfigError.
    """
    try:
        return structure(table, cls, path)
    except ConfigError as error:
        problems = list(error.problems)
    base = {name: table[name] for name in together if name in table}
    single = [] if together and _mistakes(base, cls, path) else [name for name in table if name not in base]
    found = [
        Problem(f"{path}.{name}", problem.message) if problem.path == path else problem
        for name in single
        for problem in _mistakes({**base, name: table[name]}, cls, path)
    ]
    known = {problem.message for problem in found}
    found += [problem for problem in problems if problem.path != path or problem.message not in known]
    raise ConfigError(dict.fromkeys(found))


def _mistakes(table: Mapping[str, Any], cls: type, path: str) -> Sequence[Problem]:
    try:
        structure(table, cls, path)
    except ConfigError as error:
        return error.problems
    return ()


def _entries(flags: ModelFlags, tables: Tables, problems: list[Problem]) -> list[_Entry]:
    """The models of one role: those named by flags, else those that the file lists, with the role's flags applied."""
    before = len(problems)
    names, path = tables.listed.get(flags.role, ()), f"run.{flags.role}_models"
    entries: list[_Entry] = []
    if flags.models:
        entries = [_named(name, tables, f"{flags.option('models')} {name}") for name in flags.models]
    elif flags.interface == MANUAL:
        entries = [_Entry(f"{flags.option('interface')} manual", {})]
    elif not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        problems.append(Problem(path, f"expected a list of names of [models.NAME] tables, got {names!r}"))
    else:
        for position, name in enumerate(names):
            if name in tables.models:
                entries.append(_named(name, tables, ""))
            else:
                hint = did_you_mean(name, tables.models)
                problems.append(Problem(f"{path}[{position}]", f"there is no table [models.{name}]{hint}"))
    given: dict[str, Any] = flags.fields()
    if given and not entries and len(problems) == before:
        first = next(flag for flag, name in FIELDS.items() if name in given)
        model = "--model" if first in flags.both else f"--{flags.role}-model"
        problems.append(Problem(flags.option(first), f"there is no model to apply it to; name one with {model}"))
    if "api_key_env" in given:  # the flag wins over a key that the file holds
        given["endpoint_api_key"] = None
    origin = dict.fromkeys(given, COMMAND_LINE)
    return [_Entry(entry.path, {**entry.table, **given}, {**entry.origins, **origin}) for entry in entries]


def _named(name: str, tables: Tables, path: str) -> _Entry:
    """`path`: the flag that names the model; then that is its name, if its table has none."""
    table = tables.models.get(name)
    if isinstance(table, Mapping):
        called = {"model_name": name} if path and table.get("interface") != MANUAL else {}
        return _Entry(f"models.{name}", {"id": name, **called, **table}, tables.origins.get(name, {}))
    return _Entry(path or f"models.{name}", {"model_name": name})


def _made(entry: _Entry, problems: list[Problem]) -> ModelConfig | None:
    table = {"model_name": MANUAL, **entry.table} if entry.is_manual else entry.table
    if entry.is_manual and table.get("manual_traces") is None:
        missing = "the manual interface needs recorded answers (--manual-traces FILE)"
        problems.append(entry.with_origin(Problem(f"{entry.path}.manual_traces", missing)))
    try:
        return structure_fields(table, ModelConfig, entry.path, together=("interface", "model_name", "manual_traces"))
    except ConfigError as error:
        problems += map(entry.with_origin, error.problems)
        return None
