"""Tries changes, each in a process of its own; nothing is written to the repository.

A change within a function is tried in a fork of a process that has imported the tests of the room: the function gets
its changed code there. Other changes have their effect when their file is imported, or what is called then: they are
tried in a fork of a process that has imported foreign packages only, which imports the changed file in place of the
real one.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen

from .operators import Mutant, mutants_of
from .session import SLOW, SURVIVED, Collected, at_most, collect, in_place, instead_of, silent

__all__ = ["NOT_RUN", "Room", "Trial", "tried"]

NOT_RUN = "survived: no test runs it"
LATER = "to be imported"
TOO_SLOW = "too slow"
IMPORTS = 5.0
"""Seconds that importing the tests of a room takes at most."""
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
    store, left = Known(known), dict[str, Mutant]()
    for mutant in mutants:
        if (trial := store.get(mutant, *room.digests(mutant))) is not None:
            yield mutant, trial
        else:
            left[mutant.id] = mutant
    if not left:
        return
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        for name, found, seconds in Trials(room, left, Path(folder), jobs, grace).all():
            trial = Trial(name, found, round(seconds, 2), *room.digests(left[name]))
            store.add(trial)
            yield left[name], trial


@define(eq=False)
class Trials:
    """Of some changes of a room."""

    room: Room
    mutants: dict[str, Mutant]
    folder: Path
    jobs: int
    grace: float
    _tests: dict[str, Any] = field(factory=dict)
    """How long each test takes, and what it runs."""

    def all(self) -> Iterator[tuple[str, str, float]]:
        """As they end: the id of a change, what became of it, and after how many seconds."""
        reading, writing = os.pipe()
        report = self.folder / "base.json"
        base = _fork(report, lambda: self._collected(writing))
        os.close(writing)
        later = []
        with os.fdopen(reading) as lines:
            for name, found, seconds in map(json.loads, lines):
                if found == LATER:
                    later.append(name)
                else:
                    yield name, found, seconds
        os.waitpid(base, 0)
        ended = json.loads(report.read_text("utf-8"))
        if problem := ended.get("error") or ended["result"].get("error"):
            raise RuntimeError(f"{self.room.name}: {problem}\n{report.with_suffix('.log').read_text('utf-8')[-3000:]}")
        self._tests = ended["result"]["tests"]
        for name in ended["result"]["modules"] if later else ():
            if not name.startswith(OURS + ASKS):
                with contextlib.suppress(Exception):  # one that was only there under the name of another
                    importlib.import_module(name)
        yield from self._forked({name: self._order(self.mutants[name], every=True) for name in later}, self._imported)

    def _collected(self, writing: int) -> dict[str, Any]:
        """Import the tests, see what they run, and try what can be tried without importing them once more."""
        ended: dict[str, Any] = {"error": "the tests cannot be imported"}

        def work(collected: Collected) -> None:
            ended.update(_done(self.folder / "measured.json", collected.measured))
            if "result" not in ended:
                return
            ended.update(ended.pop("result"), error="")
            self._tests = ended["tests"]
            seconds = self._seconds
            found = _done(
                self.folder / "again.json",
                lambda: collected.run(sorted(seconds, key=seconds.__getitem__), seconds, self.grace),
            )
            if found.get("result") != SURVIVED:
                ended["error"] = f"whether a test fails depends on those that run before it: {found}"
                return
            orders = {}
            with os.fdopen(writing, "w", buffering=1) as lines:
                for name, mutant in self.mutants.items():
                    if not mutant.first_line or (str(mutant.path), mutant.first_line) in collected.imported:
                        print(json.dumps([name, LATER, 0.0]), file=lines)
                    else:
                        orders[name] = self._order(mutant)

                def swapped(mutant: Mutant, order: Sequence[str]) -> str:
                    return collected.run(order, seconds, self.grace) if in_place(mutant) else LATER

                for trial in self._forked(orders, swapped):
                    print(json.dumps(trial), file=lines)

        collect(self.room.root, self._paths, Collected(frozenset(map(str, self.room.files)), work))
        return ended

    @property
    def _seconds(self) -> dict[str, float]:
        return {test: facts["seconds"] for test, facts in self._tests.items()}

    @property
    def _paths(self) -> list[str]:
        return list(map(str, self.room.test_files))

    def _imported(self, mutant: Mutant, order: Sequence[str]) -> str:
        ended = ["not imported"]

        def work(collected: Collected) -> None:
            ended.append(collected.run(order, self._seconds, self.grace))

        at_most(IMPORTS, self.grace)
        with instead_of(mutant):
            collect(
                self.room.root,
                list(dict.fromkeys(test.partition("::")[0] for test in order)),
                Collected(frozenset(), work),
            )
        return ended[-1]

    def _order(self, mutant: Mutant, every: bool = False) -> list[str]:
        """The tests that run the changed function, the quickest first; or all, first those that run it or its file."""
        place = [str(mutant.path), mutant.first_line]
        rank = {
            test: 0 if place in facts["runs"] else 1 if any(run[0] == place[0] for run in facts["runs"]) else 2
            for test, facts in self._tests.items()
        }
        return sorted(
            (test for test in rank if every or not rank[test]),
            key=lambda test: (rank[test], self._tests[test]["seconds"]),
        )

    def _forked(
        self, orders: dict[str, list[str]], work: Callable[[Mutant, Sequence[str]], str]
    ) -> Iterator[tuple[str, str, float]]:
        waiting = list(reversed(orders.items()))
        under_way: dict[int, tuple[str, float]] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self.jobs:
                    name, order = waiting.pop()
                    if not order:
                        yield name, NOT_RUN, 0.0
                        continue
                    process = _fork(self.folder / f"{name}.json", partial(work, self.mutants[name], order))
                    under_way[process] = name, time.monotonic()
                for process, (name, began) in list(under_way.items()):
                    ended, status = os.waitpid(process, os.WNOHANG)
                    if ended:
                        _end(process, waits=False)
                        del under_way[process]
                        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in SLOW
                        yield name, TOO_SLOW if slow else _read(self.folder / f"{name}.json"), time.monotonic() - began
                time.sleep(A_MOMENT)
        finally:
            for process in under_way:
                _end(process, waits=True)


def _read(report: Path) -> str:
    """What a process says, and why it says nothing."""
    try:
        found = json.loads(report.read_text("utf-8"))
    except (OSError, ValueError):
        return "the process ended"
    return str(found.get("result", found.get("error")))


def _done(report: Path, work: Callable[[], Any]) -> dict[str, Any]:
    """What a process of its own has found; its error."""
    os.waitpid(_fork(report, work), 0)
    return dict(json.loads(report.read_text("utf-8")))


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
