"""`karenina benchmark draft`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from karenina_cli.options.options import FILE, configuration_options, json_option, limit_options, one_model_options
from karenina_cli.options.sections import SECTIONS, examples
from karenina_cli.plugin_options import VerifyCommand


class DraftCommand(VerifyCommand):
    """With the options of packages, but those of answers that were recorded, which are no drafts, and gates of runs."""

    without = frozenset({"--manual-traces", *SECTIONS["Gates"]})


@click.command(
    cls=DraftCommand,
    short_help="Have a model draft templates from reference answers.",
    epilog=examples(
        "karenina benchmark draft q.csv -o q.jsonld --model openai/gpt-4.1 --estimate",
        "karenina benchmark draft q.csv -o q.jsonld --model NAME --sheet review.csv",
    ),
)
@click.argument("benchmark", type=FILE)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    help="The benchmark to write; an existing file is replaced.",
)
@one_model_options
@configuration_options
@click.option(
    "--questions",
    metavar="0-5,7|ID,...",
    help="Only these: positions counted from 0, inclusive ranges, or ids.",
)
@click.option("--estimate", is_flag=True, help="Only estimate the calls, tokens and cost; no call is made.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder that keeps every reply, so that none is paid for twice. Default: FILE.drafts.",
)
@click.option(
    "--sheet",
    type=FILE,
    metavar="FILE",
    help="Also write the sheet for reviewers, once all drafts are done: .xlsx, .csv, .tsv or .jsonl; see "
    "`karenina benchmark review`.",
)
@limit_options("the drafts may cost, including those of earlier commands with this journal")
@click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, benchmark: Path, **options: Any) -> None:
    """Have a model draft a template for every question of BENCHMARK that has a reference answer and no template.

    BENCHMARK may be a sheet. Code proves every draft, and the findings are shown to the model once. No draft is
    finished: a person accepts it with `karenina benchmark review`. Every reply is kept before it is used: run the same
    command again to continue after an interruption; nothing is paid for twice.

    Exit codes: 0 every draft is proven, 3 some questions could not be drafted (an error, or the budget), 4 some drafts
    are not proven, 1 could not run, 2 wrong usage, 74 the journal cannot be written, 130 interrupted.
    """
    from karenina_cli.root import ARGUMENTS

    from .printed import run

    typed = shlex.join(["karenina", *ctx.meta.get(ARGUMENTS, ())])
    ctx.exit(run(benchmark, {**options, "typed": typed}))
