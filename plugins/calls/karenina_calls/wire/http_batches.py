"""What batch interfaces over HTTP have in common: requests of any method, and files that are read line by line."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from karenina_core.errors import PortError

from .bodies import pieces, too_large
from .http import AT_ONCE, HttpPort, json_object
from .openai_errors import json_from_wire

CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,64})"')
FRONT = 4096
"""Bytes of a line that cannot be read in which its id is looked for."""


class HttpBatchPort(HttpPort):
    """The requests of a `BatchPort`."""

    @abstractmethod
    def address(self, path: str) -> tuple[str, str]:
        """The URL of a path of the batch interface, and how errors name it."""

    async def request(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """The JSON object that a request is answered with. Raises PortError."""
        url, shown = self.address(path)
        where = f"{method} {shown}"
        with self.failures(where):
            async with asyncio.timeout(self.endpoint.timeout) as limit:
                sent = data if data is None or len(data) <= AT_ONCE else self._sent(data, limit)
                received = await self._whole(await self._requested(where, method, url, data=sent, headers=headers))
            return json_object(received)

    async def _sent(self, data: bytes, limit: asyncio.Timeout) -> AsyncIterator[bytes]:
        """The same in pieces. Each that is taken restarts the time limit: as for a file that comes, see `_next`."""
        clock = asyncio.get_running_loop().time
        for begin in range(0, len(data), AT_ONCE):
            yield data[begin : begin + AT_ONCE]
            with suppress(RuntimeError):  # it is over, and what is still to be sent is not needed
                limit.reschedule(clock() + self.endpoint.timeout)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file, as they arrive; of one that is longer than a reply may be, only the beginning."""
        url, shown = self.address(path)
        with self.failures(f"GET {shown}"):
            async with asyncio.timeout(self.endpoint.timeout):
                response = await self._requested(f"GET {shown}", "GET", url)
            try:
                received = pieces(response, sys.maxsize)
                line, too_long = bytearray(), False
                while (piece := await self._next(received)) is not None:
                    *ends, rest = piece.split(b"\n")
                    for end in ends:
                        if not too_long:
                            line += end
                        yield bytes(line)
                        line, too_long = bytearray(), False
                    if not too_long:
                        line += rest
                    too_long = too_long or len(line) > self.endpoint.limit
                if line:
                    yield bytes(line)
            finally:
                response.release()

    async def _next(self, received: AsyncIterator[bytes]) -> bytes | None:
        """A file may take as long as it needs, but not stall: the time limit is that of each piece."""
        async with asyncio.timeout(self.endpoint.timeout):
            return await anext(received, None)


def line_of_batch(line: bytes, limit: int) -> tuple[str, Mapping[str, Any] | PortError] | None:
    """`(custom_id, the line)`, or why it cannot be read. None for an empty line, and for one about no call."""
    if not line.strip():
        return None
    try:
        if len(line) > limit:
            raise too_large(limit)
        found = json_from_wire(line)
    except PortError as error:
        identifier = CUSTOM_ID.search(line[:FRONT])
        return None if identifier is None else (identifier[1].decode("utf-8", "replace"), error)
    if not isinstance(found, Mapping) or not isinstance(custom_id := found.get("custom_id"), str):
        return None
    return custom_id, found


def id_of(found: Mapping[str, Any], what: str) -> str:
    """The id that the server gives to what it has made. Raises PortError."""
    if isinstance(value := found.get("id"), str) and value:
        return value
    raise PortError(f"the server gives the {what} no id", kind="bad_response", raw=json.dumps(found, default=str))


def quoted(identifier: str) -> str:
    """An id as part of a path."""
    return quote(identifier, safe="")
