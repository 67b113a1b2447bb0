"""`karenina status`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options.options import json_option, run_argument
from ..options.sections import examples


@click.command(
    short_help="Show the progress of a run.",
    epilog=examples("karenina status runs/first", "karenina status runs/first --json"),
)
@run_argument
@json_option
@click.pass_context
def command(ctx: click.Context, directory: Path, as_json: bool) -> None:
    """Show the progress and usage of the run in DIR, whether a process works on it, and what to type next.

    Nothing is written, and a run that is under way is not disturbed.
    """
    from ..run_status import show_status

    show_status(directory, as_json=as_json)
    ctx.exit(0)
