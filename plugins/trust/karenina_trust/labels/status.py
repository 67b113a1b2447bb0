"""How many labels there are, and how much narrower intervals would be with more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karenina_core.errors import ConfigError

from ..certificates.readings import field_check
from ..certificates.rows import LEAST_LABELS, row_of
from ..certificates.samples import beside, subjects
from .answers import Answer
from .file import LabelFile, is_drawn
from .templates import Templates

__all__ = ["status_of"]


def status_of(file: LabelFile, answers: Sequence[Answer], run: Path, benchmark: Path | None = None) -> dict[str, Any]:
    """`{"strata": [...], "precision": [...], "notes": [...]}`: answers drawn and labelled in each stratum, and of each
    target the half width of the recommended interval, now and with more labels.

    With n labels, a half width goes with the root of 1/n; the part that comes from the answers without a label does not
    shrink, so that this is the least that is reached.
    """
    labelled = {label.item for label in file.labels if label.value is not None}
    drawn = Counter(one.stratum for one in file.plan.items)
    done = Counter(one.stratum for one in file.plan.items if one.item in labelled)
    strata = [
        {"stratum": name, "answers": size, "drawn": drawn[name], "labelled": done[name]}
        for name, size in file.plan.strata.items()
    ]
    precision, notes = [], []
    check = field_check(Templates(run, benchmark))
    for target, judge in subjects(file, answers):
        try:
            row = row_of(beside(file, answers, target, judge, check)[0], drawn=is_drawn(file), agreed=False)
        except ConfigError as error:  # a reading cannot be checked
            notes.append(f"{target}, judged by {judge}: {error}")
            continue
        if (best := row.certified) is None or best.interval is None:
            notes.append(f"{target}, judged by {judge}: {row.reason}")
            continue
        half = (best.interval.high - best.interval.low) / 2
        sizes = [size for size in (2 * row.labels, 4 * row.labels) if size <= row.items] or [row.items]
        gains = {str(size): half * math.sqrt(row.labels / size) for size in sizes}
        precision.append({"target": target, "judge": judge, "labels": row.labels, "half_width": half, "with": gains})
    if not labelled:
        notes.append(f"nothing is labelled yet; a certificate needs {LEAST_LABELS} labels at least")
    return {"strata": strata, "precision": precision, "notes": notes, "annotators": file.annotators}
