"""One session of pytest within this process: to see which test runs what, or whether one notices a change."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from attrs import define, field

from .operators import Mutant

__all__ = ["SURVIVED", "measure", "noticed", "silent"]

SURVIVED = "survived"
QUIET = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-o", "timeout=0", "-o", "faulthandler_timeout=0")
WITHOUT_DEADLINE = "mutations"

Runs = set[tuple[str, int]]
"""Functions that were called, by file and first line."""


@define(eq=False)
class Watch:
    """Which functions of some files each test calls, and how long it takes.

    What is called while a module is imported or fixtures are set up counts for all tests of the file: they may be used
    by any of them.
    """

    files: frozenset[str]
    tests: dict[str, dict[str, Any]] = field(factory=dict)
    _shared: dict[str, Runs] = field(factory=dict)
    _called: Runs = field(factory=set)

    def trace(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in self.files:
            self._called.add((code.co_filename, code.co_firstlineno))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        begun = self._taken()
        for item in session.items:
            self._shared[item.nodeid.partition("::")[0]] = set(begun)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._taken()
        try:
            return (yield)
        finally:
            self._shared[item.nodeid.partition("::")[0]] |= self._taken()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] = {"seconds": time.perf_counter() - begun, "runs": self._taken()}

    def _taken(self) -> Runs:
        taken, self._called = self._called, set()
        return taken

    def found(self) -> dict[str, Any]:
        for test, facts in self.tests.items():
            facts["runs"] = sorted(facts["runs"] | self._shared[test.partition("::")[0]])
        return self.tests


@define(eq=False)
class Chosen:
    """Runs some tests in their order, and remembers the first that fails."""

    order: Mapping[str, int]
    failed: str = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def measure(root: Path, tests: Sequence[str], files: Sequence[Path]) -> dict[str, Any]:
    """`{"tests": {test: {"seconds", "runs"}}, "modules": [...]}`. Raises RuntimeError where a test fails."""
    watch = Watch(frozenset(map(str, files)))
    threading.settrace(watch.trace)
    sys.settrace(watch.trace)
    try:
        code = _session(root, tests, watch)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests do not pass as they are ({code!r}): python -m pytest {' '.join(tests)}")
    return {"tests": watch.found(), "modules": sorted(sys.modules)}


def noticed(root: Path, mutant: Mutant, order: Sequence[str]) -> str:
    """What notices a change: the test that fails first, or a word for how the session ended; `SURVIVED`: nothing."""
    code = compile(mutant.tree(), str(mutant.path), "exec", dont_inherit=True)
    chosen = Chosen({test: place for place, test in enumerate(order)})
    files = list(dict.fromkeys(test.partition("::")[0] for test in order))
    with _instead_of(mutant.path, code):
        ended = _session(root, files, chosen)
    return SURVIVED if ended == pytest.ExitCode.OK else chosen.failed or "not imported"


@contextlib.contextmanager
def _instead_of(path: Path, code: CodeType) -> Iterator[None]:
    """Whoever imports the file gets this code."""
    real: Callable[..., Any] = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return code if loader.path == str(path) else real(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        SourceFileLoader.get_code = real  # type: ignore[method-assign]


def _session(root: Path, tests: Sequence[str], plugin: object) -> int:
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the first failure is enough, however large
    hypothesis.settings.register_profile(
        WITHOUT_DEADLINE, deadline=None, derandomize=True, database=None, phases=phases
    )
    hypothesis.settings.load_profile(WITHOUT_DEADLINE)
    os.chdir(root)
    return int(pytest.main([*QUIET, f"--rootdir={root}", *tests], plugins=[plugin]))


def silent(report: Path, work: Callable[[], Any]) -> None:
    """In a process of its own: do the work, write what it gives to a file as JSON, and end. What is printed goes to
    `report` with another ending."""
    os.setsid()
    log = os.open(report.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    try:
        document: Any = {"result": work()}
    except BaseException as error:
        document = {"error": f"{type(error).__name__}: {error}"}
    report.write_text(json.dumps(document), "utf-8")
    sys.stdout.flush()
    os._exit(0)
