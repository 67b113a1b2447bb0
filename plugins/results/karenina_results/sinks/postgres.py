"""The sink postgres: results in a PostgreSQL database, in the tables of the sink sqlite."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import frozen
from karenina_calls.secrets.redaction import redactor
from karenina_runs.results.sinks import RunInfo, without_password

from karenina_core import VerificationResult
from karenina_core.errors import PluginError, one_line
from karenina_core.plugin.registry import is_installed

from .schema import POSTGRES
from .store import DatabaseSink, Store, stored

SECONDS = 15
"""How long the server may take to accept a connection, where the address does not say."""
SHORTEST_SECRET = 8
"""What is shorter occurs in any text; taking it out would damage results."""


class Postgres(DatabaseSink):
    """`postgres:postgresql://user@host/database` or `postgres:host=... dbname=...`, as libpq reads it.

    Its password is never shown, logged or written. It may also be in PGPASSWORD, a password file or a service file.
    """

    name = "postgres"

    def __init__(self, target: str = "") -> None:
        super().__init__()
        self._address = _address(target)

    def connect(self, run: RunInfo) -> Store:
        with _errors_without(self._address.password):
            connection = _connection(self._address)
            try:
                known = {self._address.password} if len(self._address.password) >= SHORTEST_SECRET else set()
                store = Store(connection, POSTGRES, run.secrets | known, replaces=run.resumed)
                store.prepare()
            except BaseException:
                connection.close()
                raise
            return store

    def lost(self, store: Store) -> bool:
        return bool(getattr(store.connection, "closed", False))

    def _do(self, task: Callable[[Store], None]) -> None:
        with _errors_without(self._address.password):
            super()._do(task)


def read_database(target: str) -> Iterator[VerificationResult]:
    """The results of a database; `target` as for the sink. Raises PluginError."""
    address = _address(target)
    with _errors_without(address.password):
        connection = _connection(address)
        try:
            yield from stored(connection, POSTGRES)
        finally:
            connection.close()


@frozen
class _Address:
    conninfo: str
    password: str = ""

    def __repr__(self) -> str:
        return f"<{without_password(self.conninfo)}>"


def _address(target: str) -> _Address:
    if not target:
        raise PluginError("it needs an address: postgres:postgresql://user@host/database")
    conninfo = f"postgresql:{target}" if target.startswith("//") else target
    psycopg = _psycopg()
    try:
        found = psycopg.conninfo.conninfo_to_dict(conninfo)
    except psycopg.Error:  # its words may quote a password
        raise PluginError(
            "its address cannot be read; write postgres:postgresql://user@host/database "
            "or 'postgres:host=... dbname=...'"
        ) from None
    defaults = {"connect_timeout": SECONDS, "application_name": "karenina"}
    return _Address(psycopg.conninfo.make_conninfo(**{**defaults, **found}), str(found.get("password") or ""))


def _connection(address: _Address) -> Any:
    # Transactions are begun and ended by Store.
    return _psycopg().connect(address.conninfo, autocommit=True)


@contextmanager
def _errors_without(password: str) -> Iterator[None]:
    redact = redactor([password])
    try:
        yield
    except _psycopg().Error as error:
        raise PluginError(redact(one_line(error))) from None


def _psycopg() -> Any:
    if not is_installed("psycopg"):
        raise PluginError(
            "the package 'psycopg' is not installed; install it with: pip install 'karenina-results[postgres]'"
        )
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:  # it is there, but not the library that it talks to
        raise PluginError(
            f"psycopg cannot be used: {one_line(error)}; install it with: pip install 'karenina-results[postgres]'"
        ) from error
