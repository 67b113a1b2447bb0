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
@click.option("--deep", is_flag=True, help="Also import what every adapter needs, each in a process of its own.")
@click.option("--replace", is_flag=True, help="Replace the damaged journal by what could be saved of it.")
@json_option
@click.pass_context
def command(ctx: click.Context, directory: Path | None, deep: bool, replace: bool, as_json: bool) -> None:
    """Check plugins, adapters, the run directory, the environment, and what packages add: template runtimes, embedders,
    search tools, clients of tool servers. No model is called.

    Exit code 1: a plugin failed, or no adapter can be used. An embedder or a search tool that something is missing for
    is no failure: it is needed only where it is configured.

    With a run directory DIR, check its journal instead: whether all that was paid for and all results are there, and as
    they were written. What can be read of a damaged one is written to a new file beside it; --replace puts that in its
    place, so that the run can be resumed, and keeps the damaged one under another name. Exit code 1: it is damaged, or
    there is none. Exit code 74: what can be read cannot be written.
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
