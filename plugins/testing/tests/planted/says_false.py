"""Answers with no instead of nothing."""

from collections.abc import Sequence

from karenina_calls.tools.search import SearchResult


class Planted:
    def problem(self) -> str | None:  # the fault
        return False  # type: ignore[return-value]

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        return []
