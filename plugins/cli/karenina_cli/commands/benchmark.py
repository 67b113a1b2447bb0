"""`karenina benchmark`: commands for authors of benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.options import json_option
from ..options.sections import examples
from ..root import Commands

BEGIN = (
    "for one that runs at once, type: karenina init my-benchmark; for one of your own sheet: "
    "karenina benchmark import questions.csv -o questions.jsonld"
)


@click.group(
    cls=Commands,
    points="karenina.commands.benchmark",
    elsewhere={
        **dict.fromkeys(("import", "export"), "karenina-tables"),
        **dict.fromkeys(("draft", "prove", "audit", "review"), "karenina-authoring"),
    },
    instead=dict.fromkeys(("new", "create", "init"), BEGIN),
    short_help="Make, check and share a benchmark.",
)
def command() -> None:
    """Make, check and share a benchmark."""


@click.command(
    short_help="Load every template and look for answers that it gives away.",
    epilog=examples(
        "karenina benchmark validate questions.jsonld",
        "karenina benchmark validate questions.jsonld --strict --questions 0-9",
    ),
)
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--trust", is_flag=True, help="Run this file's Python templates in this process, to check them too.")
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Only these: positions counted from 0, inclusive ranges, or ids.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 if a template gives its answer away or was not checked.")
@json_option
@click.pass_context
def validate(ctx: click.Context, /, benchmark: Path, **options: Any) -> None:
    """Load every template of BENCHMARK and look for expected answers that the judge could read in it.

    Also listed: questions without a template, questions that are not finished, what the loader could not use, and what
    other packages find: karenina-authoring says which templates are proven. No model is called, and without --trust no
    code of the benchmark is run in this process.

    Exit code 1: a template cannot be used, or traits clash. 4: with --strict, a template gives its answer away, was not
    checked, or does not meet what another package requires, or there is neither a template nor a trait.
    """
    from ..planning import validate as run
    from ..root import ARGUMENTS

    ctx.exit(run(benchmark, options, ctx.meta.get(ARGUMENTS, ("benchmark", "validate", str(benchmark)))))
