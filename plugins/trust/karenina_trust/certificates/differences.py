"""Differences of certified rates: what people would say of one run and of another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.gates import SLACK, Gate
from karenina_runs.summaries.intervals import Interval, t_quantile

from karenina_core.errors import ConfigError
from karenina_core.plugin.command_line import Section

from .document import NAME as FILE
from .document import Certified, Held, read_certificate
from .gates import gates_of, out_of_date
from .plugin import NAME

if TYPE_CHECKING:
    from karenina_compare.comparison.values import Pair

    from karenina_core.plugin.application import Karenina

    from .settings import CertificateSettings

__all__ = ["Difference", "difference", "section"]

COLUMNS = ("target", "A", "B", "A certified", "B certified", "difference", "95 % interval")
DROP = "certified drop"


@frozen
class Difference:
    """What people would say of B, less what they would say of A."""

    value: float
    interval: Interval


def difference(a: Certified, b: Certified) -> Difference | None:
    """With Student's t interval; None where an error is unknown. Questions of both sides count once: the error is that
    of the differences of what each adds."""
    if a.standard_error is None or b.standard_error is None:
        return None
    questions = a.influence.keys() | b.influence.keys()
    shared = sum((b.influence.get(name, 0.0) - a.influence.get(name, 0.0)) ** 2 for name in sorted(questions))
    error = math.sqrt(shared + _unseen(a) + _unseen(b))
    df = min(a.df or math.inf, b.df or math.inf)
    half = t_quantile((1 + a.level) / 2, df if math.isfinite(df) else 1e9) * error
    value = b.value - a.value
    return Difference(value, Interval(max(-1.0, value - half), min(1.0, value + half), a.level, "student-t"))


def _unseen(row: Certified) -> float:
    """The part of the variance that is of errors which labels have not shown, and so of no question."""
    return max((row.standard_error or 0.0) ** 2 - sum(value**2 for value in row.influence.values()), 0.0)


def section(app: Karenina, a: Path, b: Path | None, pairs: Sequence[Pair]) -> tuple[Section | None, Sequence[Gate]]:
    """What `karenina compare` says of the certificates in the directories of two runs, or of the models of one.

    There is nothing to say where a run has none, unless a gate asks for one; then it fails.
    """
    settings: CertificateSettings | None = app.settings(NAME)
    least, most = (settings.min_rate, settings.max_drop) if settings is not None else (None, None)
    sides, problems = [], []
    for label, folder in (("A", a), ("B", b if b is not None else a)):
        held, why = _held(folder)
        sides.append(held)
        problems += [f"{label}: {why}"] if why else []
    gates: list[Gate] = []
    if least is not None:
        held, folder = sides[1], b if b is not None else a
        missing = Gate("certified rate", "all models", False, f"cannot be decided: {'; '.join(problems)}")
        gates += [missing] if held is None else gates_of(held, VerificationResultSet.load(folder), least)
    if sides[0] is None or sides[1] is None:
        if most is not None:
            gates.append(Gate(DROP, "all models", False, f"cannot be decided: {'; '.join(problems)}"))
        there = [text for text in problems if "there is no certificate" not in text]
        return (Section({"certified": None}, notes=there, after=there) if there else None), gates
    rows, judged = _compared(sides[0], sides[1], pairs, most)
    document = {"certified": rows}
    cells = [[*(str(row[name]) for name in ("target", "a_of", "b_of")), *_numbers(row)] for row in rows]
    after = [] if rows else ["The certificates have no rate of the same models."]
    return Section(document, "Certified: what people would say", COLUMNS, cells, after=after), [*gates, *judged]


def _held(folder: Path) -> tuple[Held | None, str]:
    """The certificate in a directory, as far as it is of what lies there now; else why not."""
    folder = folder if folder.is_dir() else folder.parent
    try:
        held = read_certificate(folder / FILE)
    except ConfigError as error:
        return None, str(error)
    if changed := out_of_date(held, folder):
        return None, f"{held.path} does not hold: {changed[0]}"
    return held, ""


def _compared(
    a: Held, b: Held, pairs: Sequence[Pair], most: float | None
) -> tuple[list[dict[str, object]], list[Gate]]:
    rows: list[dict[str, object]] = []
    gates: list[Gate] = []
    for pair in dict.fromkeys(pairs):
        ours = {row.target: row for row in a.rows if (row.model, row.judge) == (pair.answering, pair.parsing)}
        theirs = {row.target: row for row in b.rows if (row.model, row.judge) == (pair.answering_b, pair.parsing_b)}
        for target in (target for target in ours if target in theirs):
            one, other = ours[target], theirs[target]
            found = difference(one, other)
            rows.append(_row(target, pair, one, other, found))
            if target == "verdict" and most is not None:
                gates.append(_drop(pair, found, most))
        if most is not None and not ("verdict" in ours and "verdict" in theirs):
            gates.append(Gate(DROP, _about(pair), False, "cannot be decided: no certified pass rate on both sides"))
    if most is not None and not pairs:
        gates.append(Gate(DROP, "all models", False, "cannot be decided: nothing is compared"))
    return rows, gates


def _drop(pair: Pair, found: Difference | None, most: float) -> Gate:
    if found is None:
        return Gate(DROP, _about(pair), False, "cannot be decided: the error of a certified rate is unknown")
    limits = f"{100 * found.value:+.1f} ({100 * found.interval.low:+.1f} to {100 * found.interval.high:+.1f}) points"
    wanted = f"a drop of at most {100 * most:.1f} allowed for the lower limit"
    return Gate(DROP, _about(pair), found.interval.low >= -most - SLACK, f"{limits}; {wanted}")


def _about(pair: Pair) -> str:
    same = (pair.answering, pair.parsing) == (pair.answering_b, pair.parsing_b)
    own = f"{pair.answering}, judged by {pair.parsing}"
    return own if same else f"{own} and {pair.answering_b}, judged by {pair.parsing_b}"


def _row(target: str, pair: Pair, a: Certified, b: Certified, found: Difference | None) -> dict[str, object]:
    return {
        "target": target,
        "a_of": f"{pair.answering}, judged by {pair.parsing}",
        "b_of": f"{pair.answering_b}, judged by {pair.parsing_b}",
        "a": a.value,
        "b": b.value,
        "difference": found.value if found else None,
        "low": found.interval.low if found else None,
        "high": found.interval.high if found else None,
    }


def _numbers(row: dict[str, object]) -> list[str]:
    if row["difference"] is None:
        return [f"{row['a']:.3f}", f"{row['b']:.3f}", "unknown", ""]
    found, low, high = (f"{row[name]:+z.3f}" for name in ("difference", "low", "high"))
    return [f"{row['a']:.3f}", f"{row['b']:.3f}", found, f"{low} to {high}"]
