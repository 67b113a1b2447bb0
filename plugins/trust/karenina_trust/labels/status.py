"""How many labels there are, and how much narrower intervals would be with more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from karenina_compare.statistics.inputs import StatisticsError

from karenina_core.errors import ConfigError

from ..certificates.readings import FieldCheck
from ..certificates.rows import Row, row_of
from ..certificates.samples import Beside, beside, subjects
from ..planning import LEAST, Design, observed
from .answers import VERDICT, Answer
from .file import LabelFile, is_drawn
from .templates import Templates

__all__ = ["status_of"]


def status_of(file: LabelFile, answers: Sequence[Answer], run: Path, benchmark: Path | None = None) -> dict[str, Any]:
    """`{"strata": [...], "labels": [...], "precision": [...], "notes": [...]}`: answers drawn and labelled in each
    stratum, labels of each annotator and target, and of each target the half width of the recommended interval, now and
    with twice and four times as many labels; see `_narrower`.
    """
    labelled = {label.item for label in file.labels if label.value is not None}
    drawn = Counter(one.stratum for one in file.plan.items)
    done = Counter(one.stratum for one in file.plan.items if one.item in labelled)
    strata = [
        {"stratum": name, "answers": size, "drawn": drawn[name], "labelled": done[name]}
        for name, size in file.plan.strata.items()
    ]
    precision, notes = [], []
    check = FieldCheck(Templates(run, benchmark))
    for target, judge in subjects(file, answers):
        try:
            found = beside(file, answers, target, judge, check)[0]
            row = row_of(found, drawn=is_drawn(file), agreed=False)
        except ConfigError as error:  # a reading cannot be checked
            notes.append(f"{target}, judged by {judge}: {error}")
            continue
        if (best := row.certified) is None or best.interval is None:
            notes.append(f"{target}, judged by {judge}: {row.reason}")
            continue
        half = (best.interval.high - best.interval.low) / 2
        sizes = [size for size in (2 * row.labels, 4 * row.labels) if size <= row.items]
        sizes = sizes or [row.items] * (row.labels < row.items)
        narrower = _narrower(row, found, file.plan.by)
        gains = {str(size): half * narrower(size) for size in sizes}
        precision.append({"target": target, "judge": judge, "labels": row.labels, "half_width": half, "with": gains})
    if not labelled:
        notes.append(f"nothing is labelled yet; a certificate needs {LEAST} labels at least")
    counts = Counter((label.annotator, label.target) for label in file.labels if label.value is not None)
    rows = [{"annotator": who, "target": target, "labels": n} for (who, target), n in sorted(counts.items())]
    return {"strata": strata, "labels": rows, "precision": precision, "notes": notes, "annotators": file.annotators}


def _narrower(row: Row, found: Beside, by: Sequence[str]) -> Callable[[int], float]:
    """What an interval with so many labels is, as a share of the one that there is.

    Of passes and failures, as they are planned (`karenina_trust.planning`) for the judge that the labels show. Of
    scores, and where the judge has nothing to add, by the root of the number of labels.
    """
    people = [mean if (mean := found.mean(place)) in (0, 1) else None for place in range(len(found.ids))]
    design: Design = "by outcome" if "outcome" in by and found.target == VERDICT else "random"
    if (row.recommended != "people" or design == "by outcome") and set(found.said) <= {0.0, 1.0}:
        with suppress(StatisticsError):  # too few labels to tell how good the judge is
            known = observed(
                [said == 1 for said in found.said], [None if p is None else p == 1 for p in people], found.questions
            )
            now = known.width(row.labels, design)
            return lambda size: known.width(size, design) / now
    return lambda size: math.sqrt(row.labels / size)
