"""`certificate.json`: written as a whole, and read again by gates, comparisons and reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, frozen
from karenina_calls.files.bounded import read_json
from karenina_runs.files.atomic_files import write_json
from karenina_runs.summaries.intervals import Estimate

from karenina_core.errors import ConfigError

from ..estimators import ClassRates
from ..labels.binding import digests_of
from .certify import Certificate, Trial
from .readings import CAUSES
from .rows import Row

__all__ = ["NAME", "Certified", "Held", "causes_of", "document", "read_certificate", "write_certificate"]

NAME = "certificate.json"
FORMAT_VERSION = "1.0"
PARTS = ("questions", "settings", "models", "plugins", "code")
"""Of a binding."""


def document(certificate: Certificate) -> dict[str, Any]:
    """The keys that readers may rely on: rates are fractions, what could not be computed is null with a note."""
    return {
        "format_version": FORMAT_VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "run_id": certificate.run_id,
        "holds_for": digests_of(certificate.binding),
        "results": certificate.results,
        "rows": [_row(row) for row in certificate.rows],
        "causes": causes_of(certificate),
        "fields": [asdict(finding) for finding in certificate.findings],
        "alt_tests": [_trial(trial) for trial in certificate.trials],
        "unsure": certificate.unsure,
        "binding": certificate.binding,
    }


def _row(row: Row) -> dict[str, Any]:
    names = ("target", "judge", "model", "items", "labels", "questions", "annotators", "recommended", "reason")
    return {
        **{name: getattr(row, name) for name in names},
        "estimates": {name: _estimate(found) for name, found in row.estimates.items()},
        "warnings": list(row.warnings),
        "classes": None if row.classes is None else asdict(row.classes),
        "agreement": {name: _estimate(found) for name, found in row.agreement.items()},
        "influence": dict(row.influence),
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    limits = found.interval
    return {
        "value": found.value,
        "low": limits.low if limits else None,
        "high": limits.high if limits else None,
        "method": limits.method if limits else None,
        "standard_error": found.standard_error,
        "df": found.df,
        "n": found.n,
        "note": found.note or None,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    about = {"target": trial.target, "judge": trial.judge, "annotators": list(trial.annotators), "note": trial.note}
    if (test := trial.test) is None:
        return about
    return {
        **about,
        "passed": test.passed,
        "winning_rate": test.winning_rate,
        "advantage": test.advantage,
        "margin": test.margin,
        "p_values": [one.p_value for one in test.annotators],
    }


def causes_of(certificate: Certificate) -> list[dict[str, Any]]:
    """For every field and judge, how often the model or the judge was right."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for finding in certificate.findings:
        own = counts.setdefault((finding.field, finding.judge), dict.fromkeys(CAUSES.values(), 0))
        own[finding.cause] += 1
    return [{"field": name, "judge": judge, **own} for (name, judge), own in sorted(counts.items())]


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Raises ConfigError where the file cannot be written."""
    try:
        write_json(path, document(certificate), indent=1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another (-o FILE)") from error


@frozen(kw_only=True)
class Certified:
    """A row of a certificate that was read: the recommended estimate."""

    target: str
    judge: str
    model: str | None
    method: str
    value: float
    low: float
    high: float
    level: float
    labels: int
    questions: int
    """Questions with a label."""
    standard_error: float | None
    df: float | None
    classes: ClassRates | None
    influence: Mapping[str, float]


@frozen(kw_only=True)
class Held:
    """A certificate that was read."""

    path: Path
    binding: Mapping[str, Any]
    results: str
    rows: tuple[Certified, ...]
    refused: tuple[Mapping[str, Any], ...]
    """Rows in which nothing is certified."""
    content: Mapping[str, Any]
    """The whole document."""


def read_certificate(path: Path) -> Held:
    """Raises ConfigError for what is no certificate."""
    try:
        found = read_json(path)
        rows = [row for row in found["rows"] if row["recommended"]]
        return Held(
            path=path,
            binding={name: dict(found["binding"][name]) for name in PARTS},
            results=str(found["results"]),
            rows=tuple(_certified(row) for row in rows),
            refused=tuple(row for row in found["rows"] if not row["recommended"]),
            content=found,
        )
    except FileNotFoundError:
        raise ConfigError(f"there is no certificate {path}; type: karenina certify RUN --labels FILE") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path} is not a certificate: {why}; karenina certify RUN makes one") from error


def _certified(row: Mapping[str, Any]) -> Certified:
    best = row["estimates"][row["recommended"]]
    return Certified(
        target=str(row["target"]),
        judge=str(row["judge"]),
        model=row["model"],
        method=str(row["recommended"]),
        value=float(best["value"]),
        low=float(best["low"]),
        high=float(best["high"]),
        level=0.95,
        labels=int(row["labels"]),
        questions=int(row["questions"]),
        standard_error=best["standard_error"],
        df=best["df"],
        classes=None if row["classes"] is None else ClassRates(**row["classes"]),
        influence={str(name): float(value) for name, value in row["influence"].items()},
    )
