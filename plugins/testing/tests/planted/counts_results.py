"""Returns how many it found."""

from typing import Any


class Planted:
    def problem(self) -> str | None:
        return None

    async def asearch(self, query: str) -> Any:  # the fault
        return query.count("venetoclax")
