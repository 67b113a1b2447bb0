"""Tests that are collected once and run in forks of that process: to see which runs what, or whether one notices a
change."""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from attrs import define, field

from .operators import Mutant

__all__ = ["SLOW", "SURVIVED", "Collected", "at_most", "collect", "in_place", "instead_of", "silent"]

SURVIVED = "survived"
SLOW = {signal.SIGXCPU, signal.SIGALRM}
"""What ends a process in which a test takes too long."""
PATIENCE = 10.0
"""So many times as long as it takes unchanged a test may take, and `grace` seconds more. On a machine that had eight
times as much to do as it could, tests took five times as long."""
CPU_PATIENCE, CPU_GRACE = 3.0, 5.0
"""The same for the CPU time, which does not depend on what else the machine does; imports take a second of it."""
QUIET = ("-q", "-s", "--assert=plain", "-p", "no:cacheprovider", "-o", "timeout=0", "-o", "faulthandler_timeout=0")
CALM = ("-p", "no:unraisableexception", "-p", "no:threadexception")
"""Of what is left behind by one test, another one does not fail: it would seem to notice a change."""
WITHOUT_DEADLINE = "mutations"

Runs = set[tuple[str, int]]
"""Functions that were called, by file and first line."""


@define(eq=False)
class Collected:
    """A plugin of pytest that does `work` with the collected tests instead of running them all."""

    files: frozenset[str]
    """The files whose functions are watched."""
    work: Callable[[Collected], None]
    imported: Runs = field(factory=set)
    """What was called while the tests were imported."""
    _items: dict[str, pytest.Item] = field(factory=dict)
    _shared: dict[str, Runs] = field(factory=dict)
    """What was called while fixtures were set up, by file: any of its tests may use them."""
    _called: Runs = field(factory=set)
    _failed: str = ""

    def watch(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in self.files:
            self._called.add((code.co_filename, code.co_firstlineno))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        _trace(None)
        if session.testsfailed:
            return None
        self.imported, self._items = self._taken(), {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._taken()
        try:
            return (yield)
        finally:
            self._shared.setdefault(item.nodeid.partition("::")[0], set()).update(self._taken())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def run(self, order: Sequence[str], seconds: Mapping[str, float], grace: float) -> str:
        """The first of these tests that fails; `SURVIVED`: none does. The process ends where one takes far longer than
        the `seconds` that it takes as things are."""
        if not set(order) <= set(self._items):
            return "not collected"
        for test, following in zip(order, [*order[1:], None], strict=True):
            at_most(seconds[test], grace)
            item = self._items[test]
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following and self._items[following])
            if self._failed:
                return self._failed
        return SURVIVED

    def measured(self) -> dict[str, Any]:
        """`{"tests": {test: {"seconds", "runs"}}, "modules": [...]}`. Raises RuntimeError where a test fails, or where
        the tests have imported no module of a file: it may be that of another checkout."""
        tests: dict[str, Any] = {}
        _trace(self.watch)
        caches = self._caches()
        for test in self._items:
            for each in caches:  # what one test has called, another one need not call
                each.cache_clear()
            begun = time.perf_counter()
            if (failed := self.run([test], {test: math.inf}, 0.0)) != SURVIVED:
                raise RuntimeError(f"the tests do not pass as they are: python -m pytest {failed}")
            tests[test] = {"seconds": time.perf_counter() - begun, "runs": self._taken()}
        imported = {getattr(module, "__file__", None) for module in sys.modules.values()}
        if missing := sorted(self.files - imported):  # no change of it would be noticed
            raise RuntimeError(f"the tests do not import {', '.join(missing)}")
        for test, facts in tests.items():
            facts["runs"] = sorted(facts["runs"] | self._shared.get(test.partition("::")[0], set()))
        return {"tests": tests, "modules": sorted(sys.modules)}

    def _caches(self) -> list[Any]:
        """Functions of the files that remember what they returned."""
        found = [each for each in _objects() if isinstance(each, type(cache(_trace)))]
        return [each for each in found if _file_of(each.__wrapped__) in self.files]

    def _taken(self) -> Runs:
        taken, self._called = self._called, set()
        return taken


def collect(root: Path, tests: Sequence[str], collected: Collected) -> int:
    """Import these tests and do what is to be done with them; the exit code of pytest."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the first failure is enough, however large
    hypothesis.settings.register_profile(
        WITHOUT_DEADLINE, deadline=None, derandomize=True, database=None, phases=phases
    )
    os.chdir(root)
    if collected.files:
        _trace(collected.watch)
    # A conftest.py may choose a profile where none is named.
    drawn = ("-p", "hypothesispytest", f"--hypothesis-profile={WITHOUT_DEADLINE}")
    return int(pytest.main([*QUIET, *CALM, *drawn, f"--rootdir={root}", *tests], plugins=[collected]))


def _file_of(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return code.co_filename if code else ""


def _trace(watch: Callable[..., Any] | None) -> None:
    threading.settrace(watch)
    sys.settrace(watch)


def in_place(mutant: Mutant) -> bool:
    """Give the changed function, which is imported, its changed code. False: the change is not one of its code, or the
    function is not found."""
    was, code = (_code(tree, mutant) for tree in (ast.parse(mutant.path.read_bytes()), mutant.tree()))
    if was == code or was.co_freevars != code.co_freevars:
        return False
    functions = [
        each for each in _objects() if isinstance(each, FunctionType) and _place(each.__code__) == _place(code)
    ]
    for function in functions:
        function.__code__ = code
    return bool(functions)


def _objects() -> list[Any]:
    """Also those that garbage collections leave alone: a conftest.py may have frozen what is imported."""
    gc.unfreeze()
    return gc.get_objects()


def _code(tree: ast.Module, mutant: Mutant) -> CodeType:
    """Of the outermost function that the change is in."""
    codes = _codes(compile(tree, str(mutant.path), "exec", dont_inherit=True))
    return next(code for code in codes if code.co_firstlineno == mutant.first_line and code.co_name[0] != "<")


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


@contextlib.contextmanager
def instead_of(mutant: Mutant) -> Iterator[None]:
    """Whoever imports the file gets the changed one."""
    code = compile(mutant.tree(), str(mutant.path), "exec", dont_inherit=True)
    real: Callable[..., Any] = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return code if loader.path == str(mutant.path) else real(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        SourceFileLoader.get_code = real  # type: ignore[method-assign]


def at_most(seconds: float, grace: float) -> None:
    """End this process when far more time has gone by than this, unless it is called again."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if math.isfinite(seconds):
        cpu = time.process_time() + CPU_GRACE + CPU_PATIENCE * seconds
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_REAL, grace + PATIENCE * seconds)


def silent(report: Path, work: Callable[[], Any]) -> None:
    """In a process of its own: do the work, write what it gives to a file as JSON, and end. What is printed goes to
    `report` with another ending."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(report.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        document: Any = {"result": work()}
    except BaseException as error:
        document = {"error": f"{type(error).__name__}: {error}"}
    report.write_text(json.dumps(document), "utf-8")
    sys.stdout.flush()
    os._exit(0)
