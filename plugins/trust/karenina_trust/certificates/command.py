"""`karenina certify`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import FILE, benchmark_option, json_option, run_argument
from karenina_cli.options.sections import examples


@click.command(
    short_help="Say what a judge's rates are worth, by labels of people.",
    epilog=examples(
        "karenina certify runs/first", "karenina certify runs/first --labels anna.json -o first-certificate.json"
    ),
)
@run_argument
@click.option("--labels", type=FILE, metavar="FILE", help="The file of labels. Default: labels.json in DIR.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="The certificate to write; an existing one is replaced. Default: certificate.json in DIR.",
)
@click.option(
    "--annotators",
    type=click.Choice(("experts", "skilled", "crowd")),
    default="experts",
    help="Who labelled: how far a judge may fall behind one of three or more annotators and still replace one (by 0.2, "
    "0.15 and 0.1). Default: experts.",
)
@benchmark_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    directory: Path,
    labels: Path | None,
    output: Path | None,
    annotators: str,
    benchmark: Path | None,
    as_json: bool,
) -> None:
    """Estimate what people would have said of all answers of the run in DIR, from the labels of some: by people alone,
    the judge alone, PPI, PPI++ and Rogan-Gladen, with intervals of 95 %, for the verdict, each field and each trait, of
    all models and of each. One is recommended, with the reason.

    Too few labels, or answers that were chosen by hand, certify nothing. Labels that were made with another judge,
    prompt, template or rubric are rejected.

    Exit codes: 0 something is certified, 1 nothing is, or the labels do not belong to the run.
    """
    from .printed import certified

    ctx.exit(certified(directory, labels, output, annotators, benchmark, as_json=as_json))
