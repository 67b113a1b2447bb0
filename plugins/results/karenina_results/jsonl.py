"""The sink `jsonl`: one result a line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

from attrs import fields, fields_dict, has

from karenina_core import ModelIdentity, VerificationResult, hookimpl
from karenina_core.errors import PluginError
from karenina_core.log import get_logger, redactor
from karenina_core.model.result import PARTS, LedgerEntry, MetadataPart, TrailEntry
from karenina_core.run.sinks import RunInfo

MOST_LEVELS = 150
"""Of mappings and lists in one another, the result itself included."""
log = get_logger("karenina.results")


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
    lost: list[str] = []
    try:
        line = _dumped(data := _unstructured(result, lost))
    except Exception:  # extensions and arguments of tools are anybody's; a result is worth more than one of them
        line = _dumped(data := _plain(_unstructured(result, lost), lost))
    if lost:
        log.warning("a result has values that cannot be written", result=result.metadata.result_id, values=lost)
        data["metadata"]["warnings"] = [*data["metadata"]["warnings"], *lost]
        line = _dumped(data)
    if any(secret in line or json.dumps(secret, ensure_ascii=False)[1:-1] in line for secret in secrets):
        line = _dumped(_redacted(_plain(data, lost), redactor(secrets)))
    return line


def _unstructured(value: Any, lost: list[str]) -> Any:
    """Plain data; where a part cannot be made into that, each of its own parts by itself."""
    from karenina_core.model.convert import unstructure  # cattrs is only needed once there is something to write

    try:
        return unstructure(value)
    except Exception:  # as above
        if not has(type(value)):
            return _plain(value, lost)
        saved = (a.name for a in fields(type(value)) if not a.name.startswith("_") and a.metadata.get("saved", True))
        return {name: _unstructured(getattr(value, name), lost) for name in saved}


def _dumped(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)


def _plain(value: Any, lost: list[str], levels: int = MOST_LEVELS) -> Any:
    """The same data as JSON can hold it: names as texts, sets as lists, numbers without a value as null. What is nested
    too deeply, or is nothing that can be shown, becomes a text that says so, which is added to `lost`."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    if not isinstance(value, Mapping | set | frozenset | list | tuple):
        return _shown(value, lost)
    if levels == 0:
        return _gone(f"not written: it is nested more than {MOST_LEVELS} levels deep", lost)
    if isinstance(value, Mapping):
        return {_shown(key, lost): _plain(item, lost, levels - 1) for key, item in value.items()}
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    return [_plain(item, lost, levels - 1) for item in items]


def _shown(value: Any, lost: list[str]) -> str:
    try:
        return str(value)
    except Exception as error:  # as above
        return _gone(f"not written: a {type(value).__name__} that cannot be shown ({type(error).__name__})", lost)


def _gone(why: str, lost: list[str]) -> str:
    if why not in lost:
        lost.append(why)
    return f"[{why}]"


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
