"""`karenina report`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import run_argument
from karenina_cli.options.sections import examples


@click.command(
    short_help="Write the results of a run as one HTML page.",
    epilog=examples("karenina report runs/first", "karenina report runs/first -o first.html --cluster-by keyword"),
)
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The page; an existing one is replaced. Default: report.html beside the results.",
)
@click.option(
    "--cluster-by",
    metavar="WHAT",
    help="Which questions belong together and count as one for the intervals: keyword, keyword:PREFIX, or a JSON or "
    "CSV file of question ids and groups.",
)
@click.pass_context
def command(ctx: click.Context, directory: Path, output: Path | None, cluster_by: str | None) -> None:
    """Write everything about the results in DIR, a run directory or a file of results, into one HTML file.

    The file is self-contained: it can be sent, archived and printed, and makes no requests. Its name is printed.

    Exit codes: 0 written, 1 the results cannot be read, 74 the page cannot be written.
    """
    from karenina_compare.question_groups import grouping

    from . import report_on

    click.echo(report_on(directory, output, cluster=grouping(cluster_by) if cluster_by else None))
    ctx.exit(0)
