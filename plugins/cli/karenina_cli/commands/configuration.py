"""`karenina config` and `karenina preset`: the configuration in force, and those that are saved under a name."""

from __future__ import annotations

from typing import Any

import click

from ..options.options import json_option, limit_options, models_options, replicates_option, run_options, together
from ..options.sections import examples
from ..plugin_options import VerifyCommand

settings_of_a_run = together(
    models_options,
    run_options,
    replicates_option,
    limit_options("a run may spend"),
)


@click.command(
    cls=VerifyCommand,
    short_help="Show the settings of a run, and where each comes from.",
    epilog=examples("karenina config --config karenina.toml", "karenina config --preset nightly --all"),
)
@settings_of_a_run
@click.option("--all", "every", is_flag=True, help="Show the defaults, too.")
@json_option
def config(*, every: bool, as_json: bool, **options: Any) -> None:
    """Show the settings that `karenina verify` would have with these options, and where each comes from: the command
    line, --set, an environment variable, the file of --config, the preset, or a plugin. No model is called.

    Exit code 1: the configuration is wrong.
    """
    from ..configuration.in_force import shown

    shown(options, every=every, as_json=as_json)


@click.group(short_help="Save configurations under a name.")
def preset() -> None:
    """Save configurations under a name, for `karenina verify --preset NAME`.

    Presets are files of JSON in your data directory, or in the folder that the environment variable
    KARENINA_PRESETS_DIR names. They hold no keys: only names of the environment variables that do.
    """


@preset.command(
    "list", short_help="List the presets.", epilog=examples("karenina preset list", "karenina preset list --json")
)
@json_option
def list_(*, as_json: bool) -> None:
    """List the presets: their models, what they are for, and those that cannot be used."""
    from ..configuration.presets import listed

    listed(as_json=as_json)


@preset.command(
    short_help="Show the settings of a preset.",
    epilog=examples("karenina preset show nightly", "karenina preset show presets/nightly.json --json"),
)
@click.argument("reference", metavar="NAME|FILE")
@json_option
def show(reference: str, *, as_json: bool) -> None:
    """Show the settings of a preset in the form of `--set`, and whether the variables that hold its keys are set."""
    from ..configuration.presets import shown

    shown(reference, as_json=as_json)


@preset.command(
    cls=VerifyCommand,
    short_help="Save a configuration.",
    epilog=examples(
        "karenina preset save nightly --config karenina.toml",
        "karenina preset save quick --preset nightly --concurrency 2",
    ),
)
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What the preset is for.")
@click.option("--replace", is_flag=True, help="Replace an existing preset of this name; its description is kept.")
@settings_of_a_run
def save(name: str, *, description: str | None, replace: bool, **options: Any) -> None:
    """Save under NAME what these options mean to `karenina verify`: everything that differs from the defaults.

    The environment is not saved. A key is refused, and so is an address with a password in it: name the environment
    variable that holds the key (--answering-api-key-env). With --preset and --replace, a preset is changed.

    Exit code 1: the configuration is wrong or would hold a secret, or the name is taken.
    """
    from ..configuration.presets import saved

    saved(name, description, options, replace=replace)


@preset.command(
    short_help="Delete a preset.",
    epilog=examples("karenina preset delete nightly", "karenina preset delete nightly --yes"),
)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(name: str, *, yes: bool) -> None:
    """Delete the preset NAME after confirmation."""
    from ..configuration.presets import deleted

    deleted(name, yes=yes)
