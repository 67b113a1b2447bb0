"""`karenina judge attack`."""

from __future__ import annotations

from typing import Any

import click
from karenina_cli.options.options import COUNT, FILE
from karenina_cli.options.sections import examples

from ..judges.options import TrialCommand, trial_options


@click.command(
    cls=TrialCommand,
    short_help="See which texts in a wrong answer make a judge accept it.",
    epilog=examples(
        "karenina judge attack questions.jsonld --model openai/gpt-4.1 --estimate",
        "karenina judge attack questions.jsonld --preset judge --max-success 0.02",
    ),
)
@click.argument("benchmark", type=FILE)
@trial_options("the attacks")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="NAME",
    help="Only payloads of this family. Repeatable. Default: all.",
)
@click.option(
    "--per-payload",
    type=COUNT,
    metavar="N",
    default=1,
    help="Questions that each payload is tried on in each position. Default: 1.",
)
@click.option(
    "--no-holistic", is_flag=True, help="Leave out the plain judge that says whether a whole response is correct."
)
@click.option(
    "--max-success",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit with 4 if more of the attacks on the templates succeed, or none could be judged.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Put texts that try to deceive a judge into wrong answers to the questions of BENCHMARK, and count how many pass.

    There are more than sixty of them in eight families. Each stands before the answer, behind it, and alone. As a
    control, the same answer is judged with a benign text of the same length. The judge fills in the templates, and also
    says, without templates, whether the same answers are correct.

    Exit codes: 0 done, 3 some answers have no verdict, 4 more attacks succeed than --max-success, 1 could not run, 2
    wrong usage, 74 the run directory cannot be written, 130 interrupted.
    """
    from .printed import run

    ctx.exit(run(options["benchmark"], options))
