"""What a file says about the run that its results are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attrs import define

from karenina_core import VerificationResult

from ..columns.table import Column, Row

SHOWN = {"provider": "model_provider", "name": "model_name", "temperature": "temperature", "interface": "interface"}
"""What of a model's configuration goes into a file, and what it is called there."""


def export_columns(manifest: Mapping[str, Any]) -> tuple[Column, ...]:
    """Columns that say when a table was written, with what, and of which run a row is."""
    return tuple(Column(name, "text", partial(_cell, name, text)) for name, text in _origin(manifest).items())


def _cell(name: str, text: str, row: Row) -> str:
    """A file may have the results of several runs."""
    return row.result.metadata.run_name or text if name == "job_id" else text


def about_run(results: Iterable[VerificationResult], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The `metadata` of an export. The results are read once."""
    seen = _Seen({}, {})
    for result in results:
        seen.see(result)
    begin, end = seen.begin, seen.end
    return {
        **_origin(manifest),
        "run_name": manifest.get("run_name"),
        "verification_config": {
            "answering_models": _models(manifest, "answering_models", seen.answering),
            "parsing_models": _models(manifest, "parsing_models", seen.parsing),
        },
        "job_summary": {
            "total_questions": seen.total,
            "successful_count": seen.completed,
            "failed_count": seen.total - seen.completed,
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


@define
class _Seen:
    """What is known only after all results were read."""

    answering: dict[str, dict[str, Any]]
    parsing: dict[str, dict[str, Any]]
    total: int = 0
    completed: int = 0
    begin: datetime | None = None
    end: datetime | None = None

    def see(self, result: VerificationResult) -> None:
        metadata = result.metadata
        self.total += 1
        self.completed += metadata.completed_without_errors
        for models, identity in ((self.answering, metadata.answering), (self.parsing, metadata.parsing)):
            models.setdefault(
                str(identity),
                {
                    "provider": identity.provider,
                    "name": identity.model_name,
                    "temperature": None,
                    "interface": identity.interface,
                },
            )
        try:
            begun = datetime.fromisoformat(metadata.timestamp).astimezone(UTC)
            ended = begun + timedelta(seconds=metadata.execution_time)
        except (ValueError, OverflowError):
            return  # of another tool, or of a test
        self.begin = min(self.begin or begun, begun)
        self.end = max(self.end or ended, ended)


def _models(manifest: Mapping[str, Any], role: str, seen: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """As they were configured; where that is not known, as the results name them."""
    config = manifest.get("config")
    listed = config.get(role) if isinstance(config, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(model, Mapping) for model in listed):
        return list(seen.values())
    return [{name: model.get(field) for name, field in SHOWN.items()} for model in listed]
