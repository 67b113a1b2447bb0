"""Comparisons of runs that are given by their paths or as sets of results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from karenina_runs.results.results import VerificationResultSet

from .compare import Results, compare
from .values import Comparison

Run: TypeAlias = str | Path | Results
"""A run directory, a file of results, or results."""


def compare_runs(a: Run, b: Run, **options: Any) -> Comparison:
    """Compare the run B with the run A that was there before. `options` are those of `compare`. Runs of one answering
    model each are compared whatever these are called.

    Raises BenchmarkError where one cannot be read, and ConfigError like `compare`.
    """
    before, after = ([*given] if isinstance(given, Iterator) else given for given in map(_loaded, (a, b)))
    names = [str(run) if isinstance(run, str | Path) else letter for run, letter in zip((a, b), "AB", strict=True)]
    if not options.get("models"):
        options["models"] = _alone(before, after)
    return compare(before, after, **{"names": tuple(names), **options})


def _loaded(run: Run) -> Results:
    return VerificationResultSet.load(run) if isinstance(run, str | Path) else run


def _alone(a: Results, b: Results) -> list[str]:
    """The answering models of both runs, as `compare` takes them, where each has one and they are not the same."""
    one, other = ({result.metadata.answering_model for result in run} for run in (a, b))
    return [f"{one.pop()}={other.pop()}"] if len(one) == len(other) == 1 and one != other else []
