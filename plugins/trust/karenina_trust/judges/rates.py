"""Rates over questions, as documents and for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from karenina_runs.summaries.intervals import Clusters, Estimate, rate_of


def rate_of_rows(rows: Iterable[tuple[Hashable, bool | None]]) -> Estimate:
    """The share of rows that are true, given the question of each: rows of a question are a cluster."""
    groups: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    for question, counted in rows:
        groups[question][0] += bool(counted)
        groups[question][1] += 1
    return rate_of(Clusters.of((total, items) for total, items in groups.values()))


def rate_document(found: Estimate) -> dict[str, Any]:
    """`{"rate", "low", "high", "n", "method"}`; what is not known is None."""
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return {"rate": found.value, "low": low, "high": high, "n": found.n, "method": found.method}


def shown(found: Estimate) -> str:
    """A rate with its limits."""
    if found.value is None:
        return "unknown"
    limits = f" ({found.interval.low:.1%} to {found.interval.high:.1%})" if found.interval else ""
    return f"{found.value:.1%}{limits}"
