"""`karenina demo`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="Show what karenina does: no key, no network.",
    epilog=examples("karenina demo", "karenina demo --out runs/demo"),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run directory; it must be empty. Default: karenina-runs/demo-TIME.",
)
@click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
@json_option
@click.pass_context
def command(ctx: click.Context, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Run a benchmark that comes with karenina. Every model call is replayed from a recording: no key, no network.

    Exit codes: 0 everything went as recorded, with the one failure of a provider that belongs to the recording,
    1 could not run, 3 other items ended in an error, 74 the run directory cannot be written, 130 interrupted.
    """
    from .demonstration import demonstrate

    ctx.exit(demonstrate(out, quiet=quiet, as_json=as_json))
