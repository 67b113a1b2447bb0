"""`karenina plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.options import estimate_options, json_option, run_options, sink_option
from ..options.sections import examples


@click.command(
    short_help="Show which stages would run, and why the others would not.",
    epilog=examples("karenina plan --with abstention", "karenina plan questions.jsonld --config karenina.toml"),
)
@click.argument("benchmark", type=click.Path(path_type=Path), required=False)
@run_options
@sink_option("Also check whether this sink is installed.")
@estimate_options("a run of BENCHMARK with the configured models")
@json_option
@click.pass_context
def command(ctx: click.Context, /, benchmark: Path | None, **options: Any) -> None:
    """Show which stages would run, in which order, and why the others would not. No model is called.

    With a BENCHMARK, also which of its questions would run, and one plan for every combination of rubric traits.
    Adapters of configured models and sinks that are not installed are named too. Exit code 1: the plan could not run.
    Only `verify` checks whether models answer and whether keys and files exist.
    """
    from ..estimating import check_estimate, plan_estimate
    from ..planning import plan

    check_estimate(options)
    ctx.exit(plan_estimate(benchmark, options) if options["estimate"] else plan(benchmark, options))
