"""Random examples: the same ones each time, or those of a seed. hypothesis is the extra `karenina-core[testing]`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

try:
    import hypothesis
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "random examples are made by hypothesis; install it with: pip install 'karenina-core[testing]'", name=error.name
    ) from error
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
STOCK = 100
"""`max_examples` of hypothesis where no profile says anything."""
_seed: ContextVar[int | None] = ContextVar("seed of random examples", default=None)


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Examples of this seed; None for those that are the same each time."""
    token = _seed.set(seed)
    try:
        yield
    finally:
        _seed.reset(token)


def every(strategy: SearchStrategy[T], count: int) -> list[T]:
    """At most `count` examples; fewer where there are no more."""
    found: list[T] = []

    @_settings(count, hypothesis.Phase.generate)
    @hypothesis.given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    seed = _seed.get()
    (collect if seed is None else hypothesis.seed(seed)(collect))()
    return found


class _Enough(BaseException):
    """Ends a search. hypothesis lets through what is no Exception."""


def smallest(strategy: SearchStrategy[T], holds: Callable[[T], bool], known: T, tries: int = 150) -> T:
    """The simplest example for which `holds` that can be found in so many tries; `known` where none is found."""
    best = [known]
    left = iter(range(tries))

    def noted(example: T) -> bool:
        if next(left, None) is None:
            raise _Enough
        if not holds(example):
            return False
        best[:] = [example]
        return True

    with contextlib.suppress(_Enough, hypothesis.errors.NoSuchExample, hypothesis.errors.Flaky):
        hypothesis.find(strategy, noted, settings=_settings(tries, hypothesis.Phase.generate, hypothesis.Phase.shrink))
    return best[0]


def _settings(count: int, *phases: hypothesis.Phase) -> hypothesis.settings:
    """Independent of the profile of the test suite that the examples are used in."""
    return hypothesis.settings(
        max_examples=count,
        phases=phases,
        derandomize=_seed.get() is None,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def examples_of_profile() -> int | None:
    """`max_examples` of the profile of hypothesis that is loaded; None where it is that of no profile."""
    chosen = hypothesis.settings().max_examples
    return None if chosen == STOCK else chosen
