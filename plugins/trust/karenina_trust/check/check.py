"""What a judge made of trials: which fields it misread, in which kinds of answers, and if it says the same again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import asdict, frozen
from karenina_runs.summaries.intervals import Estimate

from karenina_core.values.result import VerificationResult

from ..judges.rates import rate_document, rate_of_rows
from ..judges.trials import WHOLE, Trial

NOT_EXTRACTED = "nothing extracted"
REJECTED = "another value"
CORRECTED = "wrong value corrected"


@frozen(kw_only=True)
class Reading:
    """One field of one trial, as one judge read it."""

    judge: str
    question: str
    """The id of the benchmark's question."""
    trial: str
    kind: str
    field: str
    replicate: int
    extracted: Any
    """As JSON data; None for nothing."""
    problem: str
    """How it was misread; empty where it was not. See `NOT_EXTRACTED`, `REJECTED` and `CORRECTED`."""


@frozen(kw_only=True)
class Check:
    """What one judge made of all trials."""

    judge: str
    trials: int
    """Answers that it has read, repeated ones counted again."""
    errors: int
    """Answers of which its reply could not be used, or there was none: they are in no rate."""
    readings: Sequence[Reading]

    @property
    def misread(self) -> Estimate:
        """The share of readings that are wrong; the readings of a question are a cluster."""
        return rate(self.readings)

    @property
    def consistent(self) -> Estimate | None:
        """The share of fields, over answers that were judged again, that come out the same every time; None where none
        was."""
        groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for reading in self.readings:
            key = (reading.question, reading.trial, reading.field)
            groups[key].append(json.dumps(reading.extracted, sort_keys=True, default=str))
        again = {key: len(set(values)) == 1 for key, values in groups.items() if len(values) > 1}
        return rate_of_rows((key[0], same) for key, same in again.items()) if again else None

    def document(self) -> dict[str, Any]:
        """Plain data; rates are shares from 0 to 1 with limits of 95 %."""
        consistent = self.consistent
        return {
            "judge": self.judge,
            "trials": self.trials,
            "errors": self.errors,
            "readings": len(self.readings),
            "misread": rate_document(self.misread),
            "consistent": None if consistent is None else rate_document(consistent),
            "by_kind": [{"kind": name, **rate_document(found)} for name, found in self.by("kind")],
            "by_field": [
                {"question": name, "field": field, **rate_document(found)}
                for (name, field), found in self.by("question", "field")
            ],
            "misreadings": [asdict(reading) for reading in self.readings if reading.problem],
        }

    def by(self, *names: str) -> list[tuple[Any, Estimate]]:
        """The rates of readings that are alike in these, the worst first."""
        groups: dict[Hashable, list[Reading]] = defaultdict(list)
        for reading in self.readings:
            key = tuple(getattr(reading, name) for name in names)
            groups[key if len(key) > 1 else key[0]].append(reading)
        found = [(key, rate(readings)) for key, readings in groups.items()]
        return sorted(found, key=lambda row: (-(row[1].value or 0), str(row[0])))


def checks(trials: Iterable[Trial], results: Iterable[VerificationResult]) -> list[Check]:
    """One for each judge, ordered by name."""
    known = {trial.id: trial for trial in trials}
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    readings: dict[str, list[Reading]] = defaultdict(list)
    for result in results:
        judge = result.metadata.parsing_model
        counts[judge] += 1
        if result.metadata.outcome == "error":
            errors[judge] += 1
        else:
            readings[judge] += read(known[result.metadata.question_id], result)
    return [
        Check(judge=judge, trials=counts[judge], errors=errors[judge], readings=readings[judge])
        for judge in sorted(counts)
    ]


def read(trial: Trial, result: VerificationResult) -> Iterator[Reading]:
    """Every field that the trial has something to say about. A value that was not extracted is misread; so is a right
    one that the template rejects, and a wrong one that it accepts: the judge did not read that in the answer."""
    template = result.template
    values: Mapping[str, Any] = (template and template.parsed_llm_response) or {}
    found: Mapping[str, Any] = (template and template.field_results) or {}
    for name, right in trial.expected.items():
        if name == WHOLE:
            extracted, passed = dict(values) or None, result.metadata.outcome == "passed"
        else:
            extracted, passed = values.get(name), found.get(name) is True
        problem = ""
        if extracted is None:
            problem = NOT_EXTRACTED
        elif passed is not right:
            problem = REJECTED if right else CORRECTED
        yield Reading(
            judge=result.metadata.parsing_model,
            question=trial.question.id,
            trial=trial.name,
            kind=trial.kind,
            field=name,
            replicate=result.metadata.replicate or 1,
            extracted=extracted,
            problem=problem,
        )


def rate(readings: Iterable[Reading]) -> Estimate:
    """The share that is misread."""
    return rate_of_rows((reading.question, bool(reading.problem)) for reading in readings)
