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
    help="Questions of the benchmark that are added: positions in the file, counted from 0, ranges with both ends, "
    "ids, or all of them. Those of the finished run stay.",
)
@click.option(
    "--replicates",
    type=COUNT,
    metavar="N",
    help="Independent answers per question and model, those that are there included.",
)
@click.option(
    "--ask-missing",
    is_flag=True,
    help="Ask the models for answers that those do not have which the finished run was given (--answers).",
)
@options_of_a_later_run(
    before="the finished run",
    spent="the extension may spend",
    sinks="Write all results there too, first those that are there.",
)
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Run what is added to the finished run in DIR, in a new run directory that has the results of both.

    The results that are there are taken over as they are, and DIR is only read. Judges that are added read the answers
    that are there; where the benchmark has more traits, the results get the scores of these, and nothing else is asked
    about them. Items that ended in a transient error are tried again. Where something changed that the results depend
    on, DIR cannot be extended.

    Exit codes: those of `karenina verify`.
    """
    from ..resuming import extend

    ctx.exit(extend(directory, options, ctx.meta[ARGUMENTS]))
