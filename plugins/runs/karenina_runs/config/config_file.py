"""Where a run's configuration comes from: a preset, `karenina.toml`, the environment, `--set` and the command line's
flags.

The file is read where the user names it and nowhere else. A `karenina.toml` that lies in the working directory is
ignored, because a folder that came with a shared benchmark could otherwise send keys to an address of its own.

    disable = ["entry-point"]        # plugins that are not loaded
    only = ["entry-point"]           # if given, no other plugins are loaded

    [run]                            # fields of VerificationConfig; models by their names below
    answering_models = ["small"]
    parsing_models = ["judge"]

    [models.judge]                   # fields of ModelConfig; `id` is the name by default
    model_name = "..."

    [plugins.NAME]                   # settings of a plugin

Later layers win: preset, file, environment, `--set`, flags. Tables are merged key by key, everything else is replaced;
switches of features are applied one after the other.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from attrs import evolve, field, frozen

from karenina_core.errors import ConfigError, PluginError, Problem, did_you_mean
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig, facts, switches
from karenina_core.values.fields import texts
from karenina_core.values.sections import toml_or_text

from .config_models import COMMAND_LINE, ModelFlags, Supplied, Tables, configured_models, structure_fields

T = TypeVar("T")
TABLES = ("run", "models", "plugins")
LISTS = ("disable", "only")
ENVIRONMENT = "the environment"


@frozen(kw_only=True)
class Flags:
    """Options of the command line; what is empty or None was not given and overrides nothing."""

    run: Mapping[str, Any] = field(factory=dict)
    """Fields of VerificationConfig without models and features."""
    answering: ModelFlags = ModelFlags(role="answering")
    parsing: ModelFlags = ModelFlags(role="parsing")
    features_on: tuple[str, ...] = field(default=(), converter=texts)
    features_off: tuple[str, ...] = field(default=(), converter=texts)
    supplied: tuple[Supplied, ...] = ()
    """Fields of every model behind an interface."""
    trust: bool = False
    """Run Python templates in this process. Only the command line and the Python API can set it."""
    trust_line: str = "karenina verify BENCHMARK --trust"
    """What to type for `trust`, shown to those who tried another way."""


@frozen(kw_only=True)
class RunConfig:
    """A configuration and the application with the plugins that it asks for."""

    app: Karenina
    config: VerificationConfig
    layers: tuple[Layer, ...] = field(default=(), repr=False)
    """What it was made of, the lowest first, and then of the flags."""
    flags: Flags = field(factory=Flags, repr=False)

    @property
    def document(self) -> dict[str, Any]:
        """The tables of all layers in one, without what flags say."""
        return merged(layer.table for layer in self.layers)

    @property
    def interfaces(self) -> dict[str, str]:
        """The interfaces that tables of models name which are in `run`, by the place of the setting."""
        run, tables = _table(self.document.get("run")), _table(self.document.get("models"))
        listed: list[Any] = [run.get(f"{role}_models") for role in ("answering", "parsing")]
        names = dict.fromkeys(name for texts in listed if is_texts(texts) for name in texts)
        found = {name: _table(tables.get(name)).get("interface") for name in names}
        return {f"models.{name}.interface": text for name, text in found.items() if isinstance(text, str)}


def load_config(
    path: Path | None = None,
    sets: Iterable[str] = (),
    flags: Flags | None = None,
    *,
    models: bool = True,
    base: Layer | None = None,
    preset: Layer | None = None,
    app: Karenina | None = None,
) -> RunConfig:
    """Read all layers and make the configuration, and the application where `app` is None.

    `sets` are texts `key.path=value`. `models=False` leaves the models out, for what calls none. `base` is the
    lowest layer in place of the environment: the configuration of a run that is resumed. `preset` is the layer below
    the file. Raises ConfigError with every problem of every layer.
    """
    flags = flags or Flags()
    problems: list[Problem] = []
    layers = (
        base or Layer("", {}),
        preset or Layer("", {}),
        _attempt(problems, lambda: read_layer(path) if path else None) or Layer("", {}),
        (_attempt(problems, lambda: environment_layer(os.environ)) if base is None else None) or Layer("", {}),
        _attempt(problems, lambda: settings_layer(sets)) or Layer("", {}),
    )
    supplied = {flag: _attempt(problems, flag.read) for flag in flags.supplied} if models else {}
    app = app or _attempt(problems, lambda: _application(layers), layers)

    def resolve(model: str) -> str | None:
        try:
            return cast("str | None", app.first("karenina_resolve_model", model=model)) if app else None
        except PluginError as error:
            raise PluginError(f"a plugin failed to resolve the model {model!r}: {error}") from error

    config = _attempt(problems, lambda: configure(layers, flags, resolve, supplied=supplied, models=models))
    if problems or app is None or config is None:
        raise ConfigError(dict.fromkeys(problems))
    return RunConfig(app=app, config=config, layers=layers, flags=flags)


def configure(
    layers: Sequence[Layer],
    flags: Flags,
    resolve_model: Callable[[str], str | None] = lambda model: None,
    *,
    supplied: Mapping[Supplied, Any] | None = None,
    models: bool = True,
) -> VerificationConfig:
    """Fold the layers and the flags into one configuration. Reads nothing but its arguments.

    `resolve_model` gives the interface of a model `provider/name`, `supplied` the values of `flags.supplied`, None
    where one cannot be read. Raises ConfigError with every problem.
    """
    problems = misshapen(layers)
    trusting = [layer for layer in layers if "code_policy" in layer.run()]
    if not flags.trust and trusting and trusting[-1].run()["code_policy"] == "trusted":
        # Only the command line may allow this: files are shared, and environments inherited.
        message = f"{trusting[-1].label} may not say 'trusted'; remove that and type: {flags.trust_line}"
        problems.append(Problem("run.code_policy", message))
    layers = [without_views(layer, problems) for layer in layers]
    features = _features(layers, flags, problems)
    options = Layer(COMMAND_LINE, {"run": {**flags.run, **({"code_policy": "trusted"} if flags.trust else {})}})
    every = [*layers, options]
    document = merged(layer.table for layer in every)
    run = dict(_table(document.get("run")))
    named = {role: run.pop(f"{role}_models", ()) for role in ("answering", "parsing")}
    run = {name: value for name, value in run.items() if name not in switches()} | {"features": sorted(features)}
    config = _attempt(problems, lambda: structure_fields(run, VerificationConfig, "run"), every)
    made: Mapping[str, Any] = {}
    if models:
        origins: dict[str, dict[str, str]] = {}
        for layer in layers:
            for name, table in _table(layer.table.get("models")).items():
                origins.setdefault(name, {}).update(dict.fromkeys(_table(table), layer.label))
        tables = Tables(_table(document.get("models")), named, origins)
        made, found = configured_models(tables, (flags.answering, flags.parsing), resolve_model, supplied or {})
        problems += [_with_origin(problem, layers) for problem in found]
    if problems or config is None:
        raise ConfigError(dict.fromkeys(problems))
    try:
        return evolve(config, **made)
    except ConfigError as error:  # two models that look the same
        found = [Problem(f"run.{problem.path}", problem.message) for problem in error.problems]
        raise ConfigError(_with_origin(problem, layers) for problem in found) from None


def _application(layers: Sequence[Layer]) -> Karenina:
    """The application; a list of plugins in the environment replaces the file's, blocked plugins add up."""
    document = merged(layer.table for layer in layers)
    lists = {name: found for name in LISTS if is_texts(found := document.get(name, []))}
    if os.environ.get("KARENINA_PLUGINS"):
        lists["only"] = []
    settings = {name: table for name, table in _table(document.get("plugins")).items() if isinstance(table, Mapping)}
    return Karenina.installed(settings=settings, **lists)


