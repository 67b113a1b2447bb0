"""`VerificationResultSet`: the results of a run, in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from attrs import evolve, field, frozen

from ..errors import BenchmarkError, ConfigError
from ..model.convert import structure
from ..model.result import VerificationResult
from .directory import MANIFEST, RESULTS
from .prepare import LeftOut
from .summary import summarize

__all__ = ["VerificationResultSet"]


def _results(value: Iterable[VerificationResult]) -> tuple[VerificationResult, ...]:
    return tuple(value)


def _count(results: tuple[VerificationResult, ...]) -> str:
    return f"<{len(results)}>"


@frozen
class VerificationResultSet(Sequence[VerificationResult]):
    """Results in the order in which they were finished, and what belongs to the run as a whole."""

    results: tuple[VerificationResult, ...] = field(default=(), converter=_results, repr=_count)
    run_dir: Path | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    sink_failures: Mapping[str, str] = field(factory=dict)
    """Sinks that failed during the run, and how."""

    @classmethod
    def load(cls, path: str | Path) -> VerificationResultSet:
        """Read a run directory or a `results.jsonl`. Raises BenchmarkError naming the line that cannot be read."""
        path = Path(path)
        directory = path if path.is_dir() else path.parent
        file = path / RESULTS if path.is_dir() else path
        try:
            lines = file.read_text("utf-8").split("\n")  # other line separators may stand inside texts
        except (OSError, UnicodeDecodeError) as error:
            raise BenchmarkError(
                f"the results {file} cannot be read: {error}; give a run directory or its {RESULTS}"
            ) from error
        results = {}
        notes: tuple[str, ...] = ()
        for number, line in enumerate(lines, 1):
            try:
                result = _read(file, number, line) if line.strip() else None
            except BenchmarkError:
                if number < len(lines):  # every whole line ends with a newline; what follows the last was cut off
                    raise
                notes = (f"{file}, line {number} was cut off while it was written and is left out",)
                continue
            if result is not None:
                results[result.metadata.result_id] = result
        return cls(tuple(results.values()), directory, _left_out(directory), notes)

    @overload
    def __getitem__(self, index: int) -> VerificationResult: ...
    @overload
    def __getitem__(self, index: slice) -> VerificationResultSet: ...
    def __getitem__(self, index: int | slice) -> VerificationResult | VerificationResultSet:
        return evolve(self, results=self.results[index]) if isinstance(index, slice) else self.results[index]

    def __iter__(self) -> Iterator[VerificationResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def filter(
        self,
        *,
        question_ids: Iterable[str] | None = None,
        answering_models: Iterable[str] | None = None,
        parsing_models: Iterable[str] | None = None,
        replicates: Iterable[int] | None = None,
        outcomes: Iterable[str] | None = None,
        where: Callable[[VerificationResult], bool] | None = None,
    ) -> VerificationResultSet:
        """The results for which every given condition holds.

        Models are named as `result.metadata.answering_model` has them.
        """
        wanted: list[tuple[Callable[[VerificationResult], Any], set[Any]]] = [
            (get, set(values))
            for get, values in (
                (lambda r: r.metadata.question_id, question_ids),
                (lambda r: r.metadata.answering_model, answering_models),
                (lambda r: r.metadata.parsing_model, parsing_models),
                (lambda r: r.metadata.replicate, replicates),
                (lambda r: r.metadata.outcome, outcomes),
            )
            if values is not None
        ]
        kept = [
            r for r in self.results if all(get(r) in values for get, values in wanted) and (where is None or where(r))
        ]
        return evolve(self, results=tuple(kept))

    def get_summary(self) -> dict[str, Any]:
        """Counts, rates, calls and cost, as `karenina verify --json` prints them."""
        return summarize(self.results, run_dir=self.run_dir, left_out=self.left_out, notes=self.notes)


def _read(file: Path, number: int, line: str) -> VerificationResult:
    try:
        return structure(json.loads(line), VerificationResult)
    except (ValueError, ConfigError) as error:
        raise BenchmarkError(f"{file}, line {number}: not a result: {error}") from error


def _left_out(directory: Path) -> tuple[LeftOut, ...]:
    try:
        listed = json.loads((directory / MANIFEST).read_text("utf-8"))["left_out"]
        return tuple(LeftOut(row["question_id"], row["reason"]) for row in listed)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
