"""How far a run is while it is under way: what is counted, and how it is said in so many columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from karenina_core.errors import plural

from ..summaries.intervals import Interval
from .control import Counted

if TYPE_CHECKING:
    from .destination import RunState

SHOWN = 3
"""Pairs of models, slowed lanes and kinds of errors that are named. Chosen: with all of them a few lines of 80
columns."""
SHORTEST_BAR, LONGEST_BAR = 5, 40
"""Characters; chosen."""
SEPARATOR = "  "


@frozen(kw_only=True)
class Rate:
    """The pass rate of a pair of models so far."""

    model: str
    passed: float
    interval: Interval | None


@frozen(kw_only=True)
class Snapshot:
    """What is counted at one moment."""

    outcomes: Mapping[str, int] = field(factory=dict)
    errors: Mapping[str, int] = field(factory=dict)
    """Items that ended in one, by kind."""
    rates: Sequence[Rate] = ()
    """Of every pair of models that has verdicts."""
    cost_usd: float = 0.0
    """The known part of what was paid."""
    cost_unknown: bool = False
    tokens: int = 0
    in_flight: int = 0
    """Calls under way."""
    waiting: int = 0
    """Calls that wait for a place."""
    slowed: Sequence[tuple[str, str]] = ()
    """Models that refuse or fail, and what that means now: `waits 12 s`, `4 at a time`."""


@frozen
class RunCounts(Counted):
    """What a run counts."""

    run: RunState

    def snapshot(self) -> Snapshot:
        """In the event loop of the run: what it reads changes there."""
        tally, gateway, writer = self.run.tally, self.run.gateway, self.run.writer
        cost, unknown = tally.calls.cost.total, tally.calls.cost_unknown
        tokens = sum(task.counts["total_tokens"] for task in tally.usage.tasks.values())
        if writer is not None:  # with the calls of items under way
            total = writer.journal.ledger.total
            cost, tokens = total.known_cost_usd, total.total_tokens
            unknown = bool(total.unknown_costs or total.unknown_cost_attempts)
        names = tally.models["answering"]
        pairs = [(pair, found.rates.pass_rate) for pair, found in tally.pairs.items()]
        judges = len({parsing for _, parsing in tally.pairs}) > 1
        return Snapshot(
            outcomes=dict(tally.outcomes),
            errors=dict(sum((found.errors for found in tally.pairs.values()), Counter[str]())),
            rates=[
                Rate(
                    model=names.get(pair[0], pair[0]) + (f" by {tally.models['parsing'][pair[1]]}" if judges else ""),
                    passed=rate.value,
                    interval=rate.interval,
                )
                for pair, rate in pairs
                if rate.value is not None
            ],
            cost_usd=cost or 0.0,
            cost_unknown=unknown,
            tokens=tokens,
            in_flight=gateway.under_way,
            waiting=gateway.waiting,
            slowed=gateway.slowed(),
        )


def progress_lines(
    snapshot: Snapshot | None, done: int, total: int, *, seconds: float, left: float | None, width: int
) -> list[str]:
    """The lines of a terminal with so many columns: a bar, and what is known, as many facts in a line as fit.

    `seconds` have passed; so many are `left` as far as that can be said.
    """
    times = duration(seconds) + (f", about {duration(left)} left" if left is not None else "")
    ending = f" {done}/{total} items{SEPARATOR}{times}"
    size = min(LONGEST_BAR, width - len(ending))
    filled = size * done // total if total else size
    head = f"{'━' * filled}{'─' * (size - filled)}{ending}" if size >= SHORTEST_BAR else ending.strip()
    return [head[:width], *_packed(facts(snapshot), width)] if snapshot is not None else [head[:width]]


def progress_line(snapshot: Snapshot | None, done: int, total: int, *, seconds: float, left: float | None) -> str:
    """The same in one line, for files and pipes."""
    times = duration(seconds) + (f", about {duration(left)} left" if left is not None else "")
    said = [f"{done}/{total} items", times, *(facts(snapshot) if snapshot is not None else [])]
    return "; ".join(said)


def facts(snapshot: Snapshot) -> list[str]:
    """What is known, each as a short text; nothing is said of what is zero."""
    found = []
    for rate in snapshot.rates[:SHOWN]:
        limits = rate.interval
        interval = f" ({100 * limits.low:.0f} to {100 * limits.high:.0f} %)" if limits else ""
        name = f"{rate.model} " if len(snapshot.rates) > 1 else ""
        found.append(f"{name}{100 * rate.passed:.0f} % pass{interval}")
    if len(snapshot.rates) > SHOWN:
        found.append(f"{len(snapshot.rates) - SHOWN} more models")
    if snapshot.errors:
        listed = _most(snapshot.errors)
        found.append(f"{plural(sum(snapshot.errors.values()), 'error')}: {listed}")
    if snapshot.tokens:
        found.append(f"{short(snapshot.tokens)} tokens")
    if snapshot.cost_usd:
        found.append(f"{'at least ' if snapshot.cost_unknown else ''}${snapshot.cost_usd:.4f}")
    elif snapshot.cost_unknown:
        found.append("cost unknown")
    if snapshot.in_flight or snapshot.waiting:
        waiting = f", {snapshot.waiting} waiting" if snapshot.waiting else ""
        found.append(f"{plural(snapshot.in_flight, 'call')} in flight{waiting}")
    found += [f"slowed down, {how}: {name}" for name, how in snapshot.slowed[:SHOWN]]
    return found


def _most(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    more = ["..."] if len(ordered) > SHOWN else []
    return ", ".join([*(f"{name} {count}" for name, count in ordered[:SHOWN]), *more])


def _packed(texts: Sequence[str], width: int) -> list[str]:
    """As few lines as hold the texts in their order; one that is too long is cut."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + len(SEPARATOR) + len(text) <= width:
            lines[-1] += SEPARATOR + text
        else:
            lines.append(text if len(text) <= width else f"{text[: width - 1]}…")
    return lines


def duration(seconds: float) -> str:
    """`8 s`, `3:07 min`, `2:15 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"


def short(number: int) -> str:
    """`950`, `12.3k`, `4.6M`."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def time_left(done: int, before: int, total: int, seconds: float) -> float | None:
    """Seconds for the items that are not done, at the pace of those that were done in these `seconds`; `before` were
    done already. None where too few were."""
    made = done - before
    return seconds * (total - done) / made if made >= ENOUGH and done < total else None


ENOUGH = 3
"""Items from which a pace is taken; chosen."""
