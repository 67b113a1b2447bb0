"""Looks at a judge: runs in which it has judged the same labelled answers again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen
from karenina_runs.results.stored import stored_results
from karenina_runs.summaries.rates import DECIDED, is_due

from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.application import Karenina
from karenina_core.values.result import VerificationResult

from ..labels.answers import answer_id
from .sequence import Look


@frozen
class Judged:
    """What one judge said of the labelled answers in one run."""

    run: str
    verdicts: Mapping[str, bool | None] = field(repr=False)
    """By `answer_id`; None where the item ended in an error."""

    def look(self, labels: Mapping[str, bool]) -> Look:
        known = [(self.verdicts[item], labels[item]) for item in self.verdicts]
        agreed = sum(verdict is label for verdict, label in known)
        errors = sum(verdict is None for verdict, _ in known)
        return Look(agreed, len(known) - errors, errors)


def looks_of(
    runs: Iterable[tuple[str, Iterable[VerificationResult]]], labels: Mapping[str, bool]
) -> dict[str, list[Judged]]:
    """By judge, in the order of the runs. Raises ConfigError for a run without a labelled answer."""
    found: dict[str, list[Judged]] = {}
    for name, results in runs:
        own: dict[str, dict[str, bool | None]] = {}
        for result in results:
            about, item = result.metadata, answer_id(result)
            if item in labels and is_due(about) and about.outcome in (*DECIDED, "error"):
                verdict = None if about.outcome == "error" else about.outcome == "passed"
                own.setdefault(about.parsing_model, {})[item] = verdict
        if not own:
            what = f"{name} has none of the labelled answers; judge them again: karenina verify BENCHMARK --answers RUN"
            raise ConfigError([Problem("runs", what)])
        for judge, verdicts in own.items():
            found.setdefault(judge, []).append(Judged(name, verdicts))
    return dict(sorted(found.items()))


def in_time(paths: Sequence[Path], app: Karenina) -> list[tuple[str, Iterable[VerificationResult]]]:
    """Runs, each once, in the order in which they were made, as their manifests say; as they are given where one has
    none."""
    stored = [(path, stored_results(path, app)) for path in {path.resolve(): path for path in paths}.values()]
    times = [str(found.manifest.get("created_at") or "") for _, found in stored]
    if all(times):
        stored = [pair for _, pair in sorted(zip(times, stored, strict=True), key=lambda found: found[0])]
    return [(str(path), found) for path, found in stored]
