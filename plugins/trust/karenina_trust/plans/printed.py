"""What `karenina judge labels` does and prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from karenina_cli.exits import GATE_FAILED, OK
from karenina_cli.output import Part, Table, own_stdout, print_found
from karenina_cli.summary import listing
from karenina_compare.statistics.inputs import StatisticsError
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.rates import DECIDED, is_due

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.result import VerificationResult

from ..labels.answers import answer_id
from ..labels.file import verdicts_of_people
from ..planning import Design, Situation, assumed, observed

TRIED = (0.7, 0.8, 0.9, 0.95)
"""Sensitivities and specificities that are assumed where nothing is known of a judge: from weak to good ones. Chosen:
they show how much hangs on it."""
DESIGNS: Mapping[Design, str] = {
    "people": "labels alone",
    "random": "with the judge, drawn at random",
    "by outcome": "with the judge, by outcome",
}


@frozen(kw_only=True)
class Row:
    """What one judge of the run needs, if it is as good as that."""

    judge: str
    basis: str
    """Where it is known from how good the judge is."""
    situation: Situation
    labels: Mapping[str, int | None]
    """By design; None: all labels do not reach the width."""
    narrowest: Mapping[str, float]
    """The width with every answer labelled, by design."""

    def document(self) -> dict[str, Any]:
        own = self.situation
        about = {"rate": own.rate, "accuracy": own.accuracy, "explained": own.explained}
        limit = {"no_better_than_the_model": own.no_better_than_the_model}
        shown = {"labels": dict(self.labels), "narrowest": dict(self.narrowest)}
        return {"judge": self.judge, "basis": self.basis, **asdict(own), **about, **limit, **shown}


def plan(path: Path, options: Mapping[str, Any]) -> int:
    """Returns the exit code. Raises BenchmarkError and ConfigError."""
    with own_stdout() as out:
        results = VerificationResultSet.load(path, Karenina.installed())
        people = None if options["labels"] is None else verdicts_of_people(options["labels"], [path])
        rows: list[Row] = []
        impossible: list[tuple[str, str]] = []
        for judge, verdicts in _verdicts(results, options["model"] or "", options["judge"] or ""):
            for basis, make in _bases(verdicts, people, options):
                try:
                    rows.append(_row(judge, basis, make(), options["width"]))
                except StatisticsError as error:
                    impossible.append((f"{judge}, {basis}", str(error)))
        if not rows:
            what = "; ".join(f"{name}: {why}" for name, why in impossible)
            raise ConfigError([Problem("run", what or "it has no verdict of such a judge on such answers")])
        document = {"width": options["width"], "level": 0.95, "rows": [row.document() for row in rows]}
        print_found(document, _parts(path, rows, impossible, options["width"]), out, as_json=options["as_json"])
    return OK if any(n is not None for row in rows for n in row.labels.values()) else GATE_FAILED


Verdicts = Sequence[tuple[str, str, bool]]
"""Of each answer: its id, its question, and whether the judge passes it."""


def _verdicts(results: Iterable[VerificationResult], model: str, judge: str) -> Iterator[tuple[str, Verdicts]]:
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for result in results:
        about = result.metadata
        chosen = model in about.answering_model and judge in about.parsing_model
        if chosen and is_due(about) and about.outcome in DECIDED:
            row = (answer_id(result), about.question_id, about.outcome == "passed")
            found.setdefault(about.parsing_model, []).append(row)
    yield from sorted(found.items())


def _bases(verdicts: Verdicts, people: Mapping[str, bool] | None, options: Mapping[str, Any]) -> Iterator[Any]:
    """`(basis, function)` of every situation that is looked at."""
    questions = [question for _, question, _ in verdicts]
    judge = [passed for _, _, passed in verdicts]
    if people is not None:
        labels = [people.get(item) for item, _, _ in verdicts]
        count = sum(label is not None for label in labels)
        yield f"{plural(count, 'label')}", lambda: observed(judge, labels, questions)
        return
    pairs = [(options["sensitivity"], options["specificity"])]
    if options["sensitivity"] is None:
        pairs = [(value, value) for value in TRIED]
    for sensitivity, specificity in pairs:
        basis = f"assumed: sensitivity {sensitivity:.2f}, specificity {specificity:.2f}"
        yield basis, lambda se=sensitivity, sp=specificity: assumed(judge, se, sp, questions)


def _row(judge: str, basis: str, situation: Situation, width: float) -> Row:
    return Row(
        judge=judge,
        basis=basis,
        situation=situation,
        labels={design: situation.labels(width, design) for design in DESIGNS},
        narrowest={design: situation.width(situation.items, design) for design in DESIGNS},
    )


def _parts(path: Path, rows: Sequence[Row], impossible: Sequence[tuple[str, str]], width: float) -> list[Part]:
    table, several = [], len({row.judge for row in rows}) > 1
    for row in rows:
        known, needed = row.situation, [_needed(row, design) for design in DESIGNS]
        names = (row.judge, row.basis) if several else (row.basis,)
        table.append((*names, f"{known.rate:.1%}", f"{known.accuracy:.1%}", *needed))
    columns = (*(("judge",) if several else ()), "how good it is", "rate", "agrees with people", *DESIGNS.values())
    first = rows[0].situation
    parts: list[Part] = [
        f"{plural(first.items, 'answer')} to {plural(first.questions, 'question')}; labels for an interval of 95 % "
        f"with the width {width:g}",
        "",
        Table(columns, table, "" if several else f"With the judge {rows[0].judge}"),
        *_limits(rows),
        listing("Left out", list(impossible)),
    ]
    if line := _line(path, rows):
        parts.append(f"To draw them, type: {line}")
    return parts


def _needed(row: Row, design: Design) -> str:
    count = row.labels[design]
    return str(count) if count is not None else f"never (all: {row.narrowest[design]:.3f})"


def _limits(rows: Sequence[Row]) -> Iterator[str]:
    """What a judge cannot do, however it is used."""
    for row in rows:
        if row.situation.no_better_than_the_model:
            yield (
                f"{row.judge} ({row.basis}) is right no more often than the judged model: no method saves more than "
                f"half of the labels with it (arXiv:2410.13341); this one explains {row.situation.explained:.0%}."
            )


def _line(path: Path, rows: Sequence[Row]) -> str:
    """The command for the design with the fewest labels, where what is known of the judge is no assumption, or one
    alone."""
    if len({row.basis for row in rows}) > 1 or len(rows) > 1:
        return ""
    needed = {design: count for design, count in rows[0].labels.items() if count is not None}
    if not needed:
        return ""
    design = min(needed, key=lambda name: (needed[name], name == "by outcome"))
    more = " --stratify outcome" if design == "by outcome" else ""
    return f"karenina label {shlex.quote(str(path))} --n {needed[design]}{more} --annotator NAME"
