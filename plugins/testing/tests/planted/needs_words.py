"""Fails in its own way at a query without words."""

from collections.abc import Sequence

from karenina_calls.tools.search import SearchResult


class Planted:
    def problem(self) -> str | None:
        return None

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        first = query.split()[0]  # the fault
        return [SearchResult(content=f"about {first}")]
