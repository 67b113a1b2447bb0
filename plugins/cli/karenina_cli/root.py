"""The command `karenina` itself: it knows its commands from the metadata of installed packages and imports only the
one that is run."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import click

from karenina_core import __version__
from karenina_core.entry_points import installed_entry_points, owner
from karenina_core.errors import PluginError, did_you_mean

from .entries import imported, source_help
from .exits import ended_by
from .options.log_options import add_log_options, begin, log_options, shows_tracebacks
from .options.sections import examples
from .output import note

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

LONGEST = 80
"""Characters of a line of help: the width that click assumes for a terminal."""
GROUP = "karenina.commands"
OWN = "karenina-cli"
GROUPS = {
    "Begin": ("demo", "init", "benchmark"),
    "Run": ("verify", "status", "resume", "extend", "repair", "batches"),
    "Use results": ("show", "report", "compare", "export"),
    "Trust a number": ("judge", "label", "certify", "panel"),
    "Before a run": ("plan", "config", "preset", "trust"),
    "This installation": ("plugins", "doctor", "completion"),
}
"""Headings of `karenina --help`; what is not installed is left out."""
ARGUMENTS = f"{GROUP}.arguments"
"""Where a context's `meta` keeps what the user typed, from the name of the command on."""


class Commands(click.Group):
    """Commands by the entry points of a group, by default `karenina.commands`. Errors become exit codes here.

    `elsewhere` says of commands that may not be installed what to install: `{"new": "karenina-core[testing]"}`, and
    `instead` what to type in place of commands that there are not.
    """

    def __init__(
        self,
        *arguments: Any,
        points: str = GROUP,
        elsewhere: Mapping[str, str] | None = None,
        instead: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.points = points
        self.elsewhere = elsewhere or {}
        self.instead = instead or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_points(ctx, self.points))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command. Raises PluginError that names its distribution."""
        points = _points(ctx, self.points).get(name)
        if not points:
            return None
        command = imported(points[0], "command")
        if not isinstance(command, click.Command):
            raise PluginError(
                f"the command {name!r} of {owner(points[0])} is not a click command: {points[0].value} is {command!r}"
            )
        add_log_options(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing:  # a shell completes what is typed
            return super().resolve_command(ctx, args)
        ctx.meta.setdefault(ARGUMENTS, tuple(args))
        name, points = args[0], _points(ctx, self.points)
        if name not in points and name in self.elsewhere:
            raise click.UsageError(f"{name} is not installed; type: pip install '{self.elsewhere[name]}'", ctx)
        if name not in points and not name.startswith("-"):
            if inner := [other for other in points if name in _points(ctx, f"{self.points}.{other}")]:
                raise click.UsageError(f"{name} is a part of {inner[0]}; type: karenina {inner[0]} {name}", ctx)
            advice = self.instead.get(name, "install the package that provides it.")
            raise click.UsageError(f"no command is called {name!r}{did_you_mean(name, points)}; {advice}", ctx)
        if len(owners := [owner(point) for point in points.get(name, ())]) > 1:
            note(f"{' and '.join(owners)} both provide the command {name!r}; that of {owners[0]} is run")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        points = _points(ctx, self.points)
        groups = GROUPS if self.points == GROUP else {}
        listed = {name for names in groups.values() for name in names}
        others = {"More commands" if groups else "Commands": sorted(set(points) - listed)}
        for title, names in {**groups, **others}.items():
            if rows := [(name, source_help(points[name][0], LONGEST)) for name in names if name in points]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands that begin so, without importing any."""
        from click.shell_completion import CompletionItem

        points = sorted(_points(ctx, self.points).items())
        named = [(name, point) for name, (point, *_) in points if name.startswith(incomplete)]
        found = [CompletionItem(name, help=source_help(point, LONGEST)) for name, point in named]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of our output has gone; click ends quietly
            ctx.exit(ended_by(error, traceback=shows_tracebacks(ctx)))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "karenina demo                  a first look: no key, no network",
        "karenina verify --help         every command has examples",
    ),
)
@click.version_option(__version__, prog_name="karenina", message="%(prog)s %(version)s")
@click.pass_context
def karenina(ctx: click.Context) -> None:
    """Executable evaluations of language models."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    else:
        begin(ctx)


karenina.params += log_options(hidden=False)


def _points(ctx: click.Context, group: str) -> dict[str, Sequence[EntryPoint]]:
    """Entry points by name. Where several packages provide one name, karenina-cli's comes first, then by package."""
    known: dict[str, Sequence[EntryPoint]] | None = ctx.meta.get(group)
    if known is None:
        found: dict[str, dict[str, EntryPoint]] = {}
        for point in installed_entry_points(group):
            found.setdefault(point.name, {}).setdefault(owner(point), point)
        known = {
            name: [owners[package] for package in sorted(owners, key=lambda package: (package != OWN, package))]
            for name, owners in found.items()
        }
        ctx.meta[group] = known
    return known
