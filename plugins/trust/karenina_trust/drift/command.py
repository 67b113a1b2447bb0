"""`karenina judge drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from karenina_cli.options.options import COUNT, json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="See whether a judge has become worse, as often as you like.",
    epilog=examples(
        "karenina verify questions.jsonld --answers runs/first --out runs/look-2",
        "karenina judge drift runs/first runs/look-* --labels runs/first/labels.json",
        "karenina judge drift runs/look-* --labels labels.json --floor 0.9",
    ),
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--labels",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The labels of the answers, as `karenina label` keeps them.",
)
@click.option(
    "--baseline",
    type=COUNT,
    metavar="N",
    help="How many of the earliest runs set the level that the others are tested against. Default: 1.",
)
@click.option(
    "--floor",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="X",
    help="Test all runs against this agreement with people instead.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    metavar="X",
    help="The chance of a false alarm, over all looks together. Default: 0.05.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, runs: tuple[Path, ...], **options: Any) -> None:
    """See whether a judge agrees with people less often than it did. Each RUN is one look: the same labelled answers,
    judged again on a schedule (`karenina verify --answers`).

    Looking after every run makes no false alarm more likely: --alpha bounds its chance over all looks together. Give
    all runs every time; they are taken in the order in which they were made.

    Exit codes: 0 no alarm, 4 a judge agrees less, 1 a run or the labels cannot be read, 2 wrong usage.
    """
    if options["floor"] is not None and options["baseline"] is not None:
        raise click.UsageError("--floor takes the place of --baseline; give one of them", ctx)
    from .printed import run

    ctx.exit(run(runs, options))
