"""`karenina benchmark audit`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import FILE, json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="Look for faulty questions, templates and expected values.",
    epilog=examples(
        "karenina benchmark audit questions.jsonld",
        "karenina benchmark audit questions.jsonld --run runs/first --strict",
    ),
)
@click.argument("benchmark", type=FILE)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="DIR",
    type=FILE,
    help="A run of this benchmark, or a results.jsonl: the answers of its models are checked, too. Repeatable.",
)
@click.option("--trust", is_flag=True, help="Run this file's Python templates in this process, to check them too.")
@click.option("--strict", is_flag=True, help="Exit with 4 if an item is a fault or suspect.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SHEET",
    help="Write the benchmark to this .xlsx, .csv, .tsv or .jsonl file, with a column audit.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    benchmark: Path,
    runs: tuple[Path, ...],
    trust: bool,
    strict: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """List the items of BENCHMARK that should be checked, worst first, with reasons.

    It looks for duplicates, answers in questions, templates that contradict the reference answer, refuse their own
    expected values or accept anything, and fields on which no verdict depends. With --run it also looks for items that
    all models pass or none does, items that weaker models pass more often, and items whose expected value the strong
    models unanimously contradict. No model is called.

    fault: wrong as it is written. suspect: probably wrong. note: perhaps intended.
    """
    from .printed import print_audit

    ctx.exit(print_audit(benchmark, runs, trust=trust, strict=strict, output=output, as_json=as_json))
