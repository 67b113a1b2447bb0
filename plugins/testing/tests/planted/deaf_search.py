"""Goes on though nobody waits for it any more."""

import asyncio
from collections.abc import Sequence

from karenina_calls.tools.search import SearchResult


class Planted:
    def problem(self) -> str | None:
        return None

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        try:
            await asyncio.sleep(0.2)  # the fault
        except asyncio.CancelledError:
            return []
        return [SearchResult(content=query)]
