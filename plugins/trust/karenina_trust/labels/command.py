"""`karenina label`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from karenina_cli.options.options import COUNT, FILE, benchmark_option, json_option, run_argument
from karenina_cli.options.sections import examples

FEATURES = ("outcome", "model", "field", "disagreement")
KINDS = ("verdict", "fields", "traits")


@click.command(
    short_help="Have people label answers of a run, blind.",
    epilog=examples(
        "karenina label runs/first --n 50 --annotator anna",
        "karenina label runs/first --annotator anna --stratify outcome --export a.csv",
        "karenina label runs/first --status",
    ),
)
@run_argument
@click.option("--labels", type=FILE, metavar="FILE", help="The file of labels. Default: labels.json in DIR.")
@click.option(
    "--n", "size", type=COUNT, metavar="N", help="How many answers are drawn. Default: 50; a larger number draws more."
)
@click.option(
    "--stratify",
    "by",
    multiple=True,
    type=click.Choice(FEATURES),
    help="Draw equally many of each kind: by outcome, model, first wrong field, or whether judges disagree. Rates "
    "still weight each kind by its share. Repeatable. Default: all answers alike.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The seed of the draw. Default: 0.")
@click.option("--annotator", default="", metavar="NAME", help="Who labels.")
@click.option(
    "--what",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help=(
        "What is asked: whether the answer is right, what it says about each field, or its traits. Repeatable. "
        "Default: verdict."
    ),
)
@click.option("--export", "sheet", type=FILE, metavar="FILE", help="Write a sheet to fill in: .csv, .tsv or .xlsx.")
@click.option("--import", "filled", type=FILE, metavar="FILE", help="Read a sheet that was filled in.")
@click.option("--status", is_flag=True, help="Show what is labelled, and the precision that more labels would give.")
@benchmark_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, directory: Path, **options: Any) -> None:
    """Draw answers of the run in DIR at random and ask a person about them, one after the other. Neither the model nor
    the judges' verdicts are shown. q ends it; the same command continues.

    The plan of the draw is kept with the labels: who is in which stratum, and how likely it was to be drawn. A larger
    --n draws more by the same plan; karenina judge labels says how many a given width takes. Labels belong to these
    answers, this judge, its prompt, templates and rubric: karenina certify rejects them for others.

    Exit codes: 0 labelled, written or read, 1 the run, the file or the sheet cannot be read or does not fit, 2 wrong
    usage.
    """
    sheet, filled, status = options["sheet"], options["filled"], options["status"]
    if sum((sheet is not None, filled is not None, status)) > 1:
        raise click.UsageError("--export, --import and --status are three commands; give one", ctx)
    if options["as_json"] and not status:
        raise click.UsageError("--json belongs to --status", ctx)
    options["annotator"] = options["annotator"].strip()
    if not options["annotator"] and not status and filled is None:
        raise click.UsageError("say who labels: --annotator NAME", ctx)
    from karenina_core.errors import plural

    from .session import Labelling, Wanted

    work, kinds = Labelling(directory, options["labels"]), options["kinds"] or ("verdict",)
    if status:
        return work.print_status(kinds, options["benchmark"], as_json=options["as_json"])
    if filled is not None:
        click.echo(f"{plural(len(work.imported(filled, options['annotator'])), 'label')} read: {work.path}")
        return None
    names = ("size", "by", "seed", "annotator", "benchmark")
    wanted = Wanted(kinds=kinds, **{name: options[name] for name in names})
    if sheet is not None:
        click.echo(f"{plural(work.exported(sheet, wanted), 'answer')} to label: {sheet}")
    else:
        click.echo(f"{plural(work.asked(wanted), 'answer')} labelled: {work.path}")
    return None
