"""Sinks that keep their promises pass every check; planted faults are found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from karenina_calls.secrets.redaction import redactor
from karenina_testing.checks import run_checks

from karenina_core import Karenina, VerificationResult
from karenina_core.testing import sink_checks
from karenina_core.values.convert import structure, unstructure


class Folder:
    """A sink that keeps one file for each result: right in every way."""

    name = "folder"

    def __init__(self, target: str) -> None:
        self.path = Path(target)
        self.redact: Any = None

    async def open(self, run: Any) -> None:
        self.path.mkdir(exist_ok=True)
        self.redact = redactor(run.secrets)

    async def write(self, result: VerificationResult) -> None:
        data = json.dumps(self._redacted(unstructure(result)))
        (self.path / f"{result.metadata.result_id}.json").write_text(data, "ascii")

    async def close(self, summary: Mapping[str, Any]) -> None:
        """Everything is written."""

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self._redacted(item) for key, item in value.items()}
        return [self._redacted(item) for item in value] if isinstance(value, list | tuple) else value


def files(target: str) -> Iterable[VerificationResult]:
    return [structure(json.loads(path.read_text("ascii")), VerificationResult) for path in Path(target).iterdir()]


def ids(target: str) -> Iterable[str]:
    return [path.stem for path in Path(target).iterdir()]


@pytest.mark.parametrize("read_back", [files, ids, None])
def test_a_sink_that_is_right_passes(read_back: Any) -> None:
    run_checks(sink_checks(Folder, read_back))


def lines(target: str) -> Iterable[str]:
    written = Path(target).read_text("utf-8").split("\n")
    return [json.loads(line)["metadata"]["result_id"] for line in written if line]


def test_jsonl_keeps_one_line_a_result() -> None:
    run_checks(sink_checks(Karenina.default().sinks.load("jsonl"), lines))


def test_expected_failures_are_marked(planted: Callable[[str], ModuleType]) -> None:
    log = "an append-only log"
    known = {"idempotent": log, "replaces": log, "secrets": "for tests only"}
    run_checks(sink_checks(planted("duplicates").Planted, expected_failures=known))


class Synchronous(Folder):
    def write(self, result: VerificationResult) -> None:  # type: ignore[override]
        """It is not awaited by anybody."""


class Lossy(Folder):
    async def write(self, result: VerificationResult) -> None:
        if result.metadata.replicate < 5:
            await super().write(result)


class Ascii(Folder):
    def _redacted(self, value: Any) -> Any:
        value = super()._redacted(value)
        return value.encode("ascii", "replace").decode() if isinstance(value, str) else value


class Summarizing(Folder):
    async def close(self, summary: Mapping[str, Any]) -> None:
        (self.path / "summary.json").write_text("{}", "ascii")


class Locked(Folder):
    """A crash leaves its lock, and nobody can write to the folder any more."""

    async def open(self, run: Any) -> None:
        await super().open(run)
        (self.path / ".lock").touch(exist_ok=False)

    async def close(self, summary: Mapping[str, Any]) -> None:
        (self.path / ".lock").unlink(missing_ok=True)


class Faithful(Folder):
    """What is there stays as it is, whatever comes later."""

    async def write(self, result: VerificationResult) -> None:
        if not (self.path / f"{result.metadata.result_id}.json").exists():
            await super().write(result)


class Refusing(Folder):
    async def write(self, result: VerificationResult) -> None:
        file = self.path / f"{result.metadata.result_id}.json"
        before = file.read_text("ascii") if file.exists() else None
        await super().write(result)
        if before not in (None, file.read_text("ascii")):
            raise ValueError("another result of this id is there")


class Full(Folder):
    async def write(self, result: VerificationResult) -> None:
        raise OSError("no space left on device")
