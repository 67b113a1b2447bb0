"""Asking a fresh interpreter what importing or making something does."""

from __future__ import annotations

import base64
import functools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from .audit import HEAVY, watching
from .source_lines import file_of, line_at

PROGRAM = "karenina_testing.watch.audit"
SECONDS = 60


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
        question = {"do": "construct", "factory": name, "arguments": pickled, "watched": list(watched)}
        return _asked({**question, "method": method, "files": files})
    act = getattr(make(), method) if method else make
    with watching(watched, files=files) as seen:
        act()
    return {what: line_at(*where) for what, where in seen.items()}


def importable(factory: Any) -> str | None:
    """`module:Name` of a factory, where a fresh interpreter could import it and would find the same."""
    if isinstance(factory, str):
        return factory
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", "")
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
