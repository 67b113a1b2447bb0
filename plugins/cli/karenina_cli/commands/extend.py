"""`karenina extend`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.options import COUNT, FILE, model_options, options_of_a_later_run, run_argument
from ..options.sections import examples
from ..plugin_options import LaterCommand
from ..root import ARGUMENTS


@click.command(
    cls=LaterCommand,
    short_help="Add questions, models, judges, replicates or traits to a finished run.",
    epilog=examples(
        "karenina extend runs/first --parsing-model openai/gpt-4.1 --out runs/second",
        "karenina extend runs/first --replicates 5 --questions all",
    ),
)
@run_argument
@click.option(
    "--out",
    type=FILE,
    metavar="NEWDIR",
    help="The new run directory; it must be empty. Default: karenina-runs/FILE-TIME.",
)
@click.option(
    "--benchmark",
    type=FILE,
    metavar="FILE",
    help="The benchmark as it is now, with more questions or traits. Default: the file of the finished run.",
)
@model_options("answering", added=True)
@model_options("parsing", added=True)
@click.option(
    "--questions",
    metavar="0-5,7|ID,...|all",
    help="Questions of the benchmark to add: positions in the file, counted from 0, inclusive ranges, "
    "ids, or all of them. Those of the finished run stay.",
)
@click.option(
    "--replicates",
    type=COUNT,
    metavar="N",
    help="Independent answers per question and model, including the existing ones.",
)
@click.option(
    "--ask-missing",
    is_flag=True,
    help="Ask the models for answers that are missing from those given to the finished run (--answers).",
)
@options_of_a_later_run(
    before="the finished run",
    spent="the extension may spend",
    sinks="Also write all results there, the existing ones first.",
)
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Add to the finished run in DIR: run only what is new, in a new run directory that has the results of both.

    Existing results are taken over unchanged, and DIR is only read. Added judges read the existing answers; if the
    benchmark has more traits, the results get their scores, and no other calls are made for them. Items that ended in a
    transient error are retried. If something changed that the results depend on, DIR cannot be extended.

    Exit codes: those of `karenina verify`.
    """
    from ..resuming import extend

    ctx.exit(extend(directory, options, ctx.meta[ARGUMENTS]))
