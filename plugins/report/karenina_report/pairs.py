"""What every pair of answering model and judge came to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, TypeAlias

from attrs import frozen
from karenina_compare.headline import Headline, Number, Numbers
from karenina_results.columns.shared import failure_of
from karenina_runs.summaries.summary import summarize, usage_by_task

from karenina_core import VerificationResult
from karenina_core.values.identity import ModelIdentity

from .outcomes import failure

Ranks: TypeAlias = Mapping[tuple[str, str], tuple[int, int]]
"""(answering model, judge) -> the places that are left open."""
ANSWER = "generation"
"""The task whose time is how long a model took to answer."""


@frozen(kw_only=True)
class Pair:
    """One answering model with one judge."""

    index: int
    answering: str
    parsing: str
    label: str
    """Short enough for a plot; different for every pair."""
    line: Mapping[str, Any]
    """The pair's row of `karenina verify --json`: rates, counts, traits."""
    numbers: Numbers
    """The pair's rates with their intervals, and what is missing."""
    failures: Counter[tuple[str, str, str]]
    """`(outcome, group, reason) -> items` of what did not pass."""
    caveats: Counter[str]
    """Name -> items."""
    calls: int
    attempts: int
    cost_usd: float | None
    ranks: tuple[int, int] | None
    """The best and the worst place by pass rate that comparisons with the other models leave open."""
    tokens_unknown: bool
    """Whether the tokens of some call are unknown."""
    seconds: Sequence[float]
    """Of each item, from its first stage to its last."""
    answer_seconds: Sequence[float]
    """Of each answer that was generated for this judge; those that it shares with another are not here."""

    @property
    def measured(self) -> Mapping[str, Number]:
        """Every number of a trait, by its name."""
        return {number.name: number for number in self.numbers.traits}

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def slow_seconds(self) -> float | None:
        """Nine of ten items took at most this long."""
        ordered = sorted(self.seconds)
        return ordered[math.ceil(0.9 * len(ordered)) - 1] if ordered else None

    @property
    def median_answer_seconds(self) -> float | None:
        return median(self.answer_seconds) if self.answer_seconds else None


def pairs_of(results: Sequence[VerificationResult], headline: Headline, ranks: Ranks | None = None) -> list[Pair]:
    """In the order in which they first occur. `headline` has the numbers of these results, `ranks` the places."""
    numbers = {(found.answering, found.parsing): found for found in headline.pairs}
    groups: dict[tuple[str, str], list[VerificationResult]] = {}
    for result in results:
        groups.setdefault((result.metadata.answering_model, result.metadata.parsing_model), []).append(result)
    pairs = [(found[0].metadata.answering, found[0].metadata.parsing) for found in groups.values()]
    answering = _short([answering for answering, _ in pairs])
    judges = _short([parsing for _, parsing in pairs])
    several = len({parsing for _, parsing in pairs}) > 1
    labels = [f"{answering[a]} | {judges[p]}" if several else answering[a] for a, p in pairs]
    listed = []
    for index, (label, (names, found)) in enumerate(zip(labels, groups.items(), strict=True)):
        (line,) = summarize(found)["models"]
        usage = usage_by_task(found)
        costs = [row["cost_usd"] for row in usage.values()]
        own = [result.generation.usage_metadata.get(ANSWER) or {} for result in found]
        bad = [result for result in found if result.metadata.outcome not in GOOD]
        listed.append(
            Pair(
                index=index,
                answering=line["answering"],
                parsing=line["parsing"],
                label=label,
                line=line,
                numbers=numbers[names],
                failures=Counter((r.metadata.outcome, failure_of(r)[1] or "", failure(r)) for r in bad),
                caveats=Counter(line["caveats"]),
                ranks=(ranks or {}).get(names),
                calls=sum(row["calls"] for row in usage.values()),
                attempts=sum(row["attempts"] for row in usage.values()),
                cost_usd=None if not costs or None in costs else sum(costs),
                tokens_unknown=any(row["usage_unavailable"] for row in usage.values()),
                seconds=[result.metadata.execution_time for result in found],
                answer_seconds=[
                    row["seconds"] for row in own if not row.get("cached") and row.get("seconds") is not None
                ],
            )
        )
    return listed


GOOD = ("passed", "scored")


def _short(identities: Iterable[ModelIdentity]) -> dict[ModelIdentity, str]:
    different = dict.fromkeys(identities)
    names = Counter(identity.model_name for identity in different)
    return {i: i.model_name if names[i.model_name] == 1 else str(i) for i in different}
