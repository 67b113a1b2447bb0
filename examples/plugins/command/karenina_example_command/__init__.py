"""`karenina slowest DIR`: which items of a run took longest."""

import json
from pathlib import Path

import click

KARENINA_API = 1


@click.command(short_help="List the items of a run that took longest.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="How many of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(directory: Path, top: int, as_json: bool) -> None:
    """List the items in DIR, a run directory or a file of results, that took longest.

    Exit code 1: the results cannot be read.
    """
    from karenina_core import VerificationResultSet  # `karenina --help` imports this module, and needs no results

    found = sorted(VerificationResultSet.load(directory), key=lambda result: -result.metadata.execution_time)
    rows = [
        {
            "seconds": round(result.metadata.execution_time, 3),
            "question": result.metadata.question_id,
            "model": result.metadata.answering_model,
            "outcome": str(result.outcome),
        }
        for result in found[:top]
    ]
    if as_json:
        click.echo(json.dumps({"slowest": rows}))
        return
    for row in rows:
        click.echo(f"{row['seconds']:>9} s  {row['question']}  {row['model']}  {row['outcome']}")
