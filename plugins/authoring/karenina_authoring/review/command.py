"""`karenina benchmark review`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import FILE, json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="Write a sheet for reviewers, and apply what they decide.",
    epilog=examples(
        "karenina benchmark review questions.jsonld --sheet review.csv",
        "karenina benchmark review questions.jsonld --apply review.csv",
    ),
)
@click.argument("benchmark", type=FILE)
@click.option("--sheet", type=FILE, metavar="FILE", help="Write the sheet: .xlsx, .csv, .tsv or .jsonl.")
@click.option("--apply", "decided", type=FILE, metavar="FILE", help="Apply the decisions in this sheet.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=FILE,
    metavar="DIR",
    help="With --sheet: a run of this benchmark for the audit. Repeatable.",
)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="With --apply: the file to write. Default: BENCHMARK.")
@click.option(
    "--version", metavar="TEXT", help="With --apply: its new version. Default: the last number of the old one, plus 1."
)
@click.option("--trust", is_flag=True, help="Run this file's Python templates in this process, to prove them too.")
@json_option
def command(
    benchmark: Path,
    sheet: Path | None,
    decided: Path | None,
    runs: tuple[Path, ...],
    output: Path | None,
    version: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Write the items of BENCHMARK into a sheet, with their state, proof and audit, and blank columns for a reviewer;
    or apply what was decided there: accept, edit or reject in the column "review decision".

    accept: the item is finished. edit: the cells of the row replace the item, which is finished. reject: it is not
    finished. An item whose template has a fault is never finished. The version of the benchmark, the digests of its
    items and what changed are kept in the file.

    Exit code 1: a row cannot be applied; then none is.
    """
    ctx = click.get_current_context()
    if (sheet is None) == (decided is None):
        raise click.UsageError("give --sheet FILE to write a sheet, or --apply FILE to apply one", ctx)
    if sheet is not None and (output is not None or version is not None):
        raise click.UsageError("-o and --version belong to --apply", ctx)
    if decided is not None and runs:
        raise click.UsageError("--run belongs to --sheet", ctx)
    from .printed import apply_sheet, write_sheet

    if sheet is not None:
        write_sheet(benchmark, sheet, runs, trust=trust, as_json=as_json)
    elif decided is not None:
        apply_sheet(benchmark, decided, output or benchmark, version, trust=trust, as_json=as_json)
