"""Tries changes, each in a process of its own that imports the changed file in place of the real one.

It is forked when all foreign packages are imported already. Nothing is written to the repository.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen

from .operators import Mutant, mutants_of
from .session import SURVIVED, measure, noticed, silent

__all__ = ["NOT_RUN", "Room", "Trial", "tried"]

NOT_RUN = "survived: no test runs it"
PATIENCE = 10.0
"""So many times as long as its tests take unchanged a change may take, and `grace` seconds more, before it counts as
noticed. On a machine that had eight times as much to do as it could, tests took five times as long."""
A_MOMENT = 0.02
OURS = ("karenina", "tests", "test_", "conftest", "__main__", "plugins")
"""Modules that a process imports by itself: any of them may be the changed one, or hold on to what it was."""
ASKS = ("litellm",)
"""Modules that use the network where they are imported without what karenina sets before."""


@frozen
class Room:
    """Files that belong together, and the tests that should notice every change of them."""

    name: str
    root: Path
    source: tuple[str, ...]
    """Patterns of files, from the root."""
    tests: tuple[str, ...]
    """Patterns of files, from the root."""

    @property
    def files(self) -> list[Path]:
        return sorted({path for pattern in self.source for path in self.root.glob(pattern)})

    def mutants(self) -> list[Mutant]:
        return [mutant for path in self.files for mutant in mutants_of(self.name, path, self.root)]

    @property
    def test_files(self) -> list[Path]:
        return sorted({path for pattern in self.tests for path in self.root.glob(pattern)})

    def digests(self, mutant: Mutant) -> tuple[str, str]:
        """Of the changed file, and of the tests of the room."""
        shared = {path.with_name("conftest.py") for path in self.test_files}
        return _digest([mutant.path]), _digest([*self.test_files, *(path for path in shared if path.exists())])


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(set(paths)))).hexdigest()[:16]


@frozen
class Trial:
    """What became of a change."""

    id: str
    noticed_by: str
    """A test, or how its session ended."""
    seconds: float
    source: str
    tests: str
    """Digests of what was tried, and of the tests that tried it."""

    @property
    def survived(self) -> bool:
        return self.noticed_by.startswith(SURVIVED)


@define(eq=False)
class Known:
    """Trials in a file: what was noticed is not tried again as long as the code is the same, and what survived as long
    as the tests are the same too."""

    path: Path | None
    _trials: dict[str, Trial] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            found = json.loads(self.path.read_text("utf-8"))
            self._trials = {each["id"]: Trial(**each) for each in found}

    def get(self, mutant: Mutant, source: str, tests: str) -> Trial | None:
        found = self._trials.get(mutant.id)
        if found is None or found.source != source or (found.survived and found.tests != tests):
            return None
        return found

    def add(self, trial: Trial) -> None:
        self._trials[trial.id] = trial
        if self.path is not None:
            text = json.dumps([asdict(each) for each in self._trials.values()], indent=0)
            other = self.path.with_name(f".{self.path.name}.new")
            other.write_text(text, "utf-8")
            other.replace(self.path)


def tried(
    room: Room, mutants: Sequence[Mutant], known: Path | None, jobs: int, grace: float
) -> Iterator[tuple[Mutant, Trial]]:
    """Try these changes of a room, so many at a time. Raises RuntimeError where its tests do not pass as they are."""
    store, left = Known(known), list[Mutant]()
    for mutant in mutants:
        if (trial := store.get(mutant, *room.digests(mutant))) is not None:
            yield mutant, trial
        else:
            left.append(mutant)
    if not left:
        return
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        base = _base(room, Path(folder))
        for mutant, found, seconds in _forked(room, left, base, Path(folder), jobs, grace):
            trial = Trial(mutant.id, found, round(seconds, 2), *room.digests(mutant))
            store.add(trial)
            yield mutant, trial


def _base(room: Room, folder: Path) -> Mapping[str, Any]:
    """Which test runs what, as things are. Imports the foreign packages that the tests need."""
    report = folder / "base.json"
    process = _fork(report, lambda: measure(room.root, list(map(str, room.test_files)), room.files))
    os.waitpid(process, 0)
    found = json.loads(report.read_text("utf-8"))
    if "error" in found:
        raise RuntimeError(f"{room.name}: {found['error']}\n{report.with_suffix('.log').read_text('utf-8')[-3000:]}")
    for name in found["result"]["modules"]:
        if not name.startswith(OURS + ASKS):
            with contextlib.suppress(Exception):  # one that was only there under the name of another
                importlib.import_module(name)
    tests: Mapping[str, Any] = found["result"]["tests"]
    return tests


def _order(mutant: Mutant, tests: Mapping[str, Any]) -> list[str]:
    """The tests that run the changed function, the quickest first; then those that run anything of its file."""
    place = [str(mutant.path), mutant.first_line]
    runs = {test: facts["runs"] for test, facts in tests.items() if any(run[0] == place[0] for run in facts["runs"])}
    return sorted(runs, key=lambda test: (place not in runs[test], tests[test]["seconds"]))


def _forked(
    room: Room, mutants: Sequence[Mutant], tests: Mapping[str, Any], folder: Path, jobs: int, grace: float
) -> Iterator[tuple[Mutant, str, float]]:
    waiting = [(mutant, _order(mutant, tests)) for mutant in reversed(mutants)]
    under_way: dict[int, tuple[Mutant, float, float]] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                mutant, order = waiting.pop()
                if not order:
                    yield mutant, NOT_RUN, 0.0
                    continue
                limit = grace + PATIENCE * sum(tests[test]["seconds"] for test in order)
                process = _fork(folder / f"{mutant.id}.json", _work(room.root, mutant, order))
                under_way[process] = mutant, time.monotonic(), limit
            for process, (mutant, began, limit) in list(under_way.items()):
                ended, _ = os.waitpid(process, os.WNOHANG)
                late = time.monotonic() - began > limit
                if ended or late:
                    _end(process, waits=not ended)
                    del under_way[process]
                    found = "too slow" if late and not ended else _read(folder / f"{mutant.id}.json")
                    yield mutant, found, time.monotonic() - began
            time.sleep(A_MOMENT)
    finally:
        for process in under_way:
            _end(process, waits=True)


def _work(root: Path, mutant: Mutant, order: Sequence[str]) -> Callable[[], str]:
    return lambda: noticed(root, mutant, order)


def _read(report: Path) -> str:
    """What a process says, and why it says nothing."""
    try:
        found = json.loads(report.read_text("utf-8"))
    except (OSError, ValueError):
        return "the process ended"
    return str(found.get("result", found.get("error")))


def _fork(report: Path, work: Callable[[], Any]) -> int:
    process = os.fork()
    if process == 0:
        silent(report, work)
    return process


def _end(process: int, *, waits: bool) -> None:
    """End a process with all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    if waits:
        os.waitpid(process, 0)
