"""`karenina trust`: whose code may run in karenina's own process, with all rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.sections import examples

FILE = click.argument("benchmark", type=click.Path(path_type=Path))


@click.group(short_help="Trust the code of a benchmark file, or see what it is.")
def command() -> None:
    """Trust the code of a benchmark file, or see what it is.

    Trusted code runs in karenina's own process, with all your rights, in each of your runs, as with --trust. Exactly
    this code (its SHA-256) is trusted; any change of it ends the trust. It applies to you on this machine, and is kept
    in your data directory.
    """


@command.command(
    short_help="Show the code of a file, and what has changed since it was trusted.",
    epilog=examples("karenina trust show questions.jsonld", "karenina trust show questions.jsonld --code"),
)
@FILE
@click.option("--code", is_flag=True, help="Print all of the code.")
def show(benchmark: Path, **options: Any) -> None:
    """Show the code in BENCHMARK: how much there is, what it imports, whether it is trusted, and what has changed since
    this file, or a benchmark of its name, was last trusted. None of it is executed."""
    from ..trusting import show as run

    run(benchmark, **options)


@command.command(
    short_help="Trust the code of a file as it is now.",
    epilog=examples("karenina trust add questions.jsonld", "karenina trust add shared/questions.jsonld"),
)
@FILE
def add(benchmark: Path) -> None:
    """Trust the code of BENCHMARK as it is now."""
    from ..trusting import add as run

    run(benchmark)


@command.command(
    short_help="Stop trusting a file.",
    epilog=examples("karenina trust remove questions.jsonld", "karenina trust remove shared/questions.jsonld"),
)
@FILE
def remove(benchmark: Path) -> None:
    """Stop trusting the code of BENCHMARK, as it is now and as it was. The file need not exist any more."""
    from ..trusting import remove as run

    run(benchmark)
