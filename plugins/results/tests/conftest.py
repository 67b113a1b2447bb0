"""A PostgreSQL server for the tests: private, on a socket in a temporary folder, and removed at the end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

USER = "karenina"
PASSWORD = "canary-password-0123456789"
UNPRIVILEGED = "postgres"
"""The account that the server runs as where the tests are run by root, which PostgreSQL refuses."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The folder of the socket of a running server. Skips where there is no PostgreSQL; CI does not accept that."""
    programs = _programs()
    if programs is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip("needs PostgreSQL (the Debian package postgresql) and psycopg")
    folder = Path(tempfile.mkdtemp(prefix="karenina-pg-", dir="/tmp"))  # the path of a socket must be short
    try:
        (folder / "password").write_text(PASSWORD, "ascii")
        if os.getuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
            shutil.chown(folder / "password", UNPRIVILEGED)
        data = folder / "data"
        secret = ["--auth=scram-sha-256", f"--pwfile={folder / 'password'}"]
        _run([programs / "initdb", "-D", data, "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", *secret], folder)
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        _run([programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"], folder)
        try:
            yield str(folder)
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def new_schema(postgres_server: str) -> Callable[[], str]:
    """Makes an empty schema and gives the address that leads into it, password included."""
    import psycopg

    numbers = count(1)
    address = f"postgresql://{USER}:{PASSWORD}@/postgres?host={postgres_server}"

    def make() -> str:
        name = f"schema_{next(numbers)}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{address}&options=-csearch_path%3D{name}"

    return make


@pytest.fixture
def postgres(new_schema: Callable[[], str]) -> str:
    """The address of an empty database."""
    return new_schema()


def _programs() -> Path | None:
    """Where initdb is: Debian keeps it out of PATH."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((place for place in reversed(places) if (place / "initdb").exists()), None)


def _run(command: Sequence[Any], folder: Path) -> None:
    prefix = ["runuser", "-u", UNPRIVILEGED, "--"] if os.getuid() == 0 else []
    ran = subprocess.run(
        [*prefix, *map(str, command)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
