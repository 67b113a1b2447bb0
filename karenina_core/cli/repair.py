"""`karenina repair`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import options_of_a_later_run
from .root import ARGUMENTS

__all__ = ["command"]

COUNT = click.IntRange(min=1)
FILE = click.Path(path_type=Path)


@click.command(short_help="Make some results of a finished run anew.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--mode",
    type=click.Choice(["replay", "live"]),
    default="replay",
    show_default=True,
    help="replay: the answers stay, and their judges are asked again. live: the questions are asked again, and all "
    "judges read the new answers.",
)
@click.option("--all", "everything", is_flag=True, help="All results.")
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Of these questions: positions in the run, counted from 0, ranges with both ends, or ids.",
)
@click.option("--answering-model", "answering_models", multiple=True, metavar="NAME", help="Of this model. Repeatable.")
@click.option("--parsing-model", "parsing_models", multiple=True, metavar="NAME", help="Of this judge. Repeatable.")
@click.option("--replicate", "replicates", multiple=True, type=COUNT, metavar="N", help="This one. Repeatable.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    metavar="NAME",
    help="That ended so: error, failed, auto_failed, abstained, ... Repeatable.",
)
@click.option(
    "--kind",
    "details",
    multiple=True,
    metavar="NAME",
    help="With this kind of error (judge, timeout, ...), or failed by this guard. Repeatable.",
)
@click.option("--stage", "stages", multiple=True, metavar="NAME", help="In which this stage failed. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Say what would be made anew, and change nothing.")
@options_of_a_later_run(
    before="the beginning",
    spent="the whole run may spend, what it has spent already included",
    sinks="Write results there, in place of the sinks of the beginning.",
)
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Make results of the finished run in DIR anew, in the run itself. Its calls are really made again. Results must
    fit every option that chooses; of one that is repeated, any.

    What was there before is kept in DIR/repairs. A repair that was interrupted is gone on with by `karenina resume`.
    Where something changed that affects the numbers, nothing is repaired: `karenina resume DIR --fork` begins another
    run that takes over what still holds.

    \b
    Exit codes: those of `karenina verify`; 0 for --dry-run.
    """
    from .repairing import repair

    ctx.exit(repair(directory, options, ctx.meta[ARGUMENTS]))
