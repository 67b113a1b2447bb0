"""What the calls of an earlier run took, and what that says of calls to come."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from attrs import define, field, frozen

from karenina_core.values.fields import is_number

SURE = 2.0
"""Standard deviations on either side of an expected sum: 19 of 20 sums are within."""
ALONE = 0.5
"""Part of an expected amount that it may be off by where there is one earlier call to go by, which has no spread."""
AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")


@frozen
class Span:
    """An amount: at least, expected, at most. None: not known."""

    low: float = 0.0
    expected: float | None = None
    high: float | None = None

    def __add__(self, other: Span) -> Span:
        def added(a: float | None, b: float | None) -> float | None:
            return None if a is None or b is None else a + b

        return Span(self.low + other.low, added(self.expected, other.expected), added(self.high, other.high))

    def times(self, factor: float) -> Span:
        def scaled(value: float | None) -> float | None:
            return None if value is None else value * factor

        return Span(self.low * factor, scaled(self.expected), scaled(self.high))

    def document(self, *, whole: bool = True) -> dict[str, Any]:
        """`{"low", "expected", "high"}`; rounded where whole things are counted."""

        def shown(value: float | None) -> float | None:
            return value if value is None or not whole else round(value)

        return {"low": shown(self.low), "expected": shown(self.expected), "high": shown(self.high)}


NONE = Span(0.0, 0.0, 0.0)


@define(eq=False)
class Sample:
    """What the calls of one task and model took: sums, over rows of usage, of each amount per call."""

    rows: int = 0
    calls: float = 0.0
    repairs: float = 0.0
    sums: dict[str, float] = field(factory=lambda: dict.fromkeys(AMOUNTS, 0.0))
    unknown: bool = False
    """Whether the cost of some call is unknown."""
    questions: dict[str, list[float]] = field(factory=dict)
    """By question: rows, and the sums of the amounts per call."""

    def add(self, row: Mapping[str, Any], question: str) -> None:
        calls = row["calls"]
        amounts = [row[name] / calls if is_number(row.get(name)) else 0.0 for name in AMOUNTS]
        self.unknown = self.unknown or not is_number(row.get("cost_usd"))
        self.rows += 1
        self.calls += calls
        self.repairs += row["repairs"] if is_number(row.get("repairs")) else 0
        own = self.questions.setdefault(question, [0.0] * (1 + len(AMOUNTS)))
        own[0] += 1
        for place, (name, amount) in enumerate(zip(AMOUNTS, amounts, strict=True), 1):
            self.sums[name] += amount
            own[place] += amount

    def of(self, name: str, asked: Mapping[str, float]) -> tuple[float, float]:
        """The sum of an amount that is expected of so many calls by question, and how far it may be off: by the spread
        between questions, for calls about one question take alike; and by that of the mean, for other questions than
        the earlier ones."""
        place, known = 1 + AMOUNTS.index(name), self.questions
        means = {question: own[place] / own[0] for question, own in known.items()}
        mean, total, new = self.sums[name] / self.rows, 0.0, 0.0
        for question, calls in asked.items():
            total += calls * means.get(question, mean)
            new += 0.0 if question in means else calls
        if len(means) == 1:
            return total, ALONE * total if new else 0.0
        middle = fmean(means.values())
        between = sum((value - middle) ** 2 for value in means.values()) / (len(means) - 1)
        return total, SURE * math.sqrt(between * (sum(n * n for n in asked.values()) + new * new / len(means)))


@define(eq=False)
class EarlierCalls:
    """What the calls of an earlier run took: `add` the usage of each of its results."""

    items: int = 0
    _samples: dict[tuple[str, str], Sample] = field(factory=dict)
    _tasks: dict[str, Sample] = field(factory=dict)

    def add(self, usage: Mapping[str, Any], question: str) -> None:
        """`usage`: rows by task, as `usage_metadata` of a result has them. Those without calls or tokens are left
        out."""
        self.items += 1
        for task, row in usage.items():
            if task == "total" or not isinstance(row, Mapping) or row.get("cached") or row.get("usage_unavailable"):
                continue
            if not is_number(row.get("calls")) or row["calls"] <= 0:
                continue
            self._samples.setdefault((task, str(row.get("model"))), Sample()).add(row, question)
            self._tasks.setdefault(task, Sample()).add(row, question)

    def sample(self, task: str, model: str) -> tuple[Sample | None, bool]:
        """The earlier calls of the task, and whether the same model made them."""
        own = self._samples.get((task, model))
        return (own, True) if own is not None else (self._tasks.get(task), False)

    def rate(self, task: str) -> float:
        """Calls of the task for each item."""
        found = self._tasks.get(task)
        return found.calls / self.items if found is not None else 0.0
