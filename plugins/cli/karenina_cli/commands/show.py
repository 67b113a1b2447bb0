"""`karenina show`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options.options import json_option, run_argument
from ..options.sections import examples


@click.command(
    short_help="Explain the results of a run.",
    epilog=examples("karenina show latest", "karenina show runs/first 3 --model gpt-4.1-mini"),
)
@run_argument
@click.argument("question_id", metavar="[QUESTION]", required=False)
@click.option("--model", metavar="TEXT", help="Only results whose answering or parsing model contains this text.")
@click.option("--replicate", type=click.IntRange(min=1), metavar="N", help="Only this replicate.")
@click.option("--calls", is_flag=True, help="Also show every request that was sent for the question, and every reply.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    directory: Path,
    question_id: str | None,
    model: str | None,
    replicate: int | None,
    calls: bool,
    as_json: bool,
) -> None:
    """List the results in DIR, a run directory or a results.jsonl, or explain those of one question.

    QUESTION is an id, a position in that list counted from 0, or the beginning of an id or a part of a question that
    matches only one.
    """
    from ..show.explanation import ShowRequest, show

    if calls and question_id is None:
        raise click.UsageError("--calls needs a QUESTION.")
    show(directory, ShowRequest(question_id, model, replicate, calls), as_json=as_json)
    ctx.exit(0)
