"""Where a sink that is checked writes to, what it is given, and what is there afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_runs.results.sinks import RunInfo

from karenina_core.values.result import VerificationResult

from ..checks import Fault
from ..examples import every
from ..strategies import results
from ..watch.loops import in_loop
from ..watch.source_lines import line_of_attribute

__all__ = ["MANY", "Factory", "ReadBack", "SinkSubject", "Target", "examples", "id_of", "replied"]

Factory = Callable[[str], Any]
ReadBack = Callable[[str], Iterable[VerificationResult | str]]
MANY = 12


@cache
def examples() -> tuple[VerificationResult, ...]:
    """Random results, no two of them with the same id."""
    found = every(results(), MANY)
    return tuple(evolve(r, metadata=evolve(r.metadata, result_id=f"{n:016x}")) for n, r in enumerate(found, 1))


def replied(result: VerificationResult, reply: str) -> VerificationResult:
    """The result with another reply of the answering model."""
    return evolve(result, generation=evolve(result.generation, raw_llm_response=reply))


@frozen
class Target:
    """One place to write to."""

    factory: Factory
    reader: ReadBack | None
    path: Path
    secrets: frozenset[str] = frozenset()
    resumed: bool = False

    def sink(self) -> Any:
        return self.factory(str(self.path))

    def info(self) -> RunInfo:
        return RunInfo(
            run_name="conformance",
            run_dir=self.path.parent,
            benchmark="b",
            items=MANY,
            secrets=self.secrets,
            resumed=self.resumed,
        )

    def write(self, written: Sequence[VerificationResult], sink: Any = None) -> None:
        """Open a sink, write the results one after the other, close it."""

        async def run() -> None:
            used = sink or self.sink()
            await used.open(self.info())
            for result in written:
                await used.write(result)
            await used.close({"outcomes": {"passed": len(written)}})

        in_loop(run())

    def stored(self) -> list[VerificationResult | str]:
        return list(self.reader(str(self.path))) if self.reader else []

    def count(self, result: VerificationResult) -> int:
        """How many records there are of a result."""
        identifier = result.metadata.result_id
        if self.reader is None:
            return self.everything().count(identifier.encode())
        return [id_of(record) for record in self.stored()].count(identifier)

    def everything(self) -> bytes:
        """The content of every file."""
        return b"\n".join(file.read_bytes() for file in sorted(self.path.parent.rglob("*")) if file.is_file())


def id_of(record: VerificationResult | str) -> str:
    return record if isinstance(record, str) else record.metadata.result_id


@frozen
class SinkSubject:
    factory: Factory
    reader: ReadBack | None

    @contextmanager
    def target(self, *secrets: str) -> Iterator[Target]:
        with tempfile.TemporaryDirectory(prefix="karenina-sink-") as folder:
            yield Target(self.factory, self.reader, Path(folder) / "results", frozenset(secrets))

    def fault(self, problem: str, method: str, remedy: str = "") -> Fault:
        """A fault of a method of the sink."""
        with self.target() as target:
            return Fault(problem, line_of_attribute(type(target.sink()), method), remedy)
