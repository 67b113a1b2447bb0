"""`karenina plugins new` and `karenina plugins check`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples

from karenina_core.errors import KareninaError

KINDS = ("adapter", "command", "embedder", "loader", "primitive", "sink", "stage", "trait")


@click.command(
    short_help="Write a package with a plugin that keeps its promises.",
    epilog=examples("karenina plugins new stage word-limit", "karenina plugins new sink lab-database --into packages"),
)
@click.argument("kind", required=False, metavar="KIND")
@click.argument("name", required=False, metavar="NAME")
@click.option("--into", type=click.Path(path_type=Path), default=".", help="The folder to make the package in.")
@click.option("--description", metavar="TEXT", help="What the plugin does, in one line.")
@click.option("--author", metavar="'NAME <EMAIL>'", help="Who wrote it.")
@click.pass_context
def new(
    ctx: click.Context, kind: str | None, name: str | None, into: Path, description: str | None, author: str | None
) -> None:
    """Write the package karenina-NAME: a working plugin of a KIND, its tests, and what is needed to publish it.

    KIND is adapter, command, embedder, loader, primitive, sink, stage or trait; NAME consists of small letters, digits
    and hyphens. On a terminal, it asks for what is missing. No file is overwritten.

    Exit code 1: the package cannot be written.
    """
    from .package import checked_name, default_description, new_package, next_steps

    asks = is_terminal()
    if not asks and (kind is None or name is None):
        raise click.UsageError("name a KIND and a NAME: karenina plugins new stage word-limit", ctx)
    complete = kind is not None and name is not None
    kind = kind or click.prompt("Kind", type=click.Choice(KINDS))
    default = default_description(kind)
    name = name or click.prompt("Name", value_proc=_refusing(checked_name))
    if asks and not complete and description is None:
        description = click.prompt("What it does", default=default)
    if asks and not complete and author is None:
        author = click.prompt("Author", default="", show_default=False)
    folder, files = new_package(kind, name, into, description=description, author=author)
    for file in files:
        click.echo(folder / file)
    click.echo(f"\n{next_steps(folder, name)}")


def is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _refusing(check: Callable[[str], str]) -> Callable[[str], str]:
    """For a prompt that asks again after a wrong answer."""

    def checked(text: str) -> str:
        try:
            return check(text)
        except KareninaError as error:
            raise click.UsageError(str(error)) from None

    return checked


@click.command(
    short_help="Check whether a plugin keeps its promises.",
    epilog=examples("karenina plugins check word-limit", "karenina plugins check word-limit -k registered"),
)
@click.argument("name")
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Random examples of each check that draws some.")
@click.option("--seed", type=int, metavar="N", help="Draw other random examples; the same number draws the same ones.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each check may take.",
)
@click.option("-k", "text", default="", metavar="TEXT", help="Only checks with this in their names.")
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    name: str,
    examples: int | None,
    seed: int | None,
    timeout: float,
    text: str,
    as_json: bool,
) -> None:
    """Check the installed plugin or command NAME: whether it can be loaded, and whether everything that it brings keeps
    its promises. No provider is called.

    Whatever checks need beyond a plugin's declarations, its package names in the entry point group `karenina.checks`. A
    check that takes too long is a broken promise. Examples are the same in every call, unless --seed says otherwise.

    Exit code 1: a promise is broken, or nothing could be checked. 2: there is no plugin or command NAME.
    """
    from .verdict_pages import print_verdicts
    from .verdicts import Request, verdicts

    request = Request(name=name, examples=examples, seed=seed, seconds=timeout, text=text)
    if problem := unknown(name):
        raise click.UsageError(problem, ctx)
    found = verdicts(request)
    if not found:
        raise click.UsageError(f"no check of {name} has {text!r} in its name", ctx)
    print_verdicts(request, found, as_json=as_json)
    ctx.exit(0 if all(verdict.kept for verdict in found) else 1)


def unknown(name: str) -> str:
    """What to say where no installed plugin or command has this name; nothing where one has."""
    from karenina_cli.doctor.misplaced import misplaced

    from karenina_core.entry_points import installed_entry_points
    from karenina_core.errors import did_you_mean
    from karenina_core.plugin.discovery import GROUP

    known = {point.name for group in (GROUP, "karenina.commands") for point in installed_entry_points(group)}
    if name in known:
        return ""
    strays = [line for line in misplaced() if repr(name) in line] or ["install its package first"]
    return f"no installed plugin or command is called {name!r}{did_you_mean(name, known)}; {'; '.join(strays)}"
