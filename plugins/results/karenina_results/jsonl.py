"""The sink and the file format `jsonl`: one result a line, as a run directory holds them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from karenina_runs.results.sinks import RunInfo
from karenina_runs.results.stored import stored_results

from karenina_core import VerificationResult, hookimpl
from karenina_core.errors import PluginError

from .records import check_same, portable_record, result_of


class JsonLines:
    """Appends results to a file: `target`, or `results.jsonl` in the run directory. A result that is there is not
    written again. Another one of the same id is an error, but in a resumed run: there it follows, the last one counts,
    and when the file is closed it takes the place of the first one."""

    name = "jsonl"

    def __init__(self, target: str = "") -> None:
        self._target = target
        self._path = Path()
        self._file: IO[str] | None = None
        self._written: dict[str, int] = {}
        """The hash of each line, by the id of its result."""
        self._secrets: Collection[str] = ()
        self._resumed = False
        self._replaced = False

    @property
    def ids(self) -> Collection[str]:
        """Those of the results that are there."""
        return self._written.keys()

    async def open(self, run: RunInfo) -> None:
        if self._target:
            path = Path(self._target)
        elif run.run_dir is not None:
            path = run.run_dir / "results.jsonl"
        else:
            raise PluginError("the sink jsonl needs a file: --sink jsonl:FILE")
        self._secrets, self._resumed = run.secrets, run.resumed
        if path.exists():
            _mend(path)
            self._written, self._replaced = _hashes(path)
        self._path = path
        self._file = path.open("a", encoding="utf-8", newline="\n")

    async def write(self, result: VerificationResult) -> None:
        """Raises PluginError where another result of this id is there and the run was not resumed."""
        if self._file is None:
            return
        line = portable_record(result, self._secrets)
        written, known = hash(line.encode("utf-8")), self._written.get(result.metadata.result_id)
        if known == written:
            return
        if known is not None and not self._resumed:
            with self._path.open("rb") as lines:
                last = [there for there in lines if _id(there) == result.metadata.result_id][-1]
            check_same(result_of(line), result_of(last))
            return
        self._replaced = self._replaced or known is not None
        self._file.write(f"{line}\n")
        self._file.flush()
        self._written[result.metadata.result_id] = written

    async def close(self, summary: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
            if self._replaced:
                await asyncio.to_thread(_put_in_place, self._path)


class JsonLinesFile:
    """The file format: every result once, and nothing else."""

    name = "jsonl"
    suffixes = (".jsonl",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{portable_record(result)}\n" for result in results)

    def read(self, path: Path) -> Iterator[VerificationResult]:
        """The results of a file. Raises BenchmarkError naming the line that is none."""
        return iter(stored_results(path))


def _hashes(path: Path) -> tuple[dict[str, int], bool]:
    """The hash of the last line of each id, and whether there are several of one, as a crash leaves them."""
    found: dict[str, int] = {}
    repeated = False
    with path.open("rb") as lines:
        for line in lines:
            if identifier := _id(line):
                repeated = repeated or identifier in found
                found[identifier] = hash(line.removesuffix(b"\n"))
    return found, repeated


def _put_in_place(path: Path) -> None:
    """Rewrite the file with one line for each id: in the place of the first one, with the content of the last one."""
    from karenina_runs.files.atomic_files import replacing

    last: dict[str, int] = {}
    repeated: dict[str, bytes] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            identifier = _id(line)
            if identifier in last:
                repeated[identifier] = line
            elif identifier is not None:
                last[identifier] = number
    if not repeated:
        return
    with replacing(path) as new, path.open("rb") as lines:
        for number, line in enumerate(lines):
            identifier = _id(line)
            if identifier not in repeated:
                new.write(line)
            elif last[identifier] == number:
                new.write(repeated[identifier])


def _id(line: bytes) -> str | None:
    """None where the line is no result."""
    try:
        identifier: str = json.loads(line.decode("utf-8", "replace"))["metadata"]["result_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return identifier


def _mend(path: Path) -> None:
    """Where a crash cut the last line off, take what is left of it away; one that is whole gets its end."""
    with path.open("r+b") as file:
        begin = 0
        for line in file:
            if not line.endswith(b"\n"):
                if _id(line) is not None:
                    file.seek(0, os.SEEK_END)
                    file.write(b"\n")
                else:
                    file.truncate(begin)
                return
            begin += len(line)


@hookimpl
def karenina_register_sinks(registry: Any) -> None:
    registry.add(JsonLines)
