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
@click.option("--cancel", is_flag=True, help="Cancel the calls that have not been made yet.")
@later_settings("the beginning")
@json_option
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Show how far the providers are with the batches of the run in DIR whose replies have not been fetched.

    With --cancel, calls that were already made are paid for: `karenina resume` fetches their replies, and may make the
    others again. End any process that works on the run first. Without --cancel, the run directory is only read.

    Exit codes: 0; 3 the state of a batch is unknown; 1 could not run.
    """
    from ..run_status import show_batches

    ctx.exit(show_batches(directory, options))
