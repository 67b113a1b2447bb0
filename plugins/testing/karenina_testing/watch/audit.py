"""Watching what code does, by Python's audit events. Run as a program, it answers one question from its input.

An audit hook cannot be taken away again; it is added once and looks only while something is watched.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import os
import pickle
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HEAVY = ("pydantic", "litellm", "openai", "aiohttp", "pandas", "numpy", "torch", "rapidfuzz", "mcp")
"""Packages that take long to import, and that karenina imports when they are used."""
STDLIB = os.path.dirname(os.__file__) + os.sep
CANARY = "karenina.testing.executed"
"""An audit event that nothing but a test's own code raises."""
THREAD = "_thread.start_new_thread"
OPEN = "open"
WORDS = {
    "socket.connect": "opens a connection",
    "socket.bind": "opens a socket",
    "socket.getaddrinfo": "looks up an address",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    THREAD: "starts a thread",
    CANARY: "executes the code in it",
}


class _Watch(NamedTuple):
    seen: dict[str, tuple[str, int]]
    packages: frozenset[str]
    threads: bool
    files: bool


_state = threading.local()
_watching: list[dict[str, tuple[str, int]]] = []
"""Everything that is being filled, by any thread: the canary may be raised in another one."""
_hooked: list[bool] = []


@contextmanager
def watching(
    packages: Iterable[str] = (), *, threads: bool = True, files: bool = False
) -> Iterator[dict[str, tuple[str, int]]]:
    """Fill `{what happened: (path, line)}` with what this thread does: imports of `packages`, connections, and more.

    With `files`, opened files are reported too, but for those of modules that are imported.
    """
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    seen: dict[str, tuple[str, int]] = {}
    _watching.append(seen)
    # What is imported already is imported no more, and costs nothing.
    before, _state.watched = (
        getattr(_state, "watched", None),
        _Watch(seen, frozenset(packages) - sys.modules.keys(), threads, files),
    )
    try:
        yield seen
    finally:
        _state.watched = before
        _watching[:] = [other for other in _watching if other is not seen]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == CANARY:
        for seen in _watching:
            seen.setdefault(WORDS[CANARY], _line(sys._getframe(1)))
        return
    watched = getattr(_state, "watched", None)
    if watched is None:
        return
    if event == "import":
        package = str(arguments[0]).partition(".")[0]
        what = f"imports {package}" if package in watched.packages else None
    elif event == OPEN:
        importing = sys._getframe(1).f_code.co_filename.startswith("<frozen importlib")
        what = "opens a file" if watched.files and not importing else None
    else:
        what = WORDS.get(event) if event != THREAD or watched.threads else None
    if what is not None and what not in watched.seen:
        watched.seen[what] = _line(sys._getframe(1))


def _line(frame: FrameType | None) -> tuple[str, int]:
    """The innermost line of Python source that is not the import system's; not the standard library's either, where
    there is another one."""
    innermost = ("", 0)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<") and path != __file__:
            if not path.startswith(STDLIB) or "site-packages" in path:
                return path, frame.f_lineno
            innermost = innermost if innermost[0] else (path, frame.f_lineno)
        frame = frame.f_back
    return innermost


def main() -> None:
    """Read a question as JSON, print the answer as JSON."""
    question = json.load(sys.stdin)
    if question["do"] == "import":
        with watching(question["watched"]) as seen:
            _import(question["module"], question["file"])
    else:
        module, _, name = question["factory"].partition(":")
        factory: Any = importlib.import_module(module)
        for step in name.split("."):
            factory = getattr(factory, step)
        arguments = pickle.loads(base64.b64decode(question["arguments"]))
        method = question["method"]
        act = getattr(factory(*arguments), method) if method else partial(factory, *arguments)
        with watching(question["watched"], files=question["files"]) as seen:
            act()
    print(json.dumps(seen))


def _import(module: str, file: str | None) -> None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if file is None or (found is not None and found.origin == file):
        importlib.import_module(module)
        return
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python source")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)


if __name__ == "__main__":
    main()
