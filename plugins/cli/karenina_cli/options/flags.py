"""From what click parsed to a configuration, the chosen questions, and the answers that a run is given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from attrs import evolve
from karenina_calls.secrets.known_secrets import OF_HEADERS, secrets_among, secrets_in_endpoint
from karenina_calls.tools.tool_servers import secrets_in_address
from karenina_runs.answers.answers import MissPolicy, ReplayStore, as_store
from karenina_runs.config.config_file import Flags, Layer, RunConfig, load_config, parse_setting
from karenina_runs.config.config_models import ModelFlags
from karenina_runs.config.presets import preset_layer
from karenina_runs.config.saved_config import rebuilt
from karenina_runs.results.sinks import without_password

from karenina_core.errors import BenchmarkError, ConfigError, Problem, TemplateRefused, did_you_mean
from karenina_core.plugin.application import Karenina
from karenina_core.secrets import MASK, is_secret_name

from ..output import note
from ..plugin_options import check_given, model_fields, plugin_settings

NAMED = re.compile(r"([\w.-]+)[\"']?\s*[=:]")
"""A name in a table of TOML or JSON."""
NAME = re.compile(r"[\w.-]+")
RUN_FIELDS = {
    "mode": "evaluation_mode",
    "replicates": "replicate_count",
    "concurrency": "concurrency",
    "budget_usd": "budget_usd",
    "budget_tokens": "budget_tokens",
    "canaries": "canaries",
    "judge_with": "judge_with",
    "fail_fast": "fail_fast",
}


def configured(
    options: Mapping[str, Any], *, trust_line: str = "", models: bool = True, base: Layer | None = None
) -> RunConfig:
    """The configuration of a command that has the shared options. Raises ConfigError.

    `trust_line` is what to type to run Python templates in this process. `base` takes the place of the environment.
    """
    flags = Flags(
        run={field: options[name] for name, field in RUN_FIELDS.items() if options.get(name) is not None},
        answering=model_flags("answering", options),
        parsing=model_flags("parsing", options),
        features_on=options["features_on"],
        features_off=options["features_off"],
        supplied=model_fields(options),
        trust=options.get("trust", False),
        **({"trust_line": trust_line} if trust_line else {}),
    )
    preset = preset_layer(options["preset"]) if options["preset"] is not None else None
    sets = (*options["sets"], *plugin_settings(options))
    loaded = load_config(options["config"], sets, flags, models=models, base=base, preset=preset)
    return checked_plugins(loaded, options)


def later_config(
    manifest: Mapping[str, Any], options: Mapping[str, Any], flags: Flags, rebuild: Any = rebuilt
) -> RunConfig:
    """The configuration of a run that is there, with what the options and the flags say instead. Raises ConfigError."""
    sets = (*options["sets"], *plugin_settings(options))
    return checked_plugins(
        rebuild(manifest, options["config"], sets, evolve(flags, supplied=model_fields(options))), options
    )


def checked_plugins(loaded: RunConfig, options: Mapping[str, Any]) -> RunConfig:
    """The same, after warnings. Raises ConfigError where an option's plugin does not run, and with --strict-plugins
    where any has failed."""
    failed = [plugin for plugin in loaded.app.plugins if plugin.state == "failed"]
    if failed and options.get("strict_plugins"):
        raise ConfigError([Problem(f"plugin {plugin.name}", plugin.reason) for plugin in failed])
    for warning in loaded.app.warnings:
        note(f"Warning: {warning}")
    check_given(options, loaded.app)
    for plugin in failed:
        note(f"Warning: the plugin {plugin.name} failed and is left out: {plugin.reason}")
    return loaded


@contextmanager
def trusted_with(line: str, author: str = "the author of the benchmark", file: Path | None = None) -> Iterator[None]:
    """Where templates are refused, the error says what to type for those who trust their author."""
    try:
        yield
    except TemplateRefused as error:
        always = f" (or, for all runs of this very code: karenina trust add {shlex.quote(str(file))})" if file else ""
        raise TemplateRefused(f"{error}\nIf you trust {author}, type{always}:\n{line}") from error


def trust_line(arguments: Sequence[str]) -> str:
    """What the user typed, with `--trust` added, ready to be pasted into a shell; what is secret is left out."""
    command, *rest = arguments
    shown = [_shown(word, before) for before, word in pairwise(["", *rest])]
    line = shlex.join(["karenina", command, "--trust", *shown])
    return line if shown == rest else f"{line}  # type again what is {MASK} here"


def _shown(word: str, option: str) -> str:
    """An argument after another one, as it may be shown."""
    if word.startswith("--"):
        option, mark, value = word.partition("=")
        return f"{option}={_shown(value, option)}" if mark else word
    if option == "--set":
        path, mark, value = word.partition("=")
        return f"{path}={MASK}" if mark and _is_secret(word) else word
    name, mark, address = word.partition("=")  # of a tool server, or of a model
    if option != "--sink" and any(_has_secret(text) for text in (word, address)):
        return f"{name}={MASK}" if mark and NAME.fullmatch(name) else MASK
    return without_password(word)


def _is_secret(setting: str) -> bool:
    """Whether the value of a setting is secret, or has a part that is."""
    path, _, value = setting.partition("=")
    names = [path, *(found[1] for found in NAMED.finditer(value))]
    headers = "header" in setting.lower()
    if any(is_secret_name(name) or (headers and OF_HEADERS.search(name)) for name in names):
        return True
    try:
        keys, found = parse_setting(setting)
    except ConfigError:  # a mistake in it, which whoever reads the settings complains about
        return True
    if any(_has_secret(text) or without_password(text) != text for text in _texts(found)):
        return True
    return any(secrets_among(found, keys[-1], header=headers))


def _has_secret(address: str) -> bool:
    return any(secrets_in_address(address)) or any(secrets_in_endpoint(address))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def model_flags(role: Literal["answering", "parsing"], options: Mapping[str, Any]) -> ModelFlags:
    """What the options of one role say, and those of both roles where its own say nothing."""
    names = ("models", "interface", "provider", "base_url", "api_key_env")
    own = {name: options.get(f"{role}_{name}") or None for name in names}
    shared = {name: value for name in names if own[name] is None and (value := options.get(f"both_{name}"))}
    given = {name: value for name, value in {**own, **shared}.items() if value is not None}
    return ModelFlags(role=role, both=frozenset(shared), **given)


POSITIONS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def select_questions(text: str, ids: Sequence[str]) -> list[str]:
    """The chosen ids, each once, in the order of `ids`.

    An entry is an id, a position counted from 0, or a range of positions with both ends. What is an id is never read
    as a position. Raises ConfigError with every entry that names nothing.
    """
    if text in ids:  # an id may hold a comma
        return [text]
    chosen: set[str] = set()
    problems: list[Problem] = []
    for entry in (part.strip() for part in text.split(",")):
        match, problem = POSITIONS.fullmatch(entry), ""
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if entry in ids:
            chosen.add(entry)
        elif not entry:
            problem = "there is an empty entry; write 0-5,7 or ids, separated by commas"
        elif match is None:
            problem = f"there is no question {entry!r}{did_you_mean(entry, ids)}"
        elif first > last:
            problem = f"the range {entry} ends before it begins; write {last}-{first}"
        elif last >= len(ids):
            there = f"positions go from 0 to {len(ids) - 1}" if ids else "the benchmark has no questions"
            problem = f"there is no position {last} (in {entry!r}); {there}"
        else:
            chosen.update(ids[first : last + 1])
        problems += [Problem("--questions", problem)] if problem else []
    if problems:
        raise ConfigError(problems)
    return [question for question in ids if question in chosen]


def given_answers(options: Mapping[str, Any], app: Karenina) -> ReplayStore | None:
    """What `--answers` names. Raises ConfigError."""
    path = options["answers"]
    if path is None:
        if idle := [name for name in ("ask_missing", "only_answered", "parsed") if options[name]]:
            option = f"--{idle[0].replace('_', '-')}"
            raise ConfigError([Problem(option, "needs answers to use; add --answers DIR")])
        return None
    if options["ask_missing"] and options["only_answered"]:
        raise ConfigError([Problem("--only-answered", "contradicts --ask-missing; give one of them")])
    policies: dict[str, MissPolicy] = {"ask_missing": "fall_through", "only_answered": "leave_out"}
    policy = next((policy for name, policy in policies.items() if options[name]), None)
    try:
        found = as_store(path, app=app, miss_policy=policy, parsed=options["parsed"])
    except BenchmarkError as error:
        other = "to give answers that come from no run, use --manual-traces"
        raise ConfigError([Problem("--answers", f"{error}; {other}")]) from None
    if found is not None and options["parsed"] and not any(entry.fields for _, entry in found):
        what = f"{path} has no fields that judges have extracted; leave it out to call the judge"
        raise ConfigError([Problem("--parsed", what)])
    return found
