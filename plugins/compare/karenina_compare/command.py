"""`karenina compare`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
from karenina_cli.options.gates import item_gate_options
from karenina_cli.options.options import RUN, json_option, settings_options
from karenina_cli.options.sections import examples


class Share(click.FloatRange):
    """A number from 0 to 1; what is no number is not in any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if found is not None and math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


SHARE = Share(0, 1)


@click.command(
    short_help="Compare two runs, question by question.",
    epilog=examples(
        "karenina compare runs/before runs/after", "karenina compare runs/before runs/after --fail-on-regression"
    ),
)
@click.argument("dir_a", metavar="DIR_A", type=RUN)
@click.argument("dir_b", metavar="[DIR_B]", type=RUN, required=False)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="pass_rate|trait:NAME",
    help="What is compared: pass_rate, answered_accuracy, trait:NAME, or trait:* for all traits. Repeatable. Default: "
    "pass_rate, and all traits if no verdicts are due.",
)
@click.option(
    "--models",
    multiple=True,
    metavar="A=B",
    help=(
        "Answering models to compare, by name or a part of it; A alone means the same model on both sides. "
        "Repeatable. Default: every model with itself."
    ),
)
@click.option("--judges", multiple=True, metavar="A=B", help="The same for parsing models.")
@click.option(
    "--cluster-by",
    metavar="keyword|FILE",
    help="Questions that belong together and are not independent: those with the same first keyword, keyword:PREFIX "
    "for the first keyword with this prefix, or a JSON or CSV file of question ids and groups.",
)
@click.option(
    "--correction",
    type=click.Choice(("holm", "benjamini-hochberg", "benjamini-yekutieli")),
    default="holm",
    help="How p-values are adjusted for all models and metrics together. holm (the default) bounds the chance of any "
    "false alarm, the others the share of false ones among all.",
)
@click.option("--alpha", type=Share(0, 1, min_open=True, max_open=True), default=0.05, help="Default: 0.05.")
@click.option(
    "--unchanged",
    is_flag=True,
    help="If items have changed between the runs, compare the others; otherwise such runs are rejected.",
)
@click.option(
    "--fail-on-regression",
    is_flag=True,
    help="Exit with 4 if B is significantly worse or loses significantly more answers to errors, or if this "
    "cannot be decided.",
)
@click.option(
    "--min-coverage", type=SHARE, metavar="X", help="Exit with 4 if a smaller share of the questions is compared."
)
@click.option("--min-pass-rate", type=SHARE, metavar="X", help="Exit with 4 if a model of B passes a smaller share.")
@click.option(
    "--max-drop",
    type=Share(0, None),
    metavar="X",
    help="Exit with 4 if B is worse by more than this in some row: a fraction for rates, points for scores.",
)
@item_gate_options
@settings_options(
    "A file of settings in TOML; [plugins.compare] says what happens to undecided gates.",
    "One setting, such as plugins.compare.undecided=warn. Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "markdown", "junit", "github")),
    help="Default: table. markdown: for a pull request; junit: JUnit XML; github: annotations of GitHub Actions.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the output to this file; stdout then shows the table.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    dir_a: Path,
    dir_b: Path | None,
    form: str | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare the run in DIR_B with the earlier one in DIR_A; with DIR_A alone, compare its models with each other.
    Each is a run directory or a results.jsonl.

    Questions are paired by id and parsing model. Runs between which items have changed are rejected, and the items
    named. Errors are never failures: questions that ended in one are counted, but not compared. --fail-on-regression,
    --max-drop and the options --min-..., --must-pass and --max-errors, which are about DIR_B alone, are gates; a gate
    that cannot be decided fails.

    Exit codes: 0 compared and every gate passed, 4 a gate failed, 1 a run cannot be read or nothing could be compared
    with DIR_B, 2 wrong usage.
    """
    if as_json and form is not None and output is None:
        raise click.UsageError("--json and --format both print on stdout; write the format to a file (-o FILE)", ctx)
    if dir_b is None and options["judges"]:
        raise click.UsageError("--judges says which parsing models of two runs belong together; give DIR_B", ctx)
    if dir_b is None and options["unchanged"]:
        raise click.UsageError("--unchanged is about items that changed from one run to another; give DIR_B", ctx)
    if dir_b is None and (options["fail_on_regression"] or options["max_drop"] is not None):
        raise click.UsageError("a regression needs two runs; give DIR_B", ctx)
    from .comparison.run import Output, print_comparison

    shown = Output(form=form or "table", file=output, as_json=as_json)
    ctx.exit(print_comparison(dir_a, dir_b, options, shown))
