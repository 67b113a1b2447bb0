"""`karenina benchmark import` and `karenina benchmark export`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples
from karenina_cli.output import note, own_stdout, print_found

FILE = click.Path(path_type=Path, dir_okay=False)


def _mapping(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [value.rpartition("=") for value in values]
    for column, _, field in pairs:
        if not column or not field:
            raise click.BadParameter("write COLUMN=FIELD, such as Frage=question", ctx, parameter)
    return {column: field for column, _, field in pairs}


@click.command(
    "import",
    short_help="Make a benchmark of a table of questions.",
    epilog=examples(
        "karenina benchmark import questions.csv -o questions.jsonld",
        "karenina benchmark import fragen.xlsx -o new.jsonld --map Frage=question",
    ),
)
@click.argument("sheet", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The benchmark to write; an existing file is replaced.",
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="COLUMN=FIELD",
    callback=_mapping,
    help="The meaning of a column, if its name does not tell: id, question, answer, template, keywords, author, "
    "sources, "
    "notes, finished, custom; of the template's fields: field, type, description, expected, compare, tolerance, unit, "
    "aliases (of several fields, with a number: expected 2). Repeatable.",
)
@click.option("--sheet", "name", metavar="NAME", help="The sheet of a workbook. Default: the first one.")
@json_option
def import_command(sheet: Path, output: Path, columns: Mapping[str, str], name: str | None, as_json: bool) -> None:
    """Make a benchmark of FILE, a .csv, .tsv, .xlsx or .jsonl file with a row for each question.

    It prints how each column was read. Nothing in the file is executed: formulas are texts, or the values that were
    computed last.

    Exit codes: 0 written, 1 the file cannot be read (sheet, row and column of each problem are named), 2 wrong usage.
    """
    from karenina_runs.benchmark import Benchmark

    from . import SUFFIXES
    from .imported import import_parts

    if sheet.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"a sheet is a file with one of the suffixes {', '.join(SUFFIXES)}, not {sheet.name}.")
    with own_stdout() as out:
        benchmark = Benchmark.from_table(sheet, columns=columns, sheet=name)
        benchmark.save(output)
        for warning in benchmark.warnings:
            note(f"Warning: {warning}")
        targets = benchmark.metadata["table"]["columns"]
        ready = sum(question.template is not None for question in benchmark)
        document = {
            "file": str(output),
            "questions": len(benchmark),
            "with_template": ready,
            "columns": targets,
        }
        parts = import_parts(benchmark, ready, output)
        print_found(document, parts, out, as_json=as_json)


@click.command(
    "export",
    short_help="Write a benchmark as a table.",
    epilog=examples(
        "karenina benchmark export questions.jsonld -o questions.csv",
        "karenina benchmark export questions.jsonld -o questions.xlsx",
    ),
)
@click.argument("benchmark", metavar="BENCHMARK", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    help="A .xlsx, .csv, .tsv or .jsonl file; an existing one is replaced.",
)
def export_command(benchmark: Path, output: Path) -> None:
    """Write the questions of BENCHMARK as a table. A benchmark that came from a table gives the same table again.

    What has no column, such as a rubric, is in the column `karenina`; leave it as it is.

    Exit codes: 0 written, 1 the benchmark cannot be read or the file cannot be written, 2 wrong usage.
    """
    from karenina_runs.benchmark import Benchmark

    from . import SUFFIXES

    if output.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"a table is a file with one of the suffixes {', '.join(SUFFIXES)}.")
    loaded = Benchmark.load(benchmark)
    for warning in loaded.warnings:
        note(f"Warning: {warning}")
    click.echo(loaded.save(output))
