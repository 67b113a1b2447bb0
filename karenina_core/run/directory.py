"""The run directory: what was run, with what, and how far it got."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from attrs import asdict

from ..errors import RunDirectoryError
from ..log import redactor, secrets_in
from ..model.config import ModelConfig, VerificationConfig
from ..model.convert import unstructure
from .prepare import Prepared

__all__ = ["MANIFEST", "RESULTS", "RunDirectory", "default_directory", "secrets_of", "write_atomically"]

MANIFEST = "manifest.json"
RESULTS = "results.jsonl"
FORMAT_VERSION = "1.0"


def default_directory(label: str) -> Path:
    """`karenina-runs/<label>-<UTC time>` in the working directory."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label).strip("-.") or "run"
    return Path("karenina-runs") / f"{safe[:60]}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"


def secrets_of(config: VerificationConfig) -> frozenset[str]:
    """Every secret that the run knows of, the configured keys and the environment's: as it is and as JSON has it.

    What is shorter than 8 characters is no secret but a placeholder such as `none`, which occurs in any text.
    """
    found = set(secrets_in(os.environ))
    for model in (*config.answering_models, *config.parsing_models):
        found.update(_secrets_among(model.extra_kwargs))
        found.update(value for _, value in parse_qsl(urlsplit(model.endpoint_base_url or "").query))
        if model.endpoint_api_key is not None:
            found.add(model.endpoint_api_key.reveal())
        if model.api_key_env is not None:
            found.add(os.environ.get(model.api_key_env, ""))
    written = {json.dumps(secret, ensure_ascii=ascii_)[1:-1] for secret in found for ascii_ in (True, False)}
    return frozenset(secret for secret in found | written if len(secret) >= 8)


def _secrets_among(value: Any, name: str = "") -> Iterator[str]:
    """Texts under names such as `api_key` and `Authorization`."""
    if isinstance(value, Mapping):
        headers = "header" in name.lower()
        for key, item in value.items():
            yield from _secrets_among(item, "authorization" if headers else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_among(item, name)
    elif isinstance(value, str):
        bare = value.removeprefix("Bearer ")
        yield from [bare] if name.lower() == "authorization" else secrets_in({name.replace("-", "_"): bare})


class RunDirectory:
    """One run's folder. Made before the first model call, so that nothing is paid for that cannot be kept."""

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        self.path = path
        self._redact = redact
        self._manifest: dict[str, Any] = {}

    @classmethod
    def create(cls, path: Path, prepared: Prepared, source: Path | None = None) -> RunDirectory:
        """Make the folder and its first manifest.

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
        directory = cls(path, redactor(secrets_of(prepared.config)))
        directory.update(**_manifest(prepared, source))
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
        "config": unstructure(config),
        "models": _models(prepared, (*config.answering_models, *config.parsing_models)),
        "stages": sorted({stage.name for plan in prepared.plans.values() for stage in plan.stages}),
        "plugins": [asdict(plugin) for plugin in prepared.app.plugins],
        "versions": {"python": platform.python_version(), "karenina-core": _version("karenina-core")},
    }


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
