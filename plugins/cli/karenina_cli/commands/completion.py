"""`karenina completion`."""

from __future__ import annotations

import click

from ..options.sections import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    short_help="Print what lets a shell complete commands and options.",
    epilog=examples(
        "echo 'eval \"$(karenina completion bash)\"' >> ~/.bashrc",
        "karenina completion fish > ~/.config/fish/completions/karenina.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script for SHELL that completes commands, options, choices and files of `karenina` by the Tab key.

    The script asks `karenina` itself, so that it knows the commands of packages that are installed later.
    """
    from click.shell_completion import get_completion_class

    from ..root import karenina

    made = get_completion_class(shell)
    assert made is not None, shell
    click.echo(made(karenina, {}, "karenina", "_KARENINA_COMPLETE").source())
