"""Options that packages bring to the commands that ask models."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from karenina_core.entry_points import owner
from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.command_line import ModelField, PluginOption

from .entries import usable
from .options.sections import write_sections
from .output import note

if TYPE_CHECKING:
    from karenina_runs.config.config_models import Supplied

    from karenina_core.plugin.application import Karenina

GROUP = "karenina.options"
BROUGHT = "brought"
"""The parameter that holds what was typed of these options."""


class Given(NamedTuple):
    """What was typed after an option of a plugin."""

    plugin: str
    option: PluginOption
    value: Any


class VerifyCommand(click.Command):
    """A command with the options of packages too. They are imported when the command is run or shows its help."""

    later = False
    without: Collection[str] = ()
    """Flags of packages that mean nothing to this command."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        if GROUP not in ctx.meta:  # once per call of the command
            ctx.meta[GROUP] = list(
                _brought({flag for parameter in own for flag in parameter.opts}, later=self.later, without=self.without)
            )
        shows_help = self.get_help_option(ctx)
        return sorted([*own, *ctx.meta[GROUP]], key=lambda parameter: parameter is shows_help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_sections(ctx, formatter, self.get_params(ctx))


class LaterCommand(VerifyCommand):
    """A command about a run that is there."""

    later = True


def _brought(taken: set[str], *, later: bool, without: Collection[str]) -> Iterator[click.Option]:
    for point, options in usable(GROUP, "options"):
        for option in options:
            if option.flag in without:
                continue
            text = option.help_later if later else option.help
            if option.flag in taken:
                note(f"Warning: {option.flag} of {owner(point)} already exists; this one has no effect")
            elif text:
                taken.add(option.flag)
                yield _option(point.name, option, text)


def _option(plugin: str, option: PluginOption, text: str) -> click.Option:
    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.params.setdefault(BROUGHT, []).append(Given(plugin, option, value))

    return click.Option(
        [option.flag],
        type=click.Path(path_type=Path) if option.type is Path else option.type,
        is_flag=option.type is bool,
        default=None,
        metavar=option.metavar,
        help=text,
        callback=keep,
        expose_value=False,
    )


def plugin_settings(options: Mapping[str, Any]) -> list[str]:
    """What was typed, as `--set` would have it."""
    return [
        f'plugins."{given.plugin}".{given.option.effect}={json.dumps(given.value, default=str)}'
        for given in _given(options)
        if isinstance(given.option.effect, str)
    ]


def model_fields(options: Mapping[str, Any]) -> tuple[Supplied, ...]:
    """What was typed for the models of an interface."""
    from karenina_runs.config.config_models import Supplied

    return tuple(
        Supplied(option.flag, effect.interface, effect.field, partial(effect.read, value))
        for _, option, value in _given(options)
        if isinstance(effect := option.effect, ModelField)
    )


def given_files(options: Mapping[str, Any]) -> list[Path]:
    return [given.value for given in _given(options) if isinstance(given.value, Path)]


def check_given(options: Mapping[str, Any], app: Karenina) -> None:
    """Raises ConfigError where the plugin of an option does not run."""
    reasons = {info.name: f"is {info.state}: {info.reason}" for info in app.plugins if info.state != "active"}
    reasons |= dict.fromkeys(
        {given.plugin for given in _given(options)} - {i.name for i in app.plugins}, "is not installed"
    )
    if problems := [
        Problem(given.option.flag, f"the plugin {given.plugin} {reasons[given.plugin]}")
        for given in _given(options)
        if given.plugin in reasons
    ]:
        raise ConfigError(problems)


def _given(options: Mapping[str, Any]) -> Sequence[Given]:
    found: Sequence[Given] = options.get(BROUGHT, ())
    return found
