"""The process that workers are forked from: it has imported what they need, and runs no code of a benchmark.

The host starts it as `python -P -s` with no environment but a seed for hashes, and talks to it over a socket
that keeps messages apart (SOCK_SEQPACKET). `fork` is answered with a process number and the host's end of a connection
to the new worker, `interrupt` when a worker has been signalled, `end` with how it ended. It ends with its host, and its
workers end with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .frames import ABSENT, MESSAGE, TOKEN, framed, write_all
from .lockdown import NONE, Libc, enter_namespaces, lock
from .pages import copy_pages, pages_written
from .worker import Served, serve

CONNECTION = 3
"""The only descriptor of a worker beside 0 to 2, which lead nowhere."""
ALONE = ("MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What keeps numerical libraries from starting threads, which a worker cannot."""
MOST_OPEN = 1 << 16
"""Descriptors that are closed, whatever the host or an imported module has open: one call of the kernel since 5.9."""
UNKNOWN = 1 << 30
"""Bytes, where it cannot be read how much the server has mapped; it is a quarter of that."""
STANDARD = (
    *(
        "abc",
        "array",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "calendar",
        "cmath",
        "collections.abc",
        "colorsys",
        "contextlib",
    ),
    *("copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools"),
    *("hashlib", "heapq", "html", "html.parser", "io", "itertools", "json", "keyword", "locale", "math", "numbers"),
    *("operator", "pprint", "random", "re", "secrets", "statistics", "string", "struct", "textwrap", "time"),
    *("traceback", "types", "typing", "unicodedata", "urllib.parse", "uuid", "warnings", "xml.etree.ElementTree"),
    *("zlib", "zoneinfo", "_strptime", "sre_constants", "sre_parse", "encodings.ascii", "encodings.idna"),
    *("encodings.latin_1", "encodings.cp1252", "encodings.utf_16", "encodings.utf_32", "encodings.utf_8_sig"),
)
"""Parts of the standard library that compute; Python itself needs some of them late."""
INSTALLED = (
    *("annotated_types", "cloudpickle", "dateutil.parser", "pydantic.networks", "re2", "regex", "typing_extensions"),
)
NAMED = "pydantic, the computing parts of the standard library"
WARM = """
import datetime
from typing import Literal
from pydantic import BaseModel, field_validator
class Part(BaseModel):
    x: list[int] = []
class Answer(BaseAnswer):
    a: str = VerifiedField("what it is", "x", ExactMatch())
    b: datetime.date | None = VerifiedField("when it is", datetime.date(2020, 1, 2), DateMatch())
    c: Literal["p", "q"] = VerifiedField("which it is", "p", LiteralMatch())
    parts: list[Part] = []
    def model_post_init(self, context):
        super().model_post_init(context)
        self.regex = {"n": {"pattern": "[0-9]+", "expected": 0, "match_type": "count"}}
    @field_validator("a")
    def check(cls, value):
        return value
    def verify(self):
        return len(self.parts) < 2 and self.a == self.correct["a"]
"""
"""Used once before any fork, so that what is imported or computed late is there in every worker."""


def main(descriptor: int) -> None:
    """Serve the host at the other end of this socket until it closes it."""
    os.closerange(descriptor + 1, MOST_OPEN)
    host = socket.socket(fileno=descriptor)
    try:
        server = _Server(host, json.loads(host.recv(MESSAGE)))
    except BaseException as error:
        host.send(json.dumps({"failure": f"{type(error).__name__}: {error}"[:2000]}).encode())
        return
    host.send(json.dumps({"notes": server.notes}).encode())
    while message := host.recv(MESSAGE):
        wanted = json.loads(message)
        if wanted["do"] == "fork":
            server.fork()
        elif wanted["do"] == "interrupt":
            server.interrupt(wanted["pid"])
            host.send(b"{}")
        else:
            host.send(json.dumps({"status": server.end(wanted["pid"], wanted["wait"])}).encode())


