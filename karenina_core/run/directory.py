"""The run directory: what was run, with what, and how far it got."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from attrs import asdict

from ..errors import RunDirectoryError
from ..log import redactor
from ..model.config import ModelConfig, VerificationConfig
from ..model.convert import unstructure
from ..plugin.known_secrets import secrets_of
from ..ports.client import Model
from ..ports.tool_servers import shown_address
from .prepare import Prepared

__all__ = ["MANIFEST", "RESULTS", "RunDirectory", "default_directory", "secrets_of_run", "write_atomically"]

MANIFEST = "manifest.json"
RESULTS = "results.jsonl"
FORMAT_VERSION = "1.0"


def default_directory(label: str) -> Path:
    """`karenina-runs/<label>-<UTC time>` in the working directory."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label).strip("-.") or "run"
    return Path("karenina-runs") / f"{safe[:60]}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"


def secrets_of_run(prepared: Prepared) -> frozenset[str]:
    """What no file of this run may hold; see `secrets_of`."""
    config = prepared.config
    return secrets_of(prepared.app, (*config.answering_models, *config.parsing_models, *prepared.overrides))


class RunDirectory:
    """One run's folder. Made before the first model call, so that nothing is paid for that cannot be kept."""

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        self.path = path
        self._redact = redact
        self._manifest: dict[str, Any] = {}

    @classmethod
    def create(
        cls, path: Path, prepared: Prepared, source: Path | None = None, answerers: Iterable[Model] = ()
    ) -> RunDirectory:
        """Make the folder and its first manifest. `answerers` are open: the manifest says what tools they have.

        Raises RunDirectoryError where it exists and holds anything, or cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            occupied = any(path.iterdir())
        except OSError as error:
            raise RunDirectoryError(
                f"the run directory {path} cannot be made: {error.strerror}; choose another (--out DIR)"
            ) from error
        if occupied:
            raise RunDirectoryError(
                f"the run directory {path} is not empty ({_occupant(path)}); choose another (--out DIR)"
            )
        directory = cls(path, redactor(secrets_of_run(prepared)))
        directory.update(**_manifest(prepared, source), tool_servers=_tool_servers(answerers))
        return directory

    def update(self, **facts: Any) -> None:
        """Change the manifest on disk. Raises RunDirectoryError."""
        self._manifest |= {**_redacted(facts, self._redact), "updated_at": _now()}
        text = json.dumps(self._manifest, indent=2, ensure_ascii=False)
        try:
            write_atomically(self.path / MANIFEST, text.encode("utf-8", "replace"))
        except OSError as error:
            raise RunDirectoryError(f"{self.path / MANIFEST} cannot be written: {error.strerror}") from error


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _redacted(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole: after a crash there is the old content or the new, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    with contextlib.suppress(OSError):  # not every platform can flush a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _occupant(path: Path) -> str:
    try:
        status = json.loads((path / MANIFEST).read_text("utf-8"))["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return "other files"
    return f"a run that is {status}"


def _manifest(prepared: Prepared, source: Path | None) -> dict[str, Any]:
    benchmark, config = prepared.benchmark, prepared.config
    return {
        "format_version": FORMAT_VERSION,
        "run_name": prepared.run_name,
        "status": "running",
        "created_at": _now(),
        "benchmark": {
            "name": benchmark.name,
            "version": benchmark.version,
            "path": str(source) if source else None,
            "sha256": hashlib.sha256(source.read_bytes()).hexdigest() if source else None,
            "warnings": list(benchmark.warnings),
        },
        "evaluation_mode": prepared.mode,
        "questions": [question.id for question in prepared.questions],
        "left_out": [asdict(left) for left in prepared.left_out],
        "items": len(prepared),
        "config": _config(config),
        "models": _models(prepared, (*config.answering_models, *config.parsing_models)),
        "stages": sorted({stage.name for plan in prepared.plans.values() for stage in plan.stages}),
        "plugins": [asdict(plugin) for plugin in prepared.app.plugins],
        "versions": {"python": platform.python_version(), "karenina-core": _version("karenina-core")},
    }


def _config(config: VerificationConfig) -> Mapping[str, Any]:
    """The configuration, with addresses of tool servers that show nothing secret."""
    data = dict(unstructure(config))
    for role in ("answering_models", "parsing_models"):
        data[role] = [
            {**model, "mcp_urls_dict": {name: shown_address(at) for name, at in model["mcp_urls_dict"].items()}}
            for model in data[role]
        ]
    return data


def _tool_servers(answerers: Iterable[Model]) -> list[dict[str, Any]]:
    """What every server offers to every model for the whole run; see `tool_digest`."""
    return [
        {
            "model": str(model.identity),
            "server": offered.server,
            "address": offered.address,
            "tools": [tool.name for tool in offered.tools],
            "digest": offered.digest,
        }
        for model in answerers
        for offered in model.offered
    ]


def _models(prepared: Prepared, models: Iterable[ModelConfig]) -> Mapping[str, Any]:
    return {
        str(model.identity): {
            "interface": model.interface,
            "served_by": prepared.resolutions[str(model.identity)].interface,
            "note": prepared.resolutions[str(model.identity)].note,
        }
        for model in models
    }


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return datetime.now(UTC).astimezone().isoformat()
