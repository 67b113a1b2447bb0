"""Tool servers: programs and services that offer tools to a model. Clients of them are plugins."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from attrs import frozen

from karenina_core.errors import plural
from karenina_core.ports.values import Tool

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
MASK = "***"
TOKEN = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_.~=-]{20,}")
"""A part of a path that no human being has named: some services put the key of a user there."""
SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential|bearer", re.IGNORECASE)


COST = {"n": 2**14, "r": 8, "p": 1}
"""Of one digest: 16 MB and about 40 ms, the parameters that RFC 7914 and OWASP give for interactive use. A run needs
one for each server; who wants to guess a password needs one for each guess."""


@runtime_checkable
class ToolServer(Protocol):
    """A connection to one server, made with its name and its address: `Client(name, address)`.

    It is opened once per run and shared by all items, so several calls are made at the same time. A server that is gone
    is connected to again at the next call. Where it has a `problem()`, that says before a run why the server cannot be
    connected to, or None; it does not try. Where its class has a static `unavailable()`, that says why no server at all
    can be connected to here, such as that a package is missing, or None.

    A run offers its models the tools of the first `alist` until its end. Where the server takes one of them away or
    changes what it takes, a call of that tool is an error for the model and does nothing; every outcome of that server
    then has a `warning`.
    """

    async def aopen(self) -> None:
        """Connect. Raises PortError (`connection`, `timeout`, `auth`) where the server cannot be reached."""
        ...

    async def alist(self) -> Sequence[Tool]:
        """The tools that the server offers now, each with its `run`. Raises PortError."""
        ...

    async def aclose(self) -> None:
        """End the connection, and the program where there is one. May be called any number of times."""
        ...


@frozen(kw_only=True)
class OfferedTools:
    """What one server offers to one model: the tools of its filter, with the names and descriptions it is given."""

    server: str
    address: str
    """Without what may be secret, see `shown_address`."""
    tools: tuple[Tool, ...]

    @property
    def digest(self) -> str:
        return tool_digest(self.tools)


def tool_digest(tools: Iterable[Tool]) -> str:
    """The SHA-256, in hexadecimal, of tools as a model is offered them, whatever their order.

    It is taken of canonical JSON: a list of `{"description", "input_schema", "name"}` in the order of the names, keys
    in order, no white space, ASCII. What a tool does when it is called has no part in it.
    """
    rows = ({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools)
    described = sorted(json.dumps(_plain(row), sort_keys=True, separators=(",", ":"), default=str) for row in rows)
    return hashlib.sha256(f"[{','.join(described)}]".encode()).hexdigest()


def _plain(value: Any) -> Any:
    """JSON's own types in place of other mappings and sequences."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def shown_address(address: str) -> str:
    """The address of a server for people: a URL without user, password, query, fragment and parts of its path that look
    like keys; a program without its arguments."""
    if scheme := URL.match(address.strip()):
        parts = _parts(address.strip())
        if parts is None:
            return f"{scheme.group()}{MASK}"
        path = "/".join(MASK if TOKEN.fullmatch(part) else part for part in parts.path.split("/"))
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"
    program, *arguments = _words(address) or [""]
    return f"{program} ({plural(len(arguments), 'argument')} not shown)" if arguments else program


@cache
def address_digest(server: str, address: str) -> str:
    """A digest, 16 hexadecimal digits, of the whole address of a server: arguments, query and what may be secret in it.

    It changes with the address, and reveals nothing of it: it is made by scrypt, whose work a list of
    guesses would have to pay for every one of them, with what is shown of the server as the salt, so that no list made
    for one server serves for another. The same address has the same digest in every run: replies of one run are taken
    by another one only where they are equal.
    """
    salt = f"{server}\n{shown_address(address)}".encode("utf-8", "replace")
    return hashlib.scrypt(address.encode("utf-8", "replace"), salt=salt, dklen=8, **COST).hex()


def secrets_in_address(address: str) -> Iterator[str]:
    """What an address may hold that no other file should: of a URL its user, password, query and keys in its path, of a
    command the values of options and variables whose names say so."""
    if URL.match(address.strip()):
        yield from _secrets_in_url(address.strip())
        return
    words = _words(address)[1:]
    for word in words:
        name, mark, value = word.partition("=")
        if mark and SECRET_NAME.search(name):
            yield value
        if URL.match(value or word):
            yield from _secrets_in_url(value or word)
    for before, word in pairwise(words):
        if before.startswith("-") and "=" not in before and SECRET_NAME.search(before):
            yield word
    for word in words:  # a header as one argument
        name, mark, value = word.partition(":")
        if mark and SECRET_NAME.search(name):
            yield value.strip().removeprefix("Bearer ").strip()


def _secrets_in_url(url: str) -> Iterator[str]:
    parts = _parts(url)
    if parts is None:
        yield url
        return
    for text in filter(None, parts.netloc.rpartition("@")[0].split(":", 1)):
        yield from (text, unquote(text))
    yield from (value for _, value in parse_qsl(parts.query))
    yield from (part for part in parts.path.split("/") if TOKEN.fullmatch(part))


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL; None where it is none, which its client complains about."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quotation mark: starting it will fail
        return command.split()
