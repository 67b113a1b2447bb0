"""The sink `jsonl`: one result a line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from attrs import fields_dict

from karenina_core import ModelIdentity, VerificationResult, hookimpl
from karenina_core.errors import PluginError
from karenina_core.log import redactor
from karenina_core.model.result import PARTS, LedgerEntry, MetadataPart, TrailEntry
from karenina_core.run.sinks import RunInfo


class JsonLines:
    """Appends results to a file: `target`, or `results.jsonl` in the run directory. A result that is there is not
    written again."""

    name = "jsonl"

    def __init__(self, target: str = "") -> None:
        self._target = target
        self._file: IO[str] | None = None
        self._written: set[str] = set()
        self._secrets: Collection[str] = ()

    async def open(self, run: RunInfo) -> None:
        if self._target:
            path = Path(self._target)
        elif run.run_dir is not None:
            path = run.run_dir / "results.jsonl"
        else:
            raise PluginError("the sink jsonl needs a file: --sink jsonl:FILE")
        self._secrets = run.secrets
        self._written = _ids(path)
        cut_off = _ends_within_a_line(path)
        self._file = path.open("a", encoding="utf-8", errors="replace", newline="\n")
        if cut_off:
            self._file.write("\n")

    async def write(self, result: VerificationResult) -> None:
        if self._file is None or result.metadata.result_id in self._written:
            return
        self._file.write(f"{_line(result, self._secrets)}\n")
        self._file.flush()
        self._written.add(result.metadata.result_id)

    async def close(self, summary: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _line(result: VerificationResult, secrets: Collection[str]) -> str:
    from karenina_core.model.convert import unstructure  # cattrs is only needed once there is something to write

    data = unstructure(result)
    try:
        line = _dumped(data)
    except (TypeError, ValueError):
        line = _dumped(_plain(data))
    if any(secret in line or json.dumps(secret, ensure_ascii=False)[1:-1] in line for secret in secrets):
        line = _dumped(_redacted(_plain(data), redactor(secrets)))
    return line


def _dumped(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)


def _plain(value: Any) -> Any:
    """The same data as JSON can hold it: names as texts, sets as lists, numbers without a value as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [_plain(item) for item in sorted(value, key=repr)]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _own_names() -> frozenset[str]:
    parts = (VerificationResult, MetadataPart, ModelIdentity, LedgerEntry, TrailEntry, *PARTS.values())
    return frozenset(name for part in parts for name in fields_dict(part))


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """Texts without secrets, also where they are names; the names of a result's own fields stay."""
    if isinstance(value, dict):
        return {k if k in _own_names() else redact(k): _redacted(item, redact) for k, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def _ids(path: Path) -> set[str]:
    if not path.exists():
        return set()
    found = set()
    for line in path.read_text("utf-8", errors="replace").split("\n"):
        try:
            found.add(json.loads(line)["metadata"]["result_id"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _ends_within_a_line(path: Path) -> bool:
    """Whether a crash cut the last line off."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


@hookimpl
def karenina_register_sinks(registry: Any) -> None:
    registry.add(JsonLines)