def _features(layers: Sequence[Layer], flags: Flags, problems: list[Problem]) -> set[str]:
    """`features` replaces, a switch adds or removes one, layer by layer; flags come last."""
    features: set[str] = set()
    for layer in layers:
        listed = layer.run().get("features")
        if listed is not None and not is_texts(listed):
            problems.append(Problem("run.features", f"expected a list of names, got {listed!r} (from {layer.label})"))
        elif listed is not None:
            features = set(listed)
        for name, feature in switches().items():
            value = layer.run().get(name)
            if value is not None and not isinstance(value, bool):
                problems.append(Problem(f"run.{name}", f"expected true or false, got {value!r} (from {layer.label})"))
            elif value is not None:
                (features.add if value else features.discard)(feature)
    both = sorted(set(flags.features_on) & set(flags.features_off))
    problems += [Problem("", f"--with {name} and --without {name} contradict each other") for name in both]
    return (features | set(flags.features_on)) - set(flags.features_off)


def without_views(layer: Layer, problems: list[Problem]) -> Layer:
    """The layer with its views replaced by the settings that they mean. Its own switches win over those of a view."""
    run = dict(layer.run())
    for name, about in facts().items():
        if about.stands_for is None or (value := run.pop(name, None)) is None:
            continue
        try:
            meant = about.stands_for(value)
        except ValueError as error:
            problems.append(Problem(f"run.{name}", f"{error} (from {layer.label})"))
            continue
        run |= {setting: value for setting, value in meant.items() if setting not in switches() or setting not in run}
    return evolve(layer, table={**layer.table, "run": run}) if layer.run() else layer


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _attempt(problems: list[Problem], step: Callable[[], T], layers: Sequence[Layer] = ()) -> T | None:
    """What the step returns. The problems of a ConfigError are kept, with the layer that a field is from."""
    try:
        return step()
    except ConfigError as error:
        problems += [_with_origin(problem, layers) for problem in error.problems]
        return None


def _with_origin(problem: Problem, layers: Sequence[Layer]) -> Problem:
    """The problem of a field of `[run]` or `[plugins.NAME]` with the layer that the field is from."""
    table, *names = (step.partition("[")[0] for step in problem.path.split("."))
    depth = {"run": 1, "plugins": 2}.get(table, 0)
    labels = [layer.label for layer in layers if depth and has_path(layer.table, ".".join([table, *names[:depth]]))]
    return Problem(problem.path, f"{problem.message} (from {labels[-1]})") if labels else problem


def has_path(table: Any, path: str) -> bool:
    """Whether a path such as `run.budget_usd` leads to something. Names on the way may hold dots."""
    if not isinstance(table, Mapping):
        return False
    return path in table or any(
        path.startswith(f"{name}.") and has_path(inner, path[len(name) + 1 :]) for name, inner in table.items()
    )


@frozen
class Layer:
    """One source of settings: the tables of a `karenina.toml`, or a part of them."""

    label: str
    table: Mapping[str, Any]

    def run(self) -> Mapping[str, Any]:
        """Its `[run]` table."""
        return _table(self.table.get("run"))


def read_layer(path: Path) -> Layer:
    """The layer of a configuration file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return Layer(str(path), tomllib.load(file))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}; check the path (--config FILE)") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, or not TOML
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
    return Layer(ENVIRONMENT, {"run": run} if run else {})


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
        raise ConfigError(
            [Problem(f"--set {path}", 'is not a path; quote unusual names: models."gpt-4.1".temperature')]
        )
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
