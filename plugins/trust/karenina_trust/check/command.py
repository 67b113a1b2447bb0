"""`karenina judge check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from karenina_cli.options.options import COUNT, FILE
from karenina_cli.options.sections import examples

from ..judges.options import TrialCommand, trial_options


@click.command(
    cls=TrialCommand,
    short_help="See whether a judge reads answers rightly whose contents are known.",
    epilog=examples(
        "karenina judge check questions.jsonld --model openai/gpt-4.1 --estimate",
        "karenina judge check questions.jsonld --preset judge --max-misread 0.05",
    ),
)
@click.argument("benchmark", type=FILE)
@trial_options("the check")
@click.option("--repeats", type=COUNT, metavar="N", default=1, help="How often every answer is judged. Default: 1.")
@click.option(
    "--wrong", type=click.IntRange(min=0), metavar="N", default=1, help="Wrong values of each field. Default: 1."
)
@click.option(
    "--for",
    "beside",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="A run of the same templates and judge: its report shows what was found, kept as judge-check.json in it.",
)
@click.option(
    "--max-misread",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit with 4 if a judge misreads a larger share of the fields, or none could be read.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Have a judge read answers whose contents are known, before it judges a model with the templates of BENCHMARK.

    It reads each reference answer as it is and in other settings, the values that a template expects in several forms,
    and answers with one wrong value. What it should have found is known from the template itself, so that whatever
    differs is a misreading of the judge, or a template that asks for what its reference answer does not say. The
    answers are judged in a run of their own, which `karenina resume` continues; with the --out of a finished run, its
    findings are printed again.

    Exit codes: 0 done, 3 some answers have no verdict, 4 more is misread than --max-misread, 1 could not run, 2 wrong
    usage, 74 the run directory cannot be written, 130 interrupted.
    """
    from .printed import run

    ctx.exit(run(options["benchmark"], options))
