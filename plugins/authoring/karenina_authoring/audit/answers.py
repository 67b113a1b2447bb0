"""What the answers of models say about items: who passed them, and who did although others know more.

An item tells models apart by correlating with the rest of the benchmark (item-rest correlation; F. M. Lord and
M. R. Novick, "Statistical Theories of Mental Test Scores", 1968). One that weaker models pass and stronger ones fail
most often has a wrong key. What only few models say is a note, and never a fault by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from statistics import correlation, fmean, median
from typing import Any

from attrs import field, frozen
from karenina_runs.summaries.rates import credit

from karenina_core.errors import plural
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.result import VerificationResult

from .findings import Finding
from .words import spelled

ABLE = 0.5
"""Share of the other items that a model passes from which on its answers are evidence against a key. Chosen."""
AGREE = 2 / 3
"""Share of the strong models that give one and the same other value. Chosen."""
FEWEST = 4
"""Models below which a correlation between them says nothing. Chosen."""
RARE = 0.05
"""One-sided chance of so low a correlation, were the models' scores of an item shuffled."""
EXACT = 8
"""Models up to which every order is tried (40,320); of more, as many drawn at random."""


@frozen
class Answers:
    """What models earned by item, and what they said: of results of the items as they are now."""

    credits: Mapping[str, Mapping[str, float]] = field(repr=False)
    """By question and answering model: the mean of all its answers."""
    wrong: Mapping[str, Mapping[str, tuple[str, Hashable]]] = field(repr=False)
    """By question and answering model: a field that it has wrong, with its most frequent value in one spelling."""
    shown: Mapping[Hashable, Any] = field(repr=False)
    other: int = 0
    """Results that are not of the items as they are now."""

    @classmethod
    def of(cls, benchmark: BenchmarkData, results: Iterable[VerificationResult]) -> Answers:
        known = {question.id: (question.question, question.template_id) for question in benchmark}
        credits: dict[str, dict[str, list[float]]] = {}
        values: dict[str, dict[str, Counter[tuple[str, Hashable]]]] = {}
        shown: dict[Hashable, Any] = {}
        other = 0
        for result in results:
            about, template = result.metadata, result.template
            if known.get(about.question_id) != (about.question_text, about.template_id):
                other += 1
                continue
            earned = credit(result)
            if earned is None:
                continue
            credits.setdefault(about.question_id, {}).setdefault(about.answering_model, []).append(earned)
            said = (template.parsed_llm_response or {}) if template is not None else {}
            right = (template.field_results or {}) if template is not None else {}
            of_model = values.setdefault(about.question_id, {}).setdefault(about.answering_model, Counter())
            for name, value in said.items():
                if value is not None and (right.get(name) is False or (not right and earned < 1)):
                    shown.setdefault(spelled(value), value)
                    of_model[name, spelled(value)] += 1
        means = {name: {model: fmean(found) for model, found in of.items()} for name, of in credits.items()}
        most = {
            name: {model: found.most_common(1)[0][0] for model, found in of.items() if found}
            for name, of in values.items()
        }
        return cls(means, most, shown, other)

    def rest(self, question_id: str) -> dict[str, float]:
        """What each model that answered an item earns on average by the others; nothing for one that has none."""
        found = {}
        for model in self.credits.get(question_id, {}):
            others = [of[model] for name, of in self.credits.items() if name != question_id and model in of]
            if others:
                found[model] = fmean(others)
        return found


def answer_findings(answers: Answers) -> Iterator[Finding]:
    """The findings on items that models have answered."""
    for name, own in answers.credits.items():
        rest = answers.rest(name)
        strong = [model for model, rate in rest.items() if rate >= max(ABLE, median(rest.values()))]
        yield from _extremes(name, own, strong)
        yield from _agreement(name, answers, strong)
        yield from _correlation(name, own, rest)


def _extremes(name: str, own: Mapping[str, float], strong: Sequence[str]) -> Iterator[Finding]:
    if len(own) < 2:
        return
    if not any(own.values()):
        message = f"none of {plural(len(own), 'model')} ever passes it"
        if len(strong) > 1:
            message += f", of which {len(strong)} pass most of the others; is the expected value right, and reachable?"
        severity = "suspect" if len(strong) > 1 else "note"
        yield Finding(question_id=name, check="always failed", severity=severity, message=message)  # type: ignore[arg-type]
    elif min(own.values()) >= 1:
        message = f"all of {plural(len(own), 'model')} always pass it: it tells nothing about them"
        yield Finding(question_id=name, check="always passed", severity="note", message=message)


def _agreement(name: str, answers: Answers, strong: Sequence[str]) -> Iterator[Finding]:
    wrong = answers.wrong.get(name, {})
    counted = Counter(wrong[model] for model in strong if model in wrong and answers.credits[name][model] < ABLE)
    if not counted:
        return
    (of_field, key), often = counted.most_common(1)[0]
    weak = [model for model in answers.credits[name] if model not in strong]
    of_weak = sum(wrong.get(model) == (of_field, key) for model in weak)
    if often < 2 or often < AGREE * len(strong) or often * len(weak) < of_weak * len(strong):
        return  # a mistake is made more often by models that know less; the truth is not
    message = (
        f"{often} of {len(strong)} models that pass most of the others agree on {answers.shown[key]!r} "
        f"for {of_field!r}, against the expected value; check it"
    )
    yield Finding(question_id=name, check="agreement against it", severity="suspect", message=message)


def _correlation(name: str, own: Mapping[str, float], rest: Mapping[str, float]) -> Iterator[Finding]:
    scores, rates = [own[model] for model in rest], list(rest.values())
    if len(rates) < FEWEST or len(set(scores)) < 2 or len(set(rates)) < 2:
        return
    found = correlation(scores, rates)
    if found >= 0:
        return
    chance = _chance(scores, rates)
    message = (
        f"models that pass more of the others pass it less: item-rest correlation {found:.2f} over "
        f"{plural(len(rates), 'model')}, one-sided p = {chance:.2g}"
    )
    severity = "suspect" if chance <= RARE else "note"
    yield Finding(question_id=name, check="item-rest correlation", severity=severity, message=message)  # type: ignore[arg-type]


def _chance(scores: Sequence[float], rates: Sequence[float]) -> float:
    """The share of all orders of the scores whose correlation with the rates is as low as this one or lower."""
    limit = sum(a * b for a, b in zip(scores, rates, strict=True)) + 1e-12
    orders: Iterable[Sequence[float]] = permutations(scores)
    if len(scores) > EXACT:
        drawn = random.Random(0)
        orders = (drawn.sample(scores, len(scores)) for _ in range(40_320))
    low = [sum(a * b for a, b in zip(order, rates, strict=True)) <= limit for order in orders]
    return fmean(low)
