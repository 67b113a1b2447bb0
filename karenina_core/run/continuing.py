"""What a run that is gone on with has from before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from .budget import Budget
from .keeping import Keeper, read_back
from .sinks import Sinks
from .summary import Tally

__all__ = ["count_stale", "picked_up"]


async def picked_up(keeper: Keeper, budget: Budget, tally: Tally, sinks: Sinks) -> set[str]:
    """Count what the run has done and spent, and let the sinks have its results: they may have missed some.

    Returns the tasks whose results are to be replaced: these are neither counted nor told. Raises RunDirectoryError.
    """
    spent = keeper.journal.ledger.total
    budget.spent_before(spent.known_cost_usd, spent.input_tokens + spent.output_tokens, spent.calls)
    stale = set()
    for stored in keeper.journal.reader.results():
        if keeper.stands(stored):
            result = read_back(stored)
            tally.add(result, stored.position)
            await sinks.write(result)
        else:
            stale.add(stored.task)
        await asyncio.sleep(0)
    return stale


def count_stale(keeper: Keeper, stale: Iterable[str], tally: Tally) -> None:
    """What was to be tried again, and was not, is as it was."""
    for task in sorted(stale):
        if (stored := keeper.journal.reader.result(task)) is not None:
            tally.add(read_back(stored), stored.position)
