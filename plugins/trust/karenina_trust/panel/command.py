"""`karenina panel`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.options import json_option
from karenina_cli.options.sections import examples


@click.command(
    short_help="See what several judges of the same answers say together.",
    epilog=examples("karenina panel runs/three-judges", "karenina panel runs/one runs/other --labels labels.json"),
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--labels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Labels of some of the answers, as `karenina label` keeps them; judges are then measured against them.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, /, runs: tuple[Path, ...], labels: Path | None, as_json: bool) -> None:
    """Combine the verdicts of several judges: of one RUN with several judges, or of runs of the same answers (`karenina
    verify --answers`).

    Beside the majority there are verdicts weighted by reliability (Dawid and Skene), which needs no labels; how many
    independent votes the panel is worth; judges that are inverted; and, with labels, whether the panel is worse than
    its best member. The order of the runs makes no difference.

    Exit codes: 0 done, 1 a run cannot be read, or no answer was judged by two judges, 2 wrong usage.
    """
    from .printed import run

    ctx.exit(run(runs, labels, as_json=as_json))