class _Server:
    """What every worker begins with."""

    def __init__(self, host: socket.socket, wanted: Mapping[str, Any]) -> None:
        self._host = host
        self._primitives, missing = _preload(wanted)
        self._pid = os.getpid()
        self._memory = _address_space() + (wanted["memory_mb"] << 20)
        self._libc = Libc()
        self._live: set[int] = set()
        """Workers that were not yet waited for, so that their numbers are theirs."""
        self._ending: set[int] = set()
        gc.collect()
        gc.freeze()
        self._written = pages_written(lambda: _warm_up(self._primitives))
        self._namespaces, notes = enter_namespaces(self._libc)
        self.notes = [*notes, *missing]

    def fork(self) -> None:
        """Start a worker, and give the host its end of the connection."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, theirs:
            try:
                pid = os.fork()
            except OSError as error:
                self._host.send(json.dumps({"failure": str(error)}).encode())
                return
            if pid == 0:
                try:
                    os.dup2(theirs.fileno(), CONNECTION)
                    os.closerange(CONNECTION + 1, MOST_OPEN)
                    self._work()
                finally:
                    os._exit(1)  # without anything that a template has registered for its end
            self._live.add(pid)
            socket.send_fds(self._host, [json.dumps({"pid": pid}).encode()], [ours.fileno()])

    def interrupt(self, pid: int) -> None:
        """Signal a worker, unless it has been ended meanwhile."""
        if pid in self._live:
            os.kill(pid, signal.SIGPROF)

    def end(self, pid: int, wait: bool) -> int | None:
        """End a worker. Returns how it ended where that is waited for, and it has not been ended before; to wait takes
        longer than to start another one."""
        if pid not in self._live:
            return None
        self._live.remove(pid)
        os.kill(pid, signal.SIGKILL)
        if wait:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._ending.add(pid)
        self._ending -= {pid for pid in self._ending if os.waitpid(pid, os.WNOHANG)[0]}
        return None

    def _work(self) -> None:
        copy_pages(self._libc, self._written)
        level, missing = lock(self._libc, self._pid, self._memory, self._namespaces)
        write_all(CONNECTION, framed(bytes(TOKEN), {"level": level, "missing": missing}))
        if level != NONE:
            serve(CONNECTION, self._primitives, NAMED)
        os._exit(0)


def _preload(wanted: Mapping[str, Any]) -> tuple[dict[str, type], list[str]]:
    missing = []
    for name in (*STANDARD, *INSTALLED):
        with suppress(ImportError):
            importlib.import_module(name)
    os.environ.update(dict.fromkeys(ALONE, "1"))
    for name in wanted["imports"]:
        try:
            importlib.import_module(name)
        except Exception as error:
            missing.append(f"{name} {ABSENT} ({error})")
    os.environ.clear()
    for package in ("pydantic", "karenina_core.templates"):  # which import their names late
        module = importlib.import_module(package)
        for name in dir(module):
            with suppress(Exception):
                getattr(module, name)
    primitives: dict[str, type] = {}
    for name, (path, qualname) in wanted["primitives"].items():
        try:
            found: Any = importlib.import_module(path)
            for part in qualname.split("."):
                found = getattr(found, part)
            primitives[name] = found
            if name in wanted["prepared"]:
                with suppress(Exception):  # what is not installed, the primitive says itself
                    found.prepare()
        except Exception as error:
            missing.append(f"the primitive {name} {ABSENT} ({error})")
    _warm_up(primitives)
    return primitives, missing


def _warm_up(primitives: Mapping[str, type]) -> None:
    with suppress(Exception):
        served = Served(primitives, NAMED)
        served.answer({"do": "template", "text": WARM})
        data = {"a": "x", "b": "2020-01-02", "c": "p", "parts": [{"x": [1]}]}
        for number, step in enumerate((None, ["verify", "a", "a", {}], ["regex", "a 1"], ["granular"])):
            make = {"data": data, "steps": []} if number == 0 else None
            served.answer({"do": "use", "filled": 1, "make": make, "step": step})


def _address_space() -> int:
    """What this process has mapped, in bytes: a worker begins with it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return UNKNOWN
