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
    help="replay: keep the answers, and judge them again. live: ask the questions again, and judge the new answers.",
)
@click.option("--all", "everything", is_flag=True, help="Choose all results.")
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Only of these questions: positions in the run, counted from 0, inclusive ranges, or ids.",
)
@click.option(
    "--answering-model",
    "answering_models",
    multiple=True,
    metavar="NAME",
    help="Only of this answering model. Repeatable.",
)
@click.option(
    "--parsing-model", "parsing_models", multiple=True, metavar="NAME", help="Only of this judge. Repeatable."
)
@click.option(
    "--replicate", "replicates", multiple=True, type=COUNT, metavar="N", help="Only of this replicate. Repeatable."
)
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    metavar="NAME",
    help="Only with this outcome: error, failed, auto_failed, abstained, ... Repeatable.",
)
@click.option(
    "--kind",
    "details",
    multiple=True,
    metavar="NAME",
    help="Only with this kind of error (judge, timeout, ...), or failed by this guard. Repeatable.",
)
@click.option(
    "--stage", "stages", multiple=True, metavar="NAME", help="Only those in which this stage failed. Repeatable."
)
@click.option("--unscored", is_flag=True, help="Only with a trait that has no score because of an error.")
@click.option("--dry-run", is_flag=True, help="Show what would be made again, and change nothing.")
@click.option("--undo", is_flag=True, help="Undo the unfinished repair, else the latest one.")
@benchmark_option
@options_of_a_later_run()
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Make some results of the finished run in DIR again, in the run itself. Their calls are really made again. A
    result is chosen if it matches every selecting option; of a repeated option, any value.

    What was there before is kept in DIR/repairs, and --undo puts it back. `karenina resume` continues a repair that was
    interrupted or had transient errors. If something changed that affects the numbers, nothing is repaired: `karenina
    resume DIR --fork` starts another run that takes over what is still valid.

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
            raise click.UsageError(f"--undo undoes a whole repair; leave out {', '.join(others)}")
        ctx.exit(take_back(directory, as_json=options["as_json"]))
    ctx.exit(repair(directory, options, ctx.meta[ARGUMENTS]))
