"""Sinks, to which results are written. One that fails is closed and reported; the run continues."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import iscoroutinefunction, unwrap
from pathlib import Path
from typing import Any, Protocol, cast

from attrs import frozen

from karenina_core.errors import KareninaError, PluginError, one_line, place_of
from karenina_core.log import get_logger
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.shapes import misfits, place
from karenina_core.secrets import MASK
from karenina_core.values.result import VerificationResult

PASSWORD = re.compile(r"(?<=://)([^/?#\s@]*?:).*(?=@)")
"""In `user:PASSWORD@host` of an address."""
PAIR = re.compile(
    r"((?<![\w./-])[\w.-]*(?:passw|pwd|passphrase|secret|token|key|auth|sig|credential)[\w.-]*\s*=\s*)"
    r"(?:'(?:[^'\\]|\\.)*'?|[^&#]*?(?=\s+\w+\s*=|[&#]|$))",
    re.IGNORECASE,
)
"""In an address, or in the words of a connection: a name that may be that of a secret, and its value. No address is
read by a judge, so that a value too many does no harm here."""
CALLS = {"open": ("run",), "write": ("result",), "close": ("summary",)}
"""The methods of a sink, and what they are called with."""
log = get_logger("karenina.run")


@frozen(kw_only=True)
class RunInfo:
    """What a sink gets to know of the run."""

    run_name: str
    run_dir: Path | None
    benchmark: str
    items: int
    secrets: frozenset[str] = frozenset()
    """Values that must not be written."""
    resumed: bool = False
    """Whether the run is resumed, or extends another one: what had failed then, or had fewer traits, may have another
    result now."""


class Sink(Protocol):
    """Receives every result at least once. Writing the same result again must change nothing.

    In a resumed run (`RunInfo.resumed`) another result of the same `result_id` takes the place of the one before.
    """

    async def open(self, run: RunInfo) -> None: ...

    async def write(self, result: VerificationResult) -> None: ...

    async def close(self, summary: Mapping[str, Any]) -> None: ...


def make_sink(app: Karenina, uri: str) -> Sink:
    """A sink from `name` or `name:target`. Raises UnknownName and PluginError."""
    name, _, target = uri.partition(":")
    factory = app.sinks.load(name)
    try:
        made = factory(target)
    except Exception as error:
        where = place_of(error, app.module_of(app.sinks[name].plugin))
        raise PluginError(f"sink {without_password(uri)!r} cannot be made: {one_line(error)}{where}") from error
    wrong = [*misfits(type(made), CALLS)]
    methods = [] if wrong else [getattr(type(made), method) for method in CALLS]
    plain = [method for method in methods if not iscoroutinefunction(unwrap(method))]
    wrong += [f"{place(method)}{method.__qualname__} has to be `async def`" for method in plain]
    if wrong:
        raise PluginError(f"sink {without_password(uri)!r} is not a sink: {'; '.join(wrong)}")
    return cast(Sink, made)


def without_password(uri: str) -> str:
    """The URI of a sink as it may be shown, logged and written."""
    return PAIR.sub(rf"\1{MASK}", PASSWORD.sub(rf"\1{MASK}", uri))


def what_failed(error: BaseException, sink: Sink) -> str:
    """The error in one line, with its place in the code of the sink where it is none of karenina's."""
    where = "" if isinstance(error, KareninaError) else place_of(error, type(sink).__module__)
    return f"{one_line(error)}{where}"


class Sinks:
    """Several sinks, each on its own."""

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self._open: dict[str, Sink] = dict(sinks)
        self.failures: dict[str, str] = {}
        """Name -> what went wrong."""

    async def open(self, run: RunInfo) -> None:
        """Open all. A sink that cannot be opened raises: nothing has been paid for yet."""
        for name, sink in self._open.items():
            try:
                await sink.open(run)
            except Exception as error:
                raise PluginError(f"sink {name!r} cannot be opened: {what_failed(error, sink)}") from error

    async def write(self, result: VerificationResult) -> None:
        for name, sink in list(self._open.items()):
            try:
                await sink.write(result)
            except (Exception, SystemExit) as error:
                if self._open.pop(name, None) is None:
                    continue  # another item's write failed at the same time
                self.failures[name] = what_failed(error, sink)
                log.warning("a sink failed and was closed", sink=name, error=self.failures[name])
                try:
                    await sink.close({})
                except Exception as second:
                    log.debug("closing the failed sink failed too", sink=name, error=one_line(second))

    async def close(self, summary: Mapping[str, Any]) -> None:
        for name, sink in list(self._open.items()):
            del self._open[name]
            try:
                await sink.close(summary)
            except Exception as error:
                self.failures[name] = what_failed(error, sink)
