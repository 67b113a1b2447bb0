"""Random examples: the same ones each time, or those of a seed. hypothesis is the extra `karenina-core[testing]`."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

try:
    import hypothesis
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "random examples are made by hypothesis; install it with: pip install 'karenina-core[testing]'", name=error.name
    ) from error
from hypothesis.database import ExampleDatabase
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
STOCK = 100
"""`max_examples` of hypothesis where no profile says anything."""
_seed: ContextVar[int | None] = ContextVar("seed of random examples", default=None)
_database: ContextVar[ExampleDatabase | None] = ContextVar("where examples are remembered", default=None)


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Examples of this seed; None for those that are the same each time."""
    token = _seed.set(seed)
    try:
        yield
    finally:
        _seed.reset(token)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Keep the examples that break a promise in the database of the profile of hypothesis, and replay them first."""
    token = _database.set(hypothesis.settings().database)
    try:
        yield
    finally:
        _database.reset(token)


def every(strategy: SearchStrategy[T], count: int, key: str = "") -> list[T]:
    """Those that are remembered under `key`, and at most `count` examples; fewer where there are no more."""
    found = _remembered(strategy, key)

    @_settings(count, hypothesis.Phase.generate)
    @hypothesis.given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    seed = _seed.get()
    (collect if seed is None else hypothesis.seed(seed)(collect))()
    return found


def _remembered(strategy: SearchStrategy[T], key: str) -> list[T]:
    """Examples that broke a promise in an earlier run. What is not found interesting again, hypothesis forgets: that
    is for the checks to say, so all are kept."""
    database = _database.get()
    if database is None or not (kept := list(database.fetch(key.encode()))):
        return []
    found: list[T] = []

    def noted(example: T) -> bool:
        found.append(example)
        return False

    replay = _settings(STOCK, hypothesis.Phase.reuse, database=database)
    with contextlib.suppress(hypothesis.errors.NoSuchExample):
        hypothesis.find(strategy, noted, settings=replay, database_key=key.encode())
    for value in kept:
        database.save(key.encode(), value)
    return found


class _Enough(BaseException):
    """Ends a search. hypothesis lets through what is no Exception."""


def smallest(strategy: SearchStrategy[T], holds: Callable[[T], bool], known: T, tries: int = 150, key: str = "") -> T:
    """The simplest example for which `holds` that can be found in so many tries; `known` where none is found.

    It is remembered under `key`.
    """
    best = [known]
    left = iter(range(tries))

    def noted(example: T) -> bool:
        if next(left, None) is None:
            raise _Enough
        if not holds(example):
            return False
        best[:] = [example]
        return True

    database = _database.get() if key else None  # hypothesis remembers nothing of what has a seed
    chance = None if database else random.Random(_seed.get() or 0)
    chosen = _settings(tries, hypothesis.Phase.generate, hypothesis.Phase.shrink, database=database)
    with contextlib.suppress(_Enough, hypothesis.errors.NoSuchExample, hypothesis.errors.Flaky):
        hypothesis.find(strategy, noted, settings=chosen, random=chance, database_key=key.encode() or None)
    return best[0]


def _settings(count: int, *phases: hypothesis.Phase, database: ExampleDatabase | None = None) -> hypothesis.settings:
    """Independent of the profile of the test suite that the examples are used in."""
    return hypothesis.settings(
        max_examples=count,
        phases=phases,
        derandomize=_seed.get() is None and database is None,
        database=database,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def examples_of_profile() -> int | None:
    """`max_examples` of the profile of hypothesis that is loaded; None where it is that of no profile."""
    chosen = hypothesis.settings().max_examples
    return None if chosen == STOCK else chosen
