"""How far judges agree about the same answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from attrs import asdict, field, frozen
from karenina_runs.summaries.intervals import Clusters, Estimate, Interval, rate_of, t_quantile
from karenina_runs.summaries.rates import DECIDED, is_due

from karenina_core.values.result import VerificationResult


@frozen(kw_only=True)
class Agreement:
    """Two judges who read the same answers."""

    judge_a: str
    judge_b: str
    answering: str | None
    """The model whose answers these are; None for those of all models."""
    items: int
    """Answers of which both have a verdict."""
    both_pass: int
    only_a: int
    """Answers that A passed and B did not."""
    only_b: int
    both_fail: int
    agreement: Estimate = field(repr=False)
    """The share of the answers with the same verdict, answers to one question taken together."""
    kappa: float | None
    """Cohen's kappa: 1 is full agreement, 0 as much as by chance. None where both judges gave every answer the same
    verdict, so that chance alone would agree on everything."""
    kappa_interval: Interval | None = field(repr=False)
    """Of 95 %; None with fewer than two questions, and where kappa cannot be computed without one of them."""
    disagree_on: tuple[str, ...] = field(repr=False)
    """Questions with an answer that they judge differently."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `pandas.DataFrame([row.to_dict() for row in judge_agreement(results)])` is a table."""
        about = {name: value for name, value in asdict(self, recurse=False).items() if name in PLAIN}
        rate, limits = self.agreement, self.agreement.interval
        return {
            **about,
            "agreement": rate.value,
            "agreement_low": limits.low if limits else None,
            "agreement_high": limits.high if limits else None,
            "kappa_low": self.kappa_interval.low if self.kappa_interval else None,
            "kappa_high": self.kappa_interval.high if self.kappa_interval else None,
            "disagree_on": list(self.disagree_on),
        }


PLAIN = ("judge_a", "judge_b", "answering", "items", "both_pass", "only_a", "only_b", "both_fail", "kappa")


def judge_agreement(results: Iterable[VerificationResult], *, by_model: bool = False) -> list[Agreement]:
    """The agreement of every two judges, ordered by name; `by_model`: for each answering model.

    A verdict is whether an item passed. Items that ended in an error are left out, and so are answers that only one of
    two judges has a verdict of.
    """
    found: dict[str, dict[tuple[str, int, Hashable], bool]] = {}
    for result in results:
        about = result.metadata
        if is_due(about) and about.outcome in DECIDED:
            answer = (about.question_id, about.replicate, about.answering_model)
            found.setdefault(about.parsing_model, {})[answer] = about.outcome == "passed"
    models: list[str | None] = [None]
    if by_model:
        models = [*sorted({str(answer[2]) for verdicts in found.values() for answer in verdicts})]
    rows = []
    for one, other in combinations(sorted(found), 2):
        for model in models:
            both = {
                answer: (passed, found[other][answer])
                for answer, passed in found[one].items()
                if answer in found[other] and model in (None, answer[2])
            }
            rows += [_agreement((one, other, model), both)] if both else []
    return rows


def _agreement(
    names: tuple[str, str, str | None], verdicts: Mapping[tuple[str, int, Hashable], tuple[bool, bool]]
) -> Agreement:
    by_question: dict[str, list[int]] = {}
    for (question, _, _), (a, b) in verdicts.items():
        by_question.setdefault(question, [0, 0, 0, 0])[(not a) * 2 + (not b)] += 1
    counts = [sum(column) for column in zip(*by_question.values(), strict=True)]
    clusters = Clusters.of((own[0] + own[3], sum(own)) for own in by_question.values())
    return Agreement(
        judge_a=names[0],
        judge_b=names[1],
        answering=names[2],
        items=sum(counts),
        both_pass=counts[0],
        only_a=counts[1],
        only_b=counts[2],
        both_fail=counts[3],
        agreement=rate_of(clusters),
        kappa=_kappa(counts),
        kappa_interval=_jackknife(counts, list(by_question.values())),
        disagree_on=tuple(sorted(question for question, own in by_question.items() if own[1] or own[2])),
    )


def cohens_kappa(counts: Sequence[Sequence[int]], weights: Sequence[Sequence[float]] | None = None) -> float | None:
    """(p_o - p_e) / (1 - p_e), p_e being the agreement of two judges who say each as often, independently.

    `counts[a][b]` items are in one judge's category `a` and in the other's `b`; `weights[a][b]` is how much of an
    agreement that is, else 1 for the same category and 0 for others. None where nothing can be said of chance.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960)
    37-46; weighted, Psychological Bulletin 70 (1968) 213-220.
    """
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    n, observed, chance = sum(rows), 0.0, 0.0  # parts of n * n
    for a, row in enumerate(counts):
        for b, count in enumerate(row):
            weight = float(a == b) if weights is None else weights[a][b]
            observed += weight * count * n
            chance += weight * rows[a] * columns[b]
    return None if chance >= n * n else (observed - chance) / (n * n - chance)


def _kappa(counts: Sequence[int]) -> float | None:
    """Of items that both pass, that only the first passes, that only the other one passes, and that both fail."""
    return cohens_kappa([counts[:2], counts[2:]])


def _jackknife(counts: list[int], by_question: list[list[int]]) -> Interval | None:
    """Student's t interval with the error that leaving out one question at a time gives.

    B. Efron, C. Stein, "The jackknife estimate of variance", Annals of Statistics 9 (1981) 586-596.
    """
    groups, whole = len(by_question), _kappa(counts)
    if groups < 2 or whole is None:
        return None
    found = [_kappa([all_ - own for all_, own in zip(counts, of, strict=True)]) for of in by_question]
    values = sorted(value for value in found if value is not None)  # sums depend on the order
    if len(values) < groups:
        return None
    mean = sum(values) / groups
    error = ((groups - 1) / groups * sum((value - mean) ** 2 for value in values)) ** 0.5
    half = t_quantile(0.975, groups - 1) * error
    return Interval(max(-1.0, whole - half), min(1.0, whole + half), 0.95, "jackknife")
