"""What a run that is gone on with has from before, and what is left to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from karenina_calls.limits.budget import Budget
from karenina_calls.limits.limiter import Gateway
from karenina_calls.models.overrides import overrides
from karenina_calls.ports.item_calls import current_item

from karenina_core.values.result import VerificationResult

from ..plan.items import Item
from ..results.sinks import Sinks
from ..summaries.summary import Tally
from .run_writer import Keeper, read_back

__all__ = ["UNFINISHED", "count_stale", "is_blocked", "is_left", "picked_up"]

UNFINISHED = "left until the run is resumed: {}"


async def picked_up(keeper: Keeper, budget: Budget, tally: Tally, sinks: Sinks) -> set[str]:
    """Count what the run has done and spent, and let the sinks have its results: they may have missed some.

    Returns the tasks whose results are to be replaced: these are neither counted nor told. Raises RunDirectoryError.
    """
    spent = keeper.journal.ledger.total
    budget.spent_before(spent.counted_usd, spent.counted_tokens, spent.counted)
    stale = set()
    for stored in keeper.journal.reader.results():
        if keeper.is_final(stored):
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


def is_blocked(item: Item, gateway: Gateway) -> bool:
    """Whether a model that the item may ask is asked nothing more."""
    models = (item.answering, item.parsing, *(model for _, model in overrides([item.rubric])))
    return any(map(gateway.is_closed, models))


def is_left(made: VerificationResult | None = None) -> bool:
    """Whether the item that this task has just made lacks something because the run asks no more, and is therefore
    made again when it is gone on with. A result that is an error for want of a budget says so itself."""
    calls = current_item.get()
    if calls is None or not calls.kept_out:
        return False
    return made is None or (made.metadata.outcome, made.metadata.outcome_detail) != ("error", "budget")
