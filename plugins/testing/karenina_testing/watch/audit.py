"""Watching what code does, by Python's audit events. Run as a program, it answers one question from its input.

An audit hook cannot be taken away again; it is added once and looks only while something is watched.
"""

from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from .source_lines import file_of, is_stdlib, line_at

HEAVY = ("pydantic", "litellm", "openai", "aiohttp", "pandas", "numpy", "torch", "rapidfuzz", "mcp")
"""Packages that take long to import, and that karenina imports when they are used."""
CANARY = "karenina.testing.executed"
"""An audit event that nothing but a test's own code raises."""
THREAD = "_thread.start_new_thread"
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
_state = threading.local()
_watching: list[dict[str, tuple[str, int]]] = []
"""Everything that is being filled, by any thread: the canary may be raised in another one."""
_hooked: list[bool] = []
PROGRAM = "karenina_testing.watch.audit"
SECONDS = 60  # for a program that imports a plugin; chosen for a busy machine


class _Watch(NamedTuple):
    seen: dict[str, tuple[str, int]]
    packages: frozenset[str]
    threads: bool
    files: bool


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
    elif event == "open":
        importing = sys._getframe(1).f_code.co_filename.startswith("<frozen importlib")
        what = "opens a file" if watched.files and not importing else None
    else:
        what = WORDS.get(event) if event != THREAD or watched.threads else None
    if what is not None and what not in watched.seen:
        watched.seen[what] = _line(sys._getframe(1))


def _line(frame: FrameType) -> tuple[str, int]:
    """The innermost line of Python source that is not the import system's; not the standard library's either, where
    there is another one."""
    steps = [(step.f_code.co_filename, number) for step, number in traceback.walk_stack(frame)]
    source = [step for step in steps if not step[0].startswith("<") and step[0] != __file__]
    return next((step for step in source if not is_stdlib(step[0])), source[0] if source else ("", 0))


def heavy_imports(thing: Any, watched: Iterable[str] = HEAVY) -> Mapping[str, str]:
    """`{what happened: line}` while the module of a class or function, or a module itself, was imported: heavy
    packages, connections, processes.

    The module is imported by its name where that finds the file, and from the file otherwise. A program (`__main__`)
    is not run a second time: nothing is reported of it. Raises RuntimeError where a fresh interpreter cannot import it.
    """
    module = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return {} if module == "__main__" else _imports(module, file_of(thing), tuple(watched))


@functools.cache
def _imports(module: str, file: str | None, watched: tuple[str, ...]) -> Mapping[str, str]:
    return _asked({"do": "import", "module": module, "file": file, "watched": watched})


def construction_events(
    factory: Any,
    arguments: tuple[Any, ...],
    watched: Sequence[str],
    make: Callable[[], Any],
    *,
    method: str = "",
    files: bool = False,
) -> Mapping[str, str]:
    """`{what happened: line}` while `factory(*arguments)` ran; with `method`, while that method of what it made ran.

    In a fresh interpreter where the factory can be imported there, because much is imported here already; else here, by
    `make()`. `files` reports opened files too. Raises RuntimeError.
    """
    name = importable(factory)
    if name and all(type(argument) in (str, type(None)) or importable(type(argument)) for argument in arguments):
        pickled = base64.b64encode(pickle.dumps(arguments)).decode("ascii")
        inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        surroundings = (*sys.path, *sorted(inherited.items()))
        return _constructed(name, file_of(factory), pickled, tuple(watched), method, files, surroundings)
    act = getattr(make(), method) if method else make
    with watching(watched, files=files) as seen:
        act()
    return {what: line_at(*where) for what, where in seen.items()}


@functools.cache
def _constructed(
    factory: str, file: str | None, arguments: str, watched: tuple[str, ...], method: str, files: bool, _: object
) -> Mapping[str, str]:
    """Asked once. `file` tells apart what has the same name; the last argument, what the interpreter inherits."""
    question = {"do": "construct", "factory": factory, "arguments": arguments, "watched": watched}
    return _asked({**question, "method": method, "files": files})


def importable(factory: Any) -> str | None:
    """`module:Name` of a factory, where a fresh interpreter could import it and would find the same."""
    if isinstance(factory, str):
        return factory
    module, name = (getattr(factory, "__module__", ""), getattr(factory, "__qualname__", ""))
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    if factory is None or found is not factory:
        return None
    package = module.partition(".")[0]
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    return f"{module}:{name}" if any(finder.find_spec(package, None) for finder in finders) else None


def _asked(question: Mapping[str, Any]) -> Mapping[str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ran = subprocess.run(
        [sys.executable, "-m", PROGRAM],
        input=json.dumps(question),
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"a fresh interpreter could not {question['do']} it: {last}")
    found: dict[str, tuple[str, int]] = json.loads(ran.stdout.splitlines()[-1])
    return {what: line_at(*where) for what, where in found.items()}


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
