"""What `karenina certify` prints, and what the report says of a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_cli.exits import COULD_NOT_RUN, OK
from karenina_cli.output import Part, Table, note, own_stdout, print_found
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import plural

from ..estimators.annotators import MARGINS
from ..labels.file import NAME as LABELS
from ..labels.file import read_labels
from .certify import certify
from .document import NAME, document, write_certificate

__all__ = ["certified", "tables_of"]

ESTIMATES = ("people", "judge", "ppi", "ppi++", "rogan-gladen")
MEASURES = ("percent", "cohen kappa", "gwet ac", "sensitivity", "specificity")
CAUSES = ("both right", "judge misread", "model wrong", "both wrong")


def certified(
    run: Path, labels: Path | None, output: Path | None, annotators: str, benchmark: Path | None, *, as_json: bool
) -> int:
    """Certify, write and print; returns the exit code. Raises BenchmarkError and ConfigError."""
    path = output or run / NAME
    with own_stdout() as out:
        results, file = VerificationResultSet.load(run), read_labels(labels or run / LABELS)
        found = certify(results, run, file, benchmark=benchmark, margin=MARGINS[annotators])
        content = document(found)
        if found.certified:
            write_certificate(path, found)
        print_found(content, _parts(content), out, as_json=as_json)
        if not found.certified:
            earlier = f" {path} belongs to earlier labels: remove it." if path.exists() else ""
            note(f"Nothing is certified, and no certificate was written.{earlier}")
            return COULD_NOT_RUN
        if not as_json:
            print_found(None, [f"Certificate: {path}"], out, as_json=False)
        return OK


def _names(content: Mapping[str, Any]) -> list[str]:
    """What each row is of; the judge is named where there are several."""
    several = len({row["judge"] for row in content["rows"]}) > 1
    return [
        f"{row['target']}, {row['model'] or 'all models'}" + (f", judged by {row['judge']}" if several else "")
        for row in content["rows"]
    ]


def _interval(found: Mapping[str, Any] | None) -> str:
    if not found or found["value"] is None:
        return ""
    if found["low"] is None:
        return f"{found['value']:.3f}"
    return f"{found['value']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def _certified_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{row['labels']} of {row['items']}",
            _interval(row["estimates"].get(row["recommended"])) or "none",
            row["recommended"] or "",
        )
        for name, row in zip(_names(content), content["rows"], strict=True)
    ]


def _reasons(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why an estimate is recommended or none is, and what else is to be said."""
    for name, row in zip(_names(content), content["rows"], strict=True):
        yield name, row["reason"]
        for text in row["warnings"]:
            yield "", text
        refused = row["estimates"].get("rogan-gladen")
        if refused and refused["note"] and refused["note"] not in row["reason"]:
            yield "", f"no Rogan-Gladen: {refused['note']}"


def _side_by_side(content: Mapping[str, Any], part: str, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Estimates of a part of each row that has it."""
    return [
        (name, *(_interval(row[part].get(column)) for column in columns))
        for name, row in zip(_names(content), content["rows"], strict=True)
        if row[part]
    ]


def _cause_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Of each field: how often the model was wrong, and how often the judge misread."""
    return [(row["field"], row["judge"], *(str(row[name]) for name in CAUSES)) for row in content["causes"]]


def _trial_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for trial in content["alt_tests"]:
        verdict = trial["note"]
        if "passed" in trial:
            may = "may replace an annotator" if trial["passed"] else "may not replace an annotator"
            verdict = f"{may}: winning rate {trial['winning_rate']:.2f}, advantage {trial['advantage']:.2f}"
        rows.append((trial["target"], trial["judge"], verdict))
    return rows


def tables_of(content: Mapping[str, Any]) -> list[Table]:
    """Everything that is known, as tables."""
    judges = sorted({row["judge"] for row in content["rows"]})
    title = f"Certified rates, judged by {judges[0]}" if len(judges) == 1 else "Certified rates"
    estimates, agreement = _side_by_side(content, "estimates", ESTIMATES), _side_by_side(content, "agreement", MEASURES)
    return [
        Table(("of", "labels", "rate", "estimate"), _certified_rows(content), title),
        Table(("of", "why"), list(_reasons(content)), "Why these estimates"),
        Table(("of", *ESTIMATES[:-1], "rogan gladen"), estimates, "Estimates side by side"),
        Table(("field", "judge", *CAUSES), _cause_rows(content), "Was the model wrong, or did the judge misread?"),
        Table(("of", *MEASURES), agreement, "Agreement of the judge with people"),
        Table(("target", "judge", "outcome"), _trial_rows(content), "Alternative annotator test"),
    ]


def _parts(content: Mapping[str, Any]) -> Sequence[Part]:
    """What is printed."""
    holds = ", ".join(f"{name} {digest}" for name, digest in content["holds_for"].items())
    unsure = [f"{plural(content['unsure'], 'label')} without an opinion left out"] if content["unsure"] else []
    return [*tables_of(content), *unsure, f"Holds for: {holds}"]
