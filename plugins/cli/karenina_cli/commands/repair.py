"""`karenina repair`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.options import COUNT, benchmark_option, options_of_a_later_run, run_argument
from ..options.sections import examples
from ..plugin_options import LaterCommand
from ..root import ARGUMENTS


@click.command(
    cls=LaterCommand,
    short_help="Make some results of a finished run again.",
    epilog=examples(
        "karenina repair runs/first --outcome error --dry-run", "karenina repair runs/first --questions 3,7 --mode live"
    ),
)
@run_argument
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
@click.option("--unscored", is_flag=True, help="With a trait that has no score because of an error.")
@click.option("--dry-run", is_flag=True, help="Say what would be made again, and change nothing.")
@click.option("--undo", is_flag=True, help="Take the repair back that has not ended, else the latest one.")
@benchmark_option
@options_of_a_later_run()
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Make results of the finished run in DIR again, in the run itself. Its calls are really made again. Results must
    fit every option that chooses; of one that is repeated, any.

    What was there before is kept in DIR/repairs, and --undo puts it back. A repair that was interrupted, or met with
    transient errors, is continued by `karenina resume`.
    Where something changed that affects the numbers, nothing is repaired: `karenina resume DIR --fork` begins another
    run that takes over what still holds.

    Exit codes: those of `karenina verify`; 0 for --dry-run.
    """
    from ..resuming import repair, take_back

    if options["undo"]:
        typed = click.core.ParameterSource.COMMANDLINE
        flags = [
            option.opts[0]
            for option in ctx.command.get_params(ctx)
            if isinstance(option, click.Option) and option.name and ctx.get_parameter_source(option.name) is typed
        ]
        if others := [flag for flag in flags if flag not in ("--undo", "--json", "--quiet")]:
            raise click.UsageError(f"--undo takes a whole repair back; leave out {', '.join(others)}")
        ctx.exit(take_back(directory, as_json=options["as_json"]))
    ctx.exit(repair(directory, options, ctx.meta[ARGUMENTS]))
