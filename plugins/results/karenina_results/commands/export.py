"""`karenina export`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import run_argument
from karenina_cli.options.sections import examples


@click.command(
    short_help="Write the results of a run in another file format.",
    epilog=examples("karenina export runs/first -o first.csv", "karenina export runs/first -o first.parquet"),
)
@run_argument
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="json, jsonl, csv, xlsx, parquet, sqlite, junit, or a format of a plugin. Default: from the suffix of FILE.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file; an existing one is replaced. Default: the name of DIR with the format's suffix, in the working "
    "directory.",
)
@click.option(
    "--columns",
    type=click.Choice(("short", "full")),
    help="For csv and xlsx: the main columns (short, the default), or everything that is stored (full).",
)
@click.pass_context
def command(ctx: click.Context, directory: Path, format_: str | None, output: Path | None, columns: str | None) -> None:
    """Write the results in DIR, a run directory or a file of results, to FILE. Its name is printed.

    Results are read and written one after the other, so that they need not fit into memory. FILE is written completely
    or not at all.

    Exit codes: 0 written, 1 the results cannot be read, the file cannot be written or a package is missing, 2 wrong
    usage.
    """
    if format_ is None and output is None:
        raise click.UsageError("give --format NAME, -o FILE, or both.", ctx)
    from ..exporting import export

    click.echo(export(directory, format_, output, columns=columns))
    ctx.exit(0)
