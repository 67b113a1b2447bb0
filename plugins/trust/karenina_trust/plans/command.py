"""`karenina judge labels`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="Compute how many labels an interval of a given width takes, and of which answers.",
    epilog=examples(
        "karenina judge labels runs/first --width 0.1",
        "karenina judge labels runs/first --width 0.1 --labels runs/first/labels.json",
    ),
)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--width",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    required=True,
    metavar="X",
    help="The full width of the interval of the rate: 0.1 is plus or minus five percentage points.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Existing labels, as `karenina label` keeps them: they show how good the judge is.",
)
@click.option(
    "--sensitivity",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="How often the judge is assumed to pass what is right. Without --labels and this, several are tried.",
)
@click.option(
    "--specificity", type=click.FloatRange(0, 1), metavar="X", help="How often it is assumed to fail what is wrong."
)
@click.option("--model", metavar="TEXT", help="Only answers of models whose name contains this text.")
@click.option("--judge", metavar="TEXT", help="Only judges whose name contains this text.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, run: Path, **options: Any) -> None:
    """Compute how many answers of RUN people have to label, so that the interval of the rate that they would give has a
    given width: without the judge, with the judge and answers drawn at random, and with the judge and as many answers
    that it passed as it did not. karenina label draws the answers and asks.

    A judge that is right no more often than the judged model cannot save more than half of the labels; a note then says
    so.

    Exit codes: 0 done, 1 the run or the labels cannot be read, 2 wrong usage, 4 there are too few answers for
    the width, even if all are labelled.
    """
    if (options["sensitivity"] is None) is not (options["specificity"] is None):
        raise click.UsageError("give both --sensitivity and --specificity, or neither", ctx)
    if options["labels"] is not None and options["sensitivity"] is not None:
        raise click.UsageError("--labels says how good the judge is; leave out --sensitivity and --specificity", ctx)
    from .printed import plan

    ctx.exit(plan(run, options))
