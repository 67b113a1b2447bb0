"""`karenina doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options.options import RUN, json_option
from ..options.sections import examples


@click.command(
    short_help="Check whether karenina can work here, or whether a run's journal is whole.",
    epilog=examples("karenina doctor", "karenina doctor runs/first"),
)
@click.argument("directory", metavar="[DIR]", required=False, type=RUN)
@click.option("--deep", is_flag=True, help="Also import what every adapter needs, each in its own process.")
@click.option("--replace", is_flag=True, help="Replace the damaged journal with the part that could be saved.")
@json_option
@click.pass_context
def command(ctx: click.Context, directory: Path | None, deep: bool, replace: bool, as_json: bool) -> None:
    """Check plugins, adapters, the run directory, the environment, and what packages add: template runtimes, embedders,
    search tools, clients of tool servers. No model is called.

    Exit code 1: a plugin failed, or no adapter can be used. An embedder or a search tool that cannot be used is not a
    failure: it is needed only if it is configured.

    With a run directory DIR, check its journal instead: whether everything that was paid for and all results are
    present and unchanged. The readable part of a damaged journal is written to a new file beside it; --replace puts
    that in its place, so that the run can be resumed, and keeps the damaged one under another name. Exit code 1: the
    journal is damaged or missing. Exit code 74: the readable part cannot be written.
    """
    if directory is None:
        if replace:
            raise click.UsageError("--replace is for the journal of a run directory; name it.", ctx)
        from ..doctor.examination import examine

        ctx.exit(examine(deep=deep, as_json=as_json))
    if deep:
        raise click.UsageError("--deep is for the environment, not for a run directory.", ctx)
    from ..doctor.examination import examine_run

    ctx.exit(examine_run(directory, replace=replace, as_json=as_json))
