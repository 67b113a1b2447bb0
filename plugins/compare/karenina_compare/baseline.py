"""Gates of `karenina verify`, and of `karenina resume` of such a run, that compare the run with an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from karenina_core.errors import BenchmarkError, ConfigError, Problem

from .plugin import NAME

if TYPE_CHECKING:
    from karenina_runs.plan.items import Prepared
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.summaries.gates import Gate

    from .settings import CompareSettings


def asked(prepared: Prepared) -> Callable[[VerificationResultSet], Sequence[Gate]] | None:
    """What gives the gates for the results of a run; None where none are asked for.

    Raises ConfigError where the earlier run is missing or cannot be read, before anything is paid for.
    """
    settings: CompareSettings | None = prepared.app.settings(NAME)
    if settings is None or not (settings.baseline or settings.max_drop is not None or settings.fail_on_regression):
        return None
    if settings.baseline is None:
        what = "compare with an earlier run; add --baseline DIR"
        raise ConfigError([Problem("--max-drop and --fail-on-regression", what)])
    if settings.max_drop is None and not settings.fail_on_regression:
        raise ConfigError([Problem("--baseline", "has no effect alone; add --max-drop 0.05 or --fail-on-regression")])
    from karenina_runs.results.results import VerificationResultSet

    try:
        before = VerificationResultSet.load(Path(settings.baseline))
    except BenchmarkError as error:
        raise ConfigError([Problem("--baseline", str(error))]) from None
    if not before:
        what = f"{settings.baseline} holds no results; name the directory of a run that has some"
        raise ConfigError([Problem("--baseline", what)])
    return lambda results: _gates(before, results, settings)


def _gates(before: VerificationResultSet, after: VerificationResultSet, settings: CompareSettings) -> Sequence[Gate]:
    from karenina_runs.summaries.gates import Gate

    from .comparison.gates import Limits, gates
    from .comparison.loaded import compare_runs

    limits = Limits(
        no_regression=settings.fail_on_regression,
        max_drop=settings.max_drop,
        undecided=settings.undecided,
        tolerated_drop=settings.tolerated_drop,
    )
    try:
        return gates(compare_runs(before, after, metrics=["pass_rate"]), limits)
    except ConfigError as error:  # items changed; the run is done, and its results are printed all the same
        return [Gate("regression", str(settings.baseline), False, f"cannot be decided: {error}")]
