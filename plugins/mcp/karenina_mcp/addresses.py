"""What the address of a server means."""

from __future__ import annotations

import os
import shlex
import shutil
from urllib.parse import urlsplit

from attrs import frozen
from karenina_calls.tools.tool_servers import shown_address

EVENTS = "sse+"


@frozen
class Program:
    """A server that is started here and spoken to over its standard input and output."""

    command: tuple[str, ...]

    def __str__(self) -> str:
        """The program alone: arguments may hold secrets."""
        return f"the program {self.command[0]!r}"

    def problem(self) -> str | None:
        """Why it cannot be started."""
        if shutil.which(self.command[0]):
            return None
        return f"there is no program {self.command[0]!r} to start; install it, or give its whole path"


@frozen
class Service:
    """A server on the web: streamable HTTP, or server-sent events, the protocol's older way."""

    url: str
    events: bool = False

    def __str__(self) -> str:
        """The address without what may be secret."""
        return shown_address(self.url)


def parse_address(address: str) -> Program | Service:
    """A URL is a service, anything else the command line of a program.

    `sse+http://...` and a path that ends with `/sse` are services with server-sent events. Raises ValueError.
    """
    address = address.strip()
    scheme, mark, _ = address.partition("://")
    if mark and not any(character.isspace() or character in "/=" for character in scheme):
        url = address.removeprefix(EVENTS)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{scheme}://... is no address of a tool server; it begins with http:// or https://")
        return Service(url, events=address.startswith(EVENTS) or parts.path.rstrip("/").endswith("/sse"))
    try:
        command = shlex.split(address, posix=os.name == "posix")
    except ValueError as error:
        raise ValueError(f"the command line cannot be read: {error}; check its quotation marks") from None
    if not command:
        raise ValueError("the address is empty; give a URL or a command line")
    return Program(tuple(command))
