"""`karenina verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options.gates import gate_options
from ..options.options import FILE, estimate_options, models_options, replicates_option, run_options, work_options
from ..options.sections import examples
from ..plugin_options import VerifyCommand
from ..root import ARGUMENTS


@click.command(
    cls=VerifyCommand,
    short_help="Run a benchmark.",
    epilog=examples(
        "karenina verify questions.jsonld --model openai/gpt-4.1-mini",
        "karenina verify questions.jsonld --config karenina.toml --min-pass-rate 0.9",
        "karenina verify questions.jsonld --questions 0-4 \\",
        "    --answering-model openai/gpt-4.1-mini --parsing-model openai/gpt-4.1",
    ),
)
@click.argument("benchmark", type=FILE)
@models_options
@run_options
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Which questions: positions in the file, counted from 0, inclusive ranges, or ids. An id wins over a "
    "position that looks the same.",
)
@replicates_option
@click.option(
    "--out",
    type=FILE,
    metavar="DIR",
    help="The run directory; it must be empty. Default: karenina-runs/FILE-TIME.",
)
@click.option(
    "--workspace-root",
    type=FILE,
    metavar="DIR",
    help="The folder that the questions' workspace_path is relative to. Agents work in copies made beneath it.",
)
@click.option(
    "--reuse",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="The directory of another run: calls that were made there are not made again. Repeatable.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR|FILE",
    help="Take the answers of another run (its directory or a file of its results), and only judge them. Missing "
    "answers are listed before the first call.",
)
@click.option("--ask-missing", is_flag=True, help="Ask the models for answers that are missing from --answers.")
@click.option("--only-answered", is_flag=True, help="Leave out questions for which --answers lacks an answer.")
@click.option(
    "--parsed",
    is_flag=True,
    help="Also take what the judges have extracted from these answers, without calling them again.",
)
@click.option(
    "--export",
    "exports",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Also write all results to this file when the run is done, in the format of its suffix (.json, .csv, "
    ".parquet, ...). An existing file is replaced. Repeatable.",
)
@click.option(
    "--canaries",
    is_flag=True,
    default=None,
    help="Also give every judge wrong answers that tell it to accept them; the run fails if a judge obeys more often "
    "than run.canary_threshold allows.",
)
@estimate_options("the run")
@work_options(spent="the run may spend", sinks="Also write results there.")
@gate_options
@click.pass_context
def command(ctx: click.Context, /, benchmark: Path, **options: Any) -> None:
    """Ask models the questions of a BENCHMARK, judge their answers, and keep the results in a run directory.

    A flag wins over the environment (KARENINA_CONCURRENCY and the like), the environment over the file of --config,
    that over the preset, and the preset over the defaults. The interface and address options apply to the models named
    by --model, --answering-model or --parsing-model, else to those of the configuration.

    Exit codes: 0 every item has an outcome, 3 some items ended in an error or every score of a type of trait failed,
    1 could not run, 2 wrong usage, 4 a gate (--min-..., --must-pass, --max-errors) failed or a judge obeyed more
    canaries than allowed, 74 the run directory cannot be written, 130 interrupted.
    """
    from ..verification import verify

    ctx.exit(verify(benchmark, options, ctx.meta[ARGUMENTS]))
