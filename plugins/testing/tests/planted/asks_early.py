"""Looks up its server when it is made."""

import socket
from collections.abc import Sequence

from karenina_calls.tools.search import SearchResult


class Planted:
    def __init__(self) -> None:
        self.addresses = socket.getaddrinfo("127.0.0.1", 9)  # the fault

    def problem(self) -> str | None:
        return None if self.addresses else "there is no network"

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        return []
