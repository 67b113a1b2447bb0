"""A certificate of a run: labels beside what every judge says, checked for what they are worth."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen
from karenina_compare.statistics.inputs import StatisticsError
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError
from karenina_core.values.identity import canonical_json

from ..estimators import AltTest, alt_test
from ..labels.answers import LENGTH, TRAIT, VERDICT, Answer, answers_of, judged_value
from ..labels.binding import binding_of, listed, stale
from ..labels.file import LabelFile, is_drawn
from ..labels.plan import population_of, strata_of
from ..labels.templates import Templates
from .readings import FieldCheck, Finding, findings
from .rows import Row, row_of
from .samples import Beside, beside, subjects

__all__ = ["Certificate", "Trial", "certify", "check_labels", "results_digest"]

ALL_FIELDS = "all fields"


@frozen(kw_only=True)
class Trial:
    """The alternative annotator test of one judge and target, or why there is none."""

    target: str
    judge: str
    annotators: tuple[str, ...]
    test: AltTest | None
    note: str = ""


@frozen(kw_only=True)
class Certificate:
    """What labels vouch for, and what that holds for."""

    run_id: str
    binding: dict[str, object]
    results: str
    """A digest of the answers and of what judges say of them."""
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...] = ()
    trials: tuple[Trial, ...] = ()
    unsure: int = 0
    """Labels that say that a person cannot say."""

    @property
    def certified(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.recommended)


def check_labels(file: LabelFile, run: Path, answers: Sequence[Answer]) -> None:
    """Raises ConfigError where the labels are of another judge, prompt, template or rubric, or of other answers."""
    if changed := stale(file.binding, binding_of(run)):
        raise ConfigError(
            f"the labels were made with another judge, prompt, template or rubric: {listed(changed)}; "
            "draw answers of this run and label them (karenina label RUN --labels FILE)"
        )
    if file.plan.population != population_of(answers):
        raise ConfigError(
            "the answers of the run have changed since the labelled ones were drawn; draw again, in a new file "
            "(karenina label RUN --labels FILE)"
        )
    strata = strata_of(answers, file.plan.by, file.judges) if is_drawn(file) else {}
    if Counter(strata.values()) != Counter(file.plan.strata) or any(
        strata[one.item] != one.stratum for one in file.plan.items
    ):
        raise ConfigError(
            "verdicts have changed since the answers were drawn, so they are in other strata now; draw again, in a new "
            "file (karenina label RUN --labels FILE)"
        )


def certify(
    results: VerificationResultSet, run: Path, file: LabelFile, *, benchmark: Path | None = None, margin: float = 0.2
) -> Certificate:
    """Every target that has labels, for every judge: of all models together, and of each where there are several.

    `benchmark` is the file of the run's benchmark where it is elsewhere now; it is read where a person read a field
    otherwise than a judge. `margin` is that of the alternative annotator test. Raises ConfigError for labels that do
    not belong to the run, for a file without labels, and where a reading cannot be checked.
    """
    answers = answers_of(results)
    check_labels(file, run, answers)
    if not file.targets:
        raise ConfigError(f"nothing is labelled yet; type: karenina label {shlex.quote(str(run))} --annotator NAME")
    check, drawn = FieldCheck(Templates(run, benchmark)), is_drawn(file)
    rows: list[Row] = []
    trials: list[Trial] = []
    fields: dict[str, list[tuple[Beside, list[str]]]] = {}
    for target, judge in subjects(file, answers):
        found, models = beside(file, answers, target, judge, check)
        rows += _rows(found, models, drawn=drawn)
        trials += [_trial(found, margin)] if len(found.annotators) >= 3 else []
        if not target.startswith(TRAIT) and target != VERDICT:
            fields.setdefault(judge, []).append((found, models))
    for judge, several in fields.items():
        if len(several) > 1:
            rows += _rows(*_together(judge, several), drawn=drawn)
    return Certificate(
        run_id=file.run_id,
        binding=binding_of(run),
        results=results_digest(answers),
        rows=tuple(rows),
        findings=tuple(findings(file, answers, check)),
        trials=tuple(trials),
        unsure=sum(label.value is None for label in file.labels),
    )


def _rows(found: Beside, models: list[str], *, drawn: bool) -> list[Row]:
    """Of all models together, then of each."""
    names = sorted(set(models))
    each = [row_of(found.of_model(name, models), drawn=drawn) for name in names] if len(names) > 1 else []
    whole = row_of(found, drawn=drawn)
    return [evolve(whole, model=names[0]) if len(names) == 1 else whole, *each]


def _together(judge: str, several: Sequence[tuple[Beside, list[str]]]) -> tuple[Beside, list[str]]:
    """All fields as one target: a field of an answer is an item, and those of a question count together."""
    names = ("ids", "said", "people", "questions", "strata")
    parts = {name: tuple(value for found, _ in several for value in getattr(found, name)) for name in names}
    whole = Beside(target=ALL_FIELDS, judge=judge, model=None, **parts)
    return whole, [model for _, models in several for model in models]


def _trial(found: Beside, margin: float) -> Trial:
    names = tuple(found.annotators)
    rows = [[found.people[place].get(name) for name in names] for place in found.labelled]
    said = [found.said[place] for place in found.labelled]
    every: list[list[float | str | None]] = [list(said), *rows]
    values = sorted({value for row in every for value in row if value is not None}, key=str)
    scores = found.numeric and not set(values) <= {0.0, 1.0}
    number = {value: float(value) if scores else float(place) for place, value in enumerate(values)}
    try:
        test = alt_test(
            [number[value] for value in said],
            [[None if value is None else number[value] for value in row] for row in rows],
            scale="interval" if scores else "nominal",
            margin=margin,
        )
    except StatisticsError as error:
        return Trial(target=found.target, judge=found.judge, annotators=names, test=None, note=str(error))
    return Trial(target=found.target, judge=found.judge, annotators=names, test=test)


def results_digest(answers: Sequence[Answer]) -> str:
    """Of the answers, and of the verdict and fields that every judge gave: certified numbers are about these."""
    rows = [
        [answer.id, judge, judged_value(result, VERDICT), _fields(result)]
        for answer in answers
        for judge, result in sorted(answer.judged.items())
    ]
    return hashlib.sha256(canonical_json(rows).encode("ascii")).hexdigest()[:LENGTH]


def _fields(result: object) -> dict[str, object]:
    template = getattr(result, "template", None)
    return dict(template.field_results or {}) if template is not None else {}
