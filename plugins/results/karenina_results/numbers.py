"""The headline numbers of a set of results, each with what it rests on: counts, an interval, and what is missing.

Items of one question are never taken as independent: where a question was asked several times, or of several models,
it counts as one cluster. `groups` of questions make larger ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen

from karenina_core.model.result import VerificationResult
from karenina_core.run.directory import MANIFEST

from .headline import Bounds, Headline, Number, Numbers, Repeated
from .measures import ABSENT, ANSWERED, PASS_RATE, Item, Measure, Measures, Reading
from .question_groups import Cluster, Groups, group_notes, group_of, groups_of
from .statistics import Estimate, cluster_mean, cluster_rate, mean_interval, pass_at_k, pass_hat_k, wilson

__all__ = [
    "Bounds",
    "Headline",
    "Number",
    "Numbers",
    "Repeated",
    "doubles",
    "estimate",
    "headline_numbers",
    "headline_of",
    "planned_items",
    "unfinished",
]

Planned: TypeAlias = Collection[tuple[str, int]]
"""The items that every pair of models was to have: (question id, replicate)."""

COVERAGE = Measure(name="coverage", is_rate=True, lowest=0, highest=1)


def headline_numbers(
    results: Iterable[VerificationResult],
    *,
    cluster: Cluster | None = None,
    planned: Planned | None = None,
    level: float = 0.95,
) -> Headline:
    """The numbers of each pair of models and of all results together.

    `cluster` says which questions belong together; `planned` which items each pair was to have (see `planned_items`),
    so that those that are not there count as missing.
    """
    return headline_of(map(Item.of, results), cluster=cluster, planned=planned, level=level)


def headline_of(
    items: Iterable[Item],
    *,
    cluster: Cluster | None = None,
    planned: Planned | None = None,
    level: float = 0.95,
) -> Headline:
    """`headline_numbers` of items whose traits have been read."""
    ordered = sorted(items, key=_order)
    listed = [item.result for item in ordered]
    measures = Measures.of(ordered)
    groups = groups_of(listed, cluster)
    read = [(item.result, measures.read(item)) for item in ordered]
    pairs: dict[tuple[str, str], list[tuple[VerificationResult, Mapping[str, Reading]]]] = {}
    for result, readings in read:
        models = (result.metadata.answering_model, result.metadata.parsing_model)
        pairs.setdefault(models, []).append((result, readings))
    absent = {pair: _absent(own, planned) for pair, own in pairs.items()}
    made = _Maker(measures, groups, level)
    return Headline(
        pairs=tuple(
            evolve(made.numbers(own, absent[pair]), answering=pair[0], parsing=pair[1]) for pair, own in pairs.items()
        ),
        overall=made.numbers(read, [question for missing in absent.values() for question in missing]),
        level=level,
        notes=(
            *(f"{name}: {why}" for name, why in measures.conflicts.items()),
            *group_notes(listed, cluster),
            *doubles(listed),
        ),
    )


def doubles(results: Iterable[VerificationResult]) -> tuple[str, ...]:
    """A note on items that are there more than once, if any are."""
    abouts = (result.metadata for result in results)
    seen = Counter((about.answering_model, about.parsing_model, about.question_id, about.replicate) for about in abouts)
    more = sum(seen.values()) - len(seen)
    return (f"{more} more items of the same models, question and replicate; they count as replicates",) if more else ()


def planned_items(run_dir: Path | None) -> Planned | None:
    """What a run was to ask, as its manifest tells: every question with each of its replicates; None where it does not.

    It is that of the whole run: not for results that were filtered.
    """
    try:
        manifest = _manifest(run_dir)
        replicates = manifest["config"].get("replicate_count") or 1
        return frozenset((str(q), number) for q in manifest["questions"] for number in range(1, replicates + 1))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def unfinished(run_dir: Path, items: int) -> tuple[str, ...]:
    """A note where a run planned more than these items, be it that a model was never asked."""
    try:
        planned = int(_manifest(run_dir)["items"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return (f"{items} of {planned} planned items have a result",) if items < planned else ()


def _manifest(run_dir: Path | None) -> Any:
    return json.loads((run_dir / MANIFEST).read_text("utf-8")) if run_dir else {}


def estimate(
    values: Sequence[float], questions: Sequence[str], groups: Groups, measure: Measure, level: float = 0.95
) -> Estimate:
    """The mean of values with its interval, `questions` being whose each value is. Limits stay on the scale."""
    clusters = [group_of(question, groups) for question in questions]
    if len(set(clusters)) == len(values):
        found = _of_independent(values, measure, level)
    else:
        found = (cluster_rate if measure.is_rate else cluster_mean)(values, clusters, level)
    return _on_scale(found, measure)


def _of_independent(values: Sequence[float], measure: Measure, level: float) -> Estimate:
    if not measure.is_rate:
        return mean_interval(values, level)
    passed, n = int(sum(values)), len(values)
    interval = wilson(passed, n, level)
    note = "" if interval else "there are no values"
    return Estimate(value=passed / n if n else None, n=n, method="wilson", interval=interval, note=note)


def _on_scale(found: Estimate, measure: Measure) -> Estimate:
    if found.interval is None:
        return found
    low, high = found.interval.low, found.interval.high
    low = low if measure.lowest is None else max(low, measure.lowest)
    high = high if measure.highest is None else min(high, measure.highest)
    return evolve(found, interval=evolve(found.interval, low=low, high=high))


Items: TypeAlias = Sequence[tuple[VerificationResult, Mapping[str, Reading]]]
"""Items and what each says of every measure."""
Rows: TypeAlias = list[tuple[str, Reading]]
"""(question, what an item of it says)."""


@frozen
class _Maker:
    measures: Measures
    groups: Groups
    level: float

    def numbers(self, items: Items, absent: Sequence[str]) -> Numbers:
        """`absent` are the questions of items that are not there."""
        rows: dict[str, Rows] = {name: [] for name in self.measures.known}
        results = [result for result, _ in items]
        for result, readings in items:
            for name, reading in readings.items():
                rows[name].append((result.metadata.question_id, reading))
        verdicts = bool(rows.get(PASS_RATE.name))
        lost = [(question, Reading(None, ABSENT)) for question in absent] if verdicts else []
        passed = [*rows.get(PASS_RATE.name, ()), *lost]
        answered = [(q, r) for q, r in rows.get(ANSWERED.name, ()) if r.value is not None or _no_verdict(r)]
        traits = [measure for name, measure in self.measures.known.items() if measure.owner and rows[name]]
        details = Counter((r.metadata.outcome, r.metadata.outcome_detail or "unknown") for r in results)
        return Numbers(
            items=len(results),
            absent=len(absent),
            outcomes=dict(sorted(Counter(result.metadata.outcome for result in results).items())),
            errors={detail: n for (outcome, detail), n in sorted(details.items()) if outcome == "error"},
            guards={detail: n for (outcome, detail), n in sorted(details.items()) if outcome == "auto_failed"},
            pass_rate=self._number(PASS_RATE, passed),
            answered_accuracy=self._number(ANSWERED, [*answered, *lost]),
            coverage=self._number(COVERAGE, _covered(results, absent) if verdicts else []),
            repeated=self._repeated(passed),
            traits=tuple(self._number(measure, rows[measure.name]) for measure in traits),
        )

    def _number(self, measure: Measure, rows: Rows) -> Number:
        kept = [(question, reading.value) for question, reading in rows if reading.value is not None]
        found = self._estimate(measure, kept)
        missing = Counter(reading.reason for _, reading in rows if reading.value is None)
        return Number(
            name=measure.name,
            value=found.value,
            interval=found.interval,
            standard_error=found.standard_error,
            method=found.method,
            items=len(kept),
            questions=len({question for question, _ in kept}),
            clusters=found.clusters,
            missing=dict(sorted(missing.items())),
            bounds=self._bounds(measure, rows) if missing else None,
            higher_is_better=measure.higher_is_better,
            note=found.note,
        )

    def _estimate(self, measure: Measure, rows: Sequence[tuple[str, float]]) -> Estimate:
        values, questions = [value for _, value in rows], [question for question, _ in rows]
        return estimate(values, questions, self.groups, measure, self.level)

    def _bounds(self, measure: Measure, rows: Rows) -> Bounds | None:
        if measure.lowest is None or measure.highest is None:
            return None
        ends: list[Estimate] = []
        for instead in (measure.lowest, measure.highest):
            filled = [(question, instead if r.value is None else r.value) for question, r in rows]
            ends.append(self._estimate(measure, filled))
        worst, best = ends
        low = worst.interval.low if worst.interval else None
        high = best.interval.high if best.interval else None
        return Bounds(worst.value or 0.0, best.value or 0.0, low, high)

    def _repeated(self, rows: Rows) -> tuple[Repeated, ...]:
        """For k = 2, 4, 8, ... and the largest number of answers to a question."""
        asked, answers = Counter(question for question, _ in rows), Counter[str]()
        passed = Counter[str]()
        for question, reading in rows:
            answers[question] += reading.value is not None
            passed[question] += int(reading.value or 0)
        most = max(asked.values(), default=0)
        sizes = sorted({k for k in (2**power for power in range(1, most.bit_length())) if k <= most} | {most} - {0, 1})
        return tuple(self._k_answers(k, passed, answers) for k in sizes)

    def _k_answers(self, k: int, passed: Counter[str], answers: Counter[str]) -> Repeated:
        enough = [question for question in sorted(answers) if answers[question] >= k]
        hits, asked = [passed[question] for question in enough], [answers[question] for question in enough]
        clusters: list[Hashable] | None = [group_of(q, self.groups) for q in enough] if self.groups else None
        both = [of(hits, asked, k, self.level, clusters) for of in (pass_at_k, pass_hat_k)]
        return Repeated(
            k=k,
            at_least_one=both[0],
            all_of_them=both[1],
            questions=len(enough),
            left_out=len(answers) - len(enough),
        )


def _no_verdict(reading: Reading) -> bool:
    """Whether nothing is known, unlike of an answer that is neither right nor wrong, such as an abstention."""
    return reading.reason.partition("(")[0] in ("error", "skipped", ABSENT)


def _covered(results: Sequence[VerificationResult], absent: Sequence[str]) -> Rows:
    seen = [(r.metadata.question_id, Reading(float(r.metadata.outcome in ("passed", "failed")))) for r in results]
    return [*seen, *((question, Reading(0.0)) for question in absent)]


def _absent(items: Items, planned: Planned | None) -> list[str]:
    there = {(result.metadata.question_id, result.metadata.replicate) for result, _ in items}
    return sorted(question for question, replicate in set(planned or ()) - there)


def _order(item: Item) -> tuple[str, str, str, int, str]:
    about = item.result.metadata
    return (about.answering_model, about.parsing_model, about.question_id, about.replicate, about.result_id)
