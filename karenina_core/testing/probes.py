"""Asking a fresh interpreter what importing or making something does."""

from __future__ import annotations

import base64
import functools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .audit import HEAVY
from .lines import line_at

__all__ = ["construction_events", "heavy_imports"]

PROGRAM = "karenina_core.testing.audit"
SECONDS = 60


@functools.cache
def heavy_imports(module: str, file: str | None, watched: tuple[str, ...] = HEAVY) -> Mapping[str, str]:
    """`{what happened: line}` while a module was imported: heavy packages, connections, processes.

    The module is imported by its name where that finds the file, and from the file otherwise. A program (`__main__`)
    is not run a second time: nothing is said about it. Raises RuntimeError where a fresh interpreter cannot import it.
    """
    if module == "__main__":
        return {}
    return _asked({"do": "import", "module": module, "file": file, "watched": watched})


def construction_events(factory: str, config: Any, watched: Sequence[str]) -> Mapping[str, str]:
    """`{what happened: line}` while `factory(config)` ran, `factory` given as `module:Name`. Raises RuntimeError."""
    pickled = base64.b64encode(pickle.dumps(config)).decode("ascii")
    return _asked({"do": "construct", "factory": factory, "config": pickled, "watched": list(watched)})


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
        last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"a fresh interpreter could not {question['do']} it: {last}")
    found: dict[str, tuple[str, int]] = json.loads(ran.stdout.splitlines()[-1])
    return {what: line_at(*where) for what, where in found.items()}
