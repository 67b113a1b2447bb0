"""What a file says about the run that its results are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from karenina_core import VerificationResult

from ..columns.table import Column, Row

SHOWN = {"provider": "model_provider", "name": "model_name", "temperature": "temperature", "interface": "interface"}
"""What of a model's configuration goes into a file, and what it is called there."""


def export_columns(manifest: Mapping[str, Any]) -> tuple[Column, ...]:
    """Columns that say when a table was written, with what, and of which run a row is."""

    def cell(name: str, text: str, row: Row) -> str:
        return row.result.metadata.run_name or text if name == "job_id" else text  # a file may have several runs

    return tuple(Column(name, "text", partial(cell, name, text)) for name, text in _origin(manifest).items())


def about_run(results: Iterable[VerificationResult], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The `metadata` of an export. The results are read once."""
    total = completed = 0
    models: dict[str, dict[str, dict[str, Any]]] = {"answering_models": {}, "parsing_models": {}}
    begin: datetime | None = None
    end: datetime | None = None
    for result in results:
        about = result.metadata
        total += 1
        completed += about.completed_without_errors
        for role, identity in (("answering_models", about.answering), ("parsing_models", about.parsing)):
            named = {"provider": identity.provider, "name": identity.model_name}
            models[role].setdefault(str(identity), {**named, "temperature": None, "interface": identity.interface})
        with suppress(ValueError, OverflowError):  # of another tool, or of a test
            begun = datetime.fromisoformat(about.timestamp).astimezone(UTC)
            ended = begun + timedelta(seconds=about.execution_time)
            begin, end = min(begin or begun, begun), max(end or ended, ended)
    return {
        **_origin(manifest),
        "run_name": manifest.get("run_name"),
        "verification_config": {role: _models(manifest, role, seen) for role, seen in models.items()},
        "job_summary": {
            "total_questions": total,
            "successful_count": completed,
            "failed_count": total - completed,
            "start_time": begin.isoformat() if begin else None,
            "end_time": end.isoformat() if end else None,
            "total_duration": (end - begin).total_seconds() if begin and end else None,
            "is_complete": manifest["status"] == "completed" if "status" in manifest else None,
        },
    }


def _origin(manifest: Mapping[str, Any]) -> dict[str, str]:
    try:
        installed = version("karenina-core")
    except PackageNotFoundError:
        installed = "not installed"
    return {
        "export_timestamp": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "karenina_version": installed,
        "job_id": str(manifest.get("run_name") or ""),
    }


def _models(manifest: Mapping[str, Any], role: str, seen: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """As they were configured; where that is not known, as the results name them."""
    config = manifest.get("config")
    listed = config.get(role) if isinstance(config, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(model, Mapping) for model in listed):
        return list(seen.values())
    return [{name: model.get(field) for name, field in SHOWN.items()} for model in listed]
