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
    help="Start a new run there, with everything that has changed. It makes only calls that this one has not made.",
)
@click.option("--retry-failed", is_flag=True, help="Also retry items whose errors are not transient.")
@benchmark_option
@options_of_a_later_run()
@gate_options
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Finish the run in DIR. Finished items stay; calls that were made are not made again; items that ended in a
    transient error (rate limits, timeouts, connections, a used-up budget) are retried.

    The benchmark and the configuration are the original ones. If something changed that affects the numbers, the run is
    not resumed: --fork starts another run that takes over what is still valid.

    Exit codes: those of `karenina verify`.
    """
    from ..resuming import resume

    ctx.exit(resume(directory, options, ctx.meta[ARGUMENTS]))
