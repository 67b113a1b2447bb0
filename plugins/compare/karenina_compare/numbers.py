"""The headline numbers of a set of results, each with what it rests on: counts, an interval, and what is missing.

Items of one question are never taken as independent: where a question was asked several times, or of several models,
it counts as one cluster. `groups` of questions make larger ones.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from attrs import evolve, frozen
from karenina_runs.files.run_files import MANIFEST
from karenina_runs.summaries.intervals import Clusters, Estimate, rate_of
from karenina_runs.summaries.rates import CREDIT_UNIT, credit_of, is_due

from karenina_core.values.result import MetadataPart, VerificationResult

from .headline import Bounds, Headline, Number, Numbers, Repeated
from .measures import ABSENT, ANSWERED, PARTIAL_CREDIT, PASS_RATE, Item, Measure, Measures, Reading, mean
from .question_groups import Cluster, Groups, Named, first_groups, group_notes, group_of, groups_named
from .statistics.means import cluster_mean, mean_interval
from .statistics.replicates import pass_at_k, pass_hat_k

Planned: TypeAlias = Mapping[str, int]
"""How often every pair of models was to answer each question, by its id."""

COVERAGE = Measure(name="coverage", is_rate=True)
UNKNOWN = ("error", "skipped", ABSENT)
"""Why nothing is known of an answer, unlike of one that is neither right nor wrong, such as an abstention."""
MACRO = Measure(name="macro_average", is_rate=False, lowest=0, highest=1)
MIXED = "what several models or several judges say is not a repeated answer of one of them; see each pair of models"
TWICE = "some items of the same models, question and replicate occur more than once; give each of them once"


def headline_numbers(
    results: Iterable[VerificationResult],
    *,
    cluster: Cluster | None = None,
    planned: Planned | None = None,
    k: Collection[int] | None = None,
    level: float = 0.95,
) -> Headline:
    """The numbers of each pair of models and of all results together.

    `cluster` says which questions belong together; `planned` how often each pair was to answer each question, so that
    items that are not there count as missing: by default what a set of a whole run knows. `k` are those of pass@k and
    pass^k, as far as there are so many answers; by default the powers of 2 and the divisors of the largest number of
    answers to a question.
    """
    own = getattr(results, "planned", None)
    pairs = own.pairs if own is not None and planned is None else ()
    planned = planned_of(results, planned)
    listed = list(results)
    named = groups_named(listed, cluster)
    items = [Item.of(result, keep=False) for result in listed]
    return headline_of(items, named=named, planned=planned, pairs=pairs, k=k, level=level)


def planned_of(results: Iterable[VerificationResult], planned: Planned | None = None) -> Planned | None:
    """What was planned: as given, or as a set of results of a whole run says."""
    own = getattr(results, "planned", None)
    if planned is not None or own is None:
        return planned
    return dict.fromkeys(own.questions, len(own.replicates))


def headline_of(
    items: Iterable[Item],
    *,
    named: Named = MappingProxyType({}),
    planned: Planned | None = None,
    pairs: Iterable[tuple[str, str]] = (),
    k: Collection[int] | None = None,
    level: float = 0.95,
) -> Headline:
    """`headline_numbers` of items that have been read, and of the groups that they name. The items of `pairs` of models
    without any result are missing in all results together."""
    ordered = sorted(items, key=lambda item: (*item.models, item.question_id, item.replicate, item.result_id))
    measures = Measures.of(ordered)
    read = _Read.of(ordered, measures)
    places: dict[tuple[str, str], tuple[int, int]] = {}
    keywords: dict[str, set[str]] = {}
    for place, item in enumerate(ordered):
        places[item.models] = (places.get(item.models, (place, place))[0], place + 1)
        if item.keywords:
            keywords.setdefault(item.question_id, set()).update(item.keywords)
    found = {pair: read.part(*limits) for pair, limits in places.items()}
    absent = {}
    for pair in (*found, *pairs):
        there = Counter(item.question_id for item in found[pair].items) if pair in found else Counter()
        absent[pair] = sorted((Counter(planned or {}) - there).elements())  # a question as often as one is missing
    made = _Maker(measures, first_groups(named), level, k, keywords)
    return Headline(
        pairs=tuple(
            evolve(made.numbers(own, absent[pair]), answering=pair[0], parsing=pair[1]) for pair, own in found.items()
        ),
        overall=made.numbers(read, [question for missing in absent.values() for question in missing]),
        level=level,
        notes=(
            *(f"{name}: {why}" for name, why in measures.conflicts.items()),
            *group_notes(named),
            *doubles(ordered),
        ),
    )


def doubles(abouts: Iterable[Item | MetadataPart]) -> tuple[str, ...]:
    """A note on items that are there more than once, if any are."""
    seen = Counter((about.answering_model, about.parsing_model, about.question_id, about.replicate) for about in abouts)
    more = sum(seen.values()) - len(seen)
    if not more:
        return ()
    return (f"{more} more items of the same models, question and replicate; they are in the rates, and not in pass@k",)


def planned_items(run_dir: Path) -> int:
    """How many items a run planned, of all models together; 0 where its manifest does not say."""
    try:
        return int(json.loads((run_dir / MANIFEST).read_text("utf-8"))["items"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def unfinished(run_dir: Path, items: int) -> tuple[str, ...]:
    """A note where a run planned more than these items, be it that a model was never asked."""
    planned = planned_items(run_dir)
    return (f"{items} of {planned} planned items have a result",) if items < planned else ()


def estimate(
    values: Sequence[float], questions: Sequence[str], groups: Groups, measure: Measure, level: float = 0.95
) -> Estimate:
    """The mean of values with its interval, `questions` being whose each value is. Limits stay on the scale."""
    clusters = [group_of(question, groups) for question in questions]
    if measure.is_rate:
        return rate_of(_sums(values, clusters), level=level)
    if measure is PARTIAL_CREDIT:
        whole = all(value in (0, 1) for value in values)
        return credit_of(_sums(values, clusters, CREDIT_UNIT), whole=whole, level=level)
    alone = len(set(clusters)) == len(values)
    found = mean_interval(values, level) if alone else cluster_mean(values, clusters, level)
    if found.interval is None:
        return found
    low, high = found.interval.low, found.interval.high
    low = low if measure.lowest is None else max(low, measure.lowest)
    high = high if measure.highest is None else min(high, measure.highest)
    return evolve(found, interval=evolve(found.interval, low=low, high=high))


def _sums(values: Sequence[float], clusters: Sequence[Hashable], unit: int = 1) -> Clusters:
    """Sums in whole numbers of 1/`unit`."""
    sums: dict[Hashable, tuple[int, int]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        total, number = sums.get(cluster, (0, 0))
        sums[cluster] = (total + int(value * unit), number + 1)
    return Clusters.of(sums.values())


Rows: TypeAlias = list[tuple[str, Reading]]
"""(question, what an item of it says)."""


@frozen
class _Read:
    """Items, and what they say, measure by measure: less by far than a table for each item."""

    items: Sequence[Item]
    said: Mapping[str, tuple[array[int], list[Reading]]]
    """By the name of the measure: the places of the items of which it is due, and what they say."""
    first: int = 0
    """The place of the first of these items."""

    @classmethod
    def of(cls, items: Sequence[Item], measures: Measures) -> _Read:
        said: dict[str, tuple[array[int], list[Reading]]] = {name: (array("l"), []) for name in measures.known}
        for place, item in enumerate(items):
            for name, reading in measures.read(item).items():
                places, readings = said[name]
                places.append(place)
                readings.append(reading)
        return cls(items, said)

    def part(self, low: int, high: int) -> _Read:
        return _Read(self.items[low:high], self.said, low)

    def rows(self, measure: Measure) -> Rows:
        places, readings = self.said.get(measure.name, ((), ()))
        low = bisect_left(places, self.first)
        high = bisect_left(places, self.first + len(self.items))
        questions = (self.items[place - self.first].question_id for place in places[low:high])
        return list(zip(questions, readings[low:high], strict=True))


@frozen
class _Maker:
    measures: Measures
    groups: Groups
    level: float
    k: Collection[int] | None
    keywords: Mapping[str, Collection[str]]
    """By question."""

    def numbers(self, read: _Read, absent: Sequence[str]) -> Numbers:
        """`absent` are the questions of items that are not there."""
        items, own = read.items, read.rows(PASS_RATE)
        verdicts = bool(own)
        lost = [(question, Reading(None, ABSENT)) for question in absent] if verdicts else []
        passed = [*own, *lost]
        answered = [
            (question, reading)
            for question, reading in read.rows(ANSWERED)
            if reading.value is not None or reading.reason.partition("(")[0] in UNKNOWN
        ]
        # why several items of a question are not several answers of one model to it, judged once each
        mixed = ""
        if len({item.models for item in items}) > 1:
            mixed = MIXED
        elif len({(item.question_id, item.replicate) for item in items}) < len(items):
            mixed = TWICE
        due = (item for item in items if is_due(item))
        covered = [(item.question_id, Reading(float(item.outcome in ("passed", "failed")))) for item in due]
        covered += [(question, Reading(0.0)) for question in absent]
        traits = (measure for measure in self.measures.known.values() if measure.owner)
        details = Counter((item.outcome, item.outcome_detail or "unknown") for item in items)
        return Numbers(
            items=len(items),
            absent=len(absent),
            outcomes=dict(sorted(Counter(item.outcome for item in items).items())),
            errors={detail: n for (outcome, detail), n in sorted(details.items()) if outcome == "error"},
            guards={detail: n for (outcome, detail), n in sorted(details.items()) if outcome == "auto_failed"},
            failures=dict(sorted(Counter(item.failure for item in items if item.failure).items())),
            pass_rate=self._number(PASS_RATE, passed),
            partial_credit=self._number(PARTIAL_CREDIT, [*read.rows(PARTIAL_CREDIT), *lost]),
            answered_accuracy=self._number(ANSWERED, [*answered, *lost]),
            coverage=self._number(COVERAGE, covered if verdicts else []),
            by_keyword=(by_keyword := self._by_keyword(passed)),
            macro_questions=self._over_questions(passed),
            macro_keywords=mean([number.value for number in by_keyword if number.value is not None]),
            repeated=() if mixed else self._repeated(passed),
            unrepeated=mixed,
            traits=tuple(self._number(measure, rows) for measure in traits if (rows := read.rows(measure))),
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

    def _over_questions(self, rows: Rows) -> Number:
        """The mean of the questions' pass rates: the pass rate itself where every question has equally many items."""
        questions: dict[str, list[Reading]] = {}
        for question, reading in rows:
            questions.setdefault(question, []).append(reading)
        means: Rows = []
        for question, own in questions.items():
            value = mean([reading.value for reading in own if reading.value is not None])
            means.append((question, Reading(value, own[0].reason if value is None else "")))
        found = self._number(MACRO, means)
        sizes = Counter(question for question, reading in rows if reading.value is not None)
        if len(set(sizes.values())) != 1:
            return found
        often = max(sizes.values())
        even = [(question, reading) for question, reading in rows if reading.value is not None]
        even += [row for row in means if row[1].value is None for _ in range(often)]
        rate = self._number(PASS_RATE, even)
        return evolve(rate, name=found.name, items=found.items, missing=found.missing)

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

    def _by_keyword(self, rows: Rows) -> tuple[Number, ...]:
        """The pass rate of the questions of each keyword; a question with several is in each of them."""
        found: dict[str, Rows] = {}
        for question, reading in rows:
            for word in self.keywords.get(question, ()):
                found.setdefault(word, []).append((question, reading))
        return tuple(evolve(self._number(PASS_RATE, found[word]), name=word) for word in sorted(found))

    def _repeated(self, rows: Rows) -> tuple[Repeated, ...]:
        asked, answers = Counter(question for question, _ in rows), Counter[str]()
        passed = Counter[str]()
        for question, reading in rows:
            answers[question] += reading.value is not None
            passed[question] += int(reading.value or 0)
        most = max(asked.values(), default=0)
        usual = [k for k in range(2, most + 1) if most % k == 0 or k & (k - 1) == 0]
        sizes = usual if self.k is None else sorted({k for k in self.k if 1 <= k <= most})
        found = []
        for k in sizes:
            enough = [question for question in sorted(answers) if answers[question] >= k]
            hits, samples = [passed[question] for question in enough], [answers[question] for question in enough]
            clusters: list[Hashable] | None = [group_of(q, self.groups) for q in enough] if self.groups else None
            found.append(
                Repeated(
                    k=k,
                    at_least_one=pass_at_k(hits, samples, k, self.level, clusters),
                    all_of_them=pass_hat_k(hits, samples, k, self.level, clusters),
                    questions=len(enough),
                    left_out=len(answers) - len(enough),
                )
            )
        return tuple(found)
