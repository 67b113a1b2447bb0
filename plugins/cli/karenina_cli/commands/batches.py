"""`karenina batches`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.options import json_option, later_settings, run_argument
from ..options.sections import examples
from ..plugin_options import LaterCommand


@click.command(
    cls=LaterCommand,
    short_help="Show or cancel the batches of a run that are at providers.",
    epilog=examples("karenina batches runs/first", "karenina batches runs/first --cancel"),
)
@run_argument
@click.option("--cancel", is_flag=True, help="Have the calls cancelled that are not made yet.")
@later_settings("the beginning")
@json_option
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Ask the providers how far the batches of the run in DIR are whose replies are not here yet.

    With --cancel, what is made already is paid for: `karenina resume` fetches it, and may ask for the rest again. A
    process that works on the run has to be ended before. Without it, the run directory is only read.

    Exit codes: 0; 3 where a batch could not be asked for; 1 could not run.
    """
    from ..run_status import show_batches

    ctx.exit(show_batches(directory, options))
