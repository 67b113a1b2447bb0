"""What `karenina judge check` does and prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from karenina_cli.estimating import print_estimate
from karenina_cli.output import Part, Table, inline, own_stdout, print_found
from karenina_cli.summary import listing

from karenina_core.errors import plural

from ..judges.begin import Begun, begun
from ..judges.rates import shown
from ..judges.running import gate_code, judged
from ..judges.trials import Trial, trial_config, trial_run
from .cases import check_trials
from .check import Check, checks
from .kept import check_beside, keep

MOST_SHOWN = 20
"""Misreadings that people are shown; `--json` has all. Chosen: they fit on a screen."""


def run(path: Path, options: Mapping[str, Any]) -> int:
    """Have the answers judged, and print what was misread. Returns the exit code."""
    with own_stdout() as out:
        start = begun(path, options, partial(check_trials, wrong=options["wrong"]))
        tried = trial_run(
            start.trials, start.benchmark, trial_config(start.config, repeats=options["repeats"]), start.app
        )
        if options["beside"] is not None:
            judges_of = tried.prepared.config.parsing_models
            questions = {trial.question.id: trial.question for trial in start.trials}.values()
            check_beside(options["beside"], questions, (str(model.identity) for model in judges_of))
        if options["estimate"]:
            return print_estimate(tried.prepared, options, out)
        found = judged(tried, options, f"check-{path.stem}")
        judges = checks(start.trials, found.results)
        document = {
            "benchmark": start.benchmark.name,
            "run_dir": str(found.directory),
            "judges": [check.document() for check in judges],
            "left_out": dict(start.left_out),
        }
        if options["beside"] is not None:
            keep(options["beside"], document)
        print_found(document, _parts(start, judges, found.directory), out, as_json=options["as_json"])
    rates = ((check.judge, check.misread.value) for check in judges)
    gate = gate_code(rates, options["max_misread"], "--max-misread", "of the fields are misread")
    return max(found.code, gate)


def _parts(start: Begun[Trial], judges: Sequence[Check], directory: Path) -> list[Part]:
    parts: list[Part] = [f"{start.benchmark.name}: {plural(start.tried, 'question')} tried"]
    for check in judges:
        parts += _judge(check)
    parts.append(listing("Questions left out", list(start.left_out.items())))
    return [*parts, f"The run: {directory}"]


def _judge(check: Check) -> list[Part]:
    kinds = [(name, shown(found), str(found.n)) for name, found in check.by("kind")]
    fields = [(*names, shown(found), str(found.n)) for names, found in check.by("question", "field") if found.value]
    wrong = [reading for reading in check.readings if reading.problem]
    rows = [
        (one.question, one.field, one.trial, one.problem, inline("" if one.extracted is None else one.extracted, 80))
        for one in wrong[:MOST_SHOWN]
    ]
    parts: list[Part] = [
        "",
        f"Judge {check.judge}: {plural(check.trials, 'answer')} read"
        + (f", {check.errors} of them without a usable reply" if check.errors else ""),
        f"misread    {shown(check.misread)} of {plural(len(check.readings), 'field')}",
    ]
    if check.consistent is not None:
        parts.append(f"the same when judged again    {shown(check.consistent)} of {check.consistent.n}")
    parts += [
        Table(("kind of answer", "misread", "fields"), kinds, "By kind"),
        Table(("question", "field", "misread", "readings"), fields, "Fields that are misread"),
        Table(("question", "field", "answer", "how", "extracted"), rows, "Misreadings"),
    ]
    if len(wrong) > MOST_SHOWN:
        parts.append(f"{len(wrong) - MOST_SHOWN} more misreadings: --json has all of them")
    return parts
