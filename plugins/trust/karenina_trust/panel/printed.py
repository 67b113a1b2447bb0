"""What `karenina panel` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karenina_cli.output import Part, Table, own_stdout, print_found
from karenina_cli.summary import listing

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.plugin.application import Karenina

from ..judges.rates import rate_of_rows, shown
from ..labels.file import verdicts_of_people
from .panel import Panel, Verdicts, panel_of
from .votes import read_ballot


def run(paths: Sequence[Path], labels: Path | None, *, as_json: bool) -> int:
    """Returns the exit code. Raises BenchmarkError and ConfigError."""
    with own_stdout() as out:
        people = verdicts_of_people(labels, paths) if labels is not None else None
        panel = panel_of(read_ballot(paths, Karenina.installed()), people)
        if people is not None and not panel.labels:
            what = f"no label in {labels} is of an answer in these runs; give the runs that were labelled"
            raise ConfigError([Problem("--labels", what)])
        print_found(panel.document(), _parts(panel), out, as_json=as_json)
    return 0


def _parts(panel: Panel) -> list[Part]:
    ballot, everybody = panel.ballot, panel.everybody
    rows = [
        (
            judge,
            *_rates(panel, panel.member(place)),
            f"{everybody.sensitivity[place]:.2f}",
            f"{everybody.specificity[place]:.2f}",
        )
        for place, judge in enumerate(ballot.judges)
    ]
    rows += [
        ("majority", *_rates(panel, panel.majority), "", ""),
        ("weighted by reliability", *_rates(panel, panel.weighted.verdicts), "", ""),
    ]
    columns = ("judge", "passes", "right" if panel.labels else "", "sensitivity", "specificity")
    ties = sum(verdict is None for verdict in panel.majority)
    labelled = f", {panel.labels} of them labelled by people" if panel.labels else ""
    return [
        f"{plural(len(ballot.judges), 'judge')}, {plural(len(ballot.items), 'answer')}{labelled}",
        "",
        Table(columns, rows, "Judges, and all together; sensitivity and specificity are estimated without labels"),
        *([f"{plural(ties, 'answer')} without a majority"] if ties else []),
        _votes(panel),
        listing("Warnings", [(warning,) for warning in panel.warnings]),
    ]


def _rates(panel: Panel, verdicts: Verdicts) -> tuple[str, str]:
    rows = zip(panel.ballot.items, verdicts, strict=True)
    passes = rate_of_rows((item.question, verdict) for item, verdict in rows if verdict is not None)
    return shown(passes), shown(panel.accuracy(verdicts)) if panel.labels else ""


def _votes(panel: Panel) -> str:
    judges, effective = len(panel.kept), panel.effective
    if effective is None:
        return "effective votes: unknown, as no two judges have errors to compare"
    against = "" if panel.labels else " at most, as errors that most judges share cannot be seen without labels"
    return f"effective votes: {effective:.1f} of {judges}{against} (errors correlate by {panel.correlation:.2f})"
