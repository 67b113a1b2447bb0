"""The sources of a configuration, each as a layer of tables: a TOML file, the environment, `--set`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.config import facts
from karenina_core.values.sections import toml_or_text

TABLES = ("run", "models", "plugins")
LISTS = ("disable", "only")


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


def environment_names() -> dict[str, str]:
    """Environment variables and the fields of `[run]` that they set. What may run code is not among them."""
    known = facts()
    return {about.variable: name for name, about in known.items() if about.variable} | {
        f"KARENINA_{name.upper()}": name for name, about in known.items() if about.environment
    }


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """The layer of the environment: the variables of `environment_names`. Empty ones count as not set.

    Raises ConfigError where a value cannot be read.
    """
    run: dict[str, Any] = {}
    problems: list[Problem] = []
    for variable, name in environment_names().items():
        if text := environment.get(variable, "").strip():
            try:
                run[name] = facts()[name].read(text)
            except ValueError as error:
                problems.append(Problem(variable, str(error)))
    if problems:
        raise ConfigError(problems)
    return Layer("the environment", {"run": run} if run else {})


def settings_layer(sets: Iterable[str]) -> Layer:
    """The layer of `--set` options, later ones win. Raises ConfigError."""
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
    if len(keys) < 2 or keys[0] not in TABLES:
        what = f"a path begins with run., models.NAME. or plugins.NAME.{did_you_mean(keys[0], TABLES)}"
        raise ConfigError([Problem(f"--set {path}", what)])
    return tuple(keys), toml_or_text(value)


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
                problems += [
                    Problem(f"{name}.{key}", f"expected a table [{name}.{key}], got {entry!r} (from {layer.label})")
                    for key, entry in (value.items() if name in ("models", "plugins") else ())
                    if not isinstance(entry, Mapping)
                ]
                continue
            problems.append(Problem(name, f"{what} (from {layer.label})"))
    return problems


def is_texts(value: Any) -> bool:
    """Whether the value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def merged(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All of them in one, later ones win: tables are merged key by key, everything else is replaced."""
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
