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

__all__ = ["agreement_rows", "cause_rows", "certified", "estimate_rows", "parts_of"]

ESTIMATES = ("people", "judge", "ppi", "ppi++", "rogan-gladen")
HEAD = ("about", "judge", "labels", *ESTIMATES, "recommended")
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
        print_found(content, parts_of(content), out, as_json=as_json)
        if not found.certified:
            earlier = f" {path} is of earlier labels: remove it." if path.exists() else ""
            note(f"Nothing is certified, and no certificate was written.{earlier}")
            return COULD_NOT_RUN
        if not as_json:
            print_found(None, [f"Certificate: {path}"], out, as_json=False)
        return OK


def about(row: Mapping[str, Any]) -> str:
    return f"{row['target']}, {row['model'] or 'all models'}"


def estimate_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The five estimates side by side."""
    return [
        (about(row), str(row["judge"]), f"{row['labels']} of {row['items']}",
         *(_interval(row["estimates"].get(name)) for name in ESTIMATES), row["recommended"] or "none")
        for row in content["rows"]
    ]  # fmt: skip


def _interval(found: Mapping[str, Any] | None) -> str:
    if not found or found["value"] is None:
        return ""
    if found["low"] is None:
        return f"{found['value']:.3f}"
    return f"{found['value']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def reasons(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why an estimate is recommended or none is, and what else is to be said."""
    for row in content["rows"]:
        yield f"{about(row)}, judged by {row['judge']}", row["reason"]
        for text in row["warnings"]:
            yield "", text
        refused = row["estimates"].get("rogan-gladen")
        if refused and refused["note"]:
            yield "", f"no Rogan-Gladen: {refused['note']}"


def agreement_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Some of the coefficients, and the rates by class, with intervals; the document has all."""
    return [
        (about(row), str(row["judge"]), *(_interval(row["agreement"].get(name)) for name in MEASURES))
        for row in content["rows"]
        if row["agreement"]
    ]


def cause_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Of each field: how often the model was wrong, and how often the judge misread."""
    return [(row["field"], row["judge"], *(str(row[name]) for name in CAUSES)) for row in content["causes"]]


def trial_rows(content: Mapping[str, Any]) -> list[tuple[str, ...]]:
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
    return [
        Table(HEAD, estimate_rows(content), "Certified rates"),
        Table(("of", "why"), list(reasons(content)), "Why these estimates"),
        Table(("field", "judge", *CAUSES), cause_rows(content), "Was the model wrong, or did the judge misread?"),
        Table(("about", "judge", *MEASURES), agreement_rows(content), "Agreement of the judge with people"),
        Table(("target", "judge", "outcome"), trial_rows(content), "Alternative annotator test"),
    ]


def parts_of(content: Mapping[str, Any]) -> Sequence[Part]:
    """What is printed."""
    holds = ", ".join(f"{name} {digest}" for name, digest in content["holds_for"].items())
    unsure = [f"{plural(content['unsure'], 'label')} without an opinion left out"] if content["unsure"] else []
    return [*tables_of(content), *unsure, f"Holds for: {holds}"]
