"""`karenina doctor`."""

from __future__ import annotations

import click

from .options import json_option

__all__ = ["command"]


@click.command(short_help="Check whether karenina can work here.")
@click.option("--deep", is_flag=True, help="Also import what every adapter needs, each in a process of its own.")
@json_option
@click.pass_context
def command(ctx: click.Context, deep: bool, as_json: bool) -> None:
    """Check plugins, adapters, template runtimes, embedders, search tools, the run directory and the environment. No
    model is called.

    Exit code 1: a plugin failed, or no adapter can be used. An embedder or a search tool that something is missing for
    is no failure: it is needed only where it is configured.
    """
    from .examination import examine

    ctx.exit(examine(deep=deep, as_json=as_json))
