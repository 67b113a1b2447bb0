"""`karenina resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.gates import gate_options
from ..options.options import FILE, benchmark_option, options_of_a_later_run, run_argument
from ..options.sections import examples
from ..plugin_options import LaterCommand
from ..root import ARGUMENTS


@click.command(
    cls=LaterCommand,
    short_help="Continue a run that was interrupted.",
    epilog=examples("karenina resume runs/first", "karenina resume runs/first --concurrency 2 --budget-usd 5"),
)
@run_argument
@click.option(
    "--fork",
    type=FILE,
    metavar="NEWDIR",
    help="Begin a new run there, with whatever has changed. It asks only what this one has not asked.",
)
@click.option("--retry-failed", is_flag=True, help="Also try items again whose errors would come again.")
@benchmark_option
@options_of_a_later_run()
@gate_options
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Finish the run in DIR. What is done stays; what was asked is not asked again; items that ended in a transient
    error (rate limits, timeouts, connections, a used-up budget) are tried again.

    The benchmark and the configuration are those of the beginning. Where something changed that affects the numbers,
    the run is not resumed: --fork begins another one that takes over what still holds.

    Exit codes: those of `karenina verify`.
    """
    from ..resuming import resume

    ctx.exit(resume(directory, options, ctx.meta[ARGUMENTS]))
