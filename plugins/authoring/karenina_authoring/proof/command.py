"""`karenina benchmark prove`, and what `karenina benchmark validate` says of proofs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples

from karenina_core.plugin.command_line import Section

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina
    from karenina_core.values.benchmark import BenchmarkData
    from karenina_core.values.config import CodePolicy


@click.command(
    short_help="Prove that templates accept what is right and reject what is wrong.",
    epilog=examples(
        "karenina benchmark prove questions.jsonld", "karenina benchmark prove questions.jsonld --questions 0-9 --write"
    ),
)
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--trust", is_flag=True, help="Run this file's Python templates in this process, to prove them too.")
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Only these: positions counted from 0, inclusive ranges, or ids.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Store the figures in the file, and mark questions whose template leaks or cannot fail as not finished.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, benchmark: Path, **options: Any) -> None:
    """Prove every template of BENCHMARK: it has to accept its own expected values, reject values that are wrong in
    sign, order of magnitude, unit, by one, by negation, by a neighbouring name or a missing part, accept the right
    values in other forms, and give nothing away. No model is called.

    Exit code 1: a template cannot be used, or the file cannot be written. 4: a template is not proven, or was not
    checked, or no question has one.
    """
    from .report import run

    ctx.exit(run(benchmark, options))


def section(app: Karenina, benchmark: BenchmarkData, ids: Sequence[str], policy: CodePolicy) -> Section:
    """What `karenina benchmark validate` says of the proofs of these questions."""
    from .report import proof_section

    return proof_section(app, benchmark, ids, policy)
