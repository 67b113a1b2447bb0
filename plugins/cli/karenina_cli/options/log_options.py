"""Options for people who look for a fault. They may stand before the command, and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

GIVEN = "karenina.log"
"""Where a context's `meta` keeps what was given."""


def log_options(*, hidden: bool) -> list[click.Option]:
    """They take effect as they are read. `hidden`: the help of the root lists them, and no other."""
    level = click.Choice(("debug", "info", "warning", "error"))
    return [
        _option(["-v", "--verbose"], "Log events, such as each failure, to stderr.", hidden, is_flag=True),
        _option(
            ["--log-level"], "Log everything from this level on. Default: warning.", hidden, type=level, metavar="LEVEL"
        ),
        _option(
            ["--log-file"],
            "Also write the log to this file, with times and tracebacks; without --log-level, everything.",
            hidden,
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
        ),
        _option(["--traceback"], "Show the tracebacks of errors, of items and of the command.", hidden, is_flag=True),
    ]


def add_log_options(command: click.Command) -> None:
    """Let a command take them too, but for those whose names it has for something else."""
    taken = {flag for parameter in command.params for flag in parameter.opts}
    command.params += [option for option in log_options(hidden=True) if not taken & {*option.opts}]


def shows_tracebacks(ctx: click.Context) -> bool:
    """Whether `--traceback` was given."""
    return bool(ctx.meta.get(GIVEN, {}).get("traceback"))


def begin(ctx: click.Context) -> None:
    """Log as the options of this call say so far."""
    from ..logs import Wanted, configure, end_file

    ctx.find_root().call_on_close(end_file)
    configure(Wanted(**{name.removeprefix("log_"): value for name, value in ctx.meta.get(GIVEN, {}).items()}))


def _option(flags: list[str], text: str, hidden: bool, **about: Any) -> click.Option:
    return click.Option(flags, help=text, hidden=hidden, expose_value=False, callback=_take, **about)


def _take(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not value:
        return
    ctx.meta.setdefault(GIVEN, {})[parameter.name] = value
    try:
        begin(ctx)
    except OSError as error:
        raise click.BadParameter(f"{value} cannot be written: {error.strerror}", ctx, parameter) from None
