"""Checks as items of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karenina_core.errors import KareninaError

from .checks import BrokenPromise, Check, attempt
from .examples import examples_of_profile, remembering, seeded
from .plugins import plugin_checks


class CheckItem(pytest.Item):
    """One check of a plugin."""

    def __init__(self, *, check: Check, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check

    def runtest(self) -> None:
        run_check(self.check, self.config)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, self.nodeid


class _Plugin(pytest.Collector):
    """The checks of one plugin."""

    def collect(self) -> Iterator[CheckItem]:
        try:
            checks = plugin_checks(self.name, max_examples=examples_of_profile())
        except (KareninaError, ValueError) as error:
            raise pytest.UsageError(f"--karenina {self.name}: {error}") from error
        for check in checks:
            yield CheckItem.from_parent(self, name=check.name, check=check)


def check_items(session: pytest.Session, name: str) -> Iterator[CheckItem]:
    """The checks of an installed plugin. Raises pytest.UsageError."""
    parent: _Plugin = _Plugin.from_parent(session, name=name, nodeid=f"karenina:{name}")
    return parent.collect()


def run_check(check: Check, config: pytest.Config) -> None:
    """Run a check; what it finds fails the test with its words alone."""
    __tracebackhide__ = True
    seed = config.getoption("--hypothesis-seed", None)
    message = ""
    attempt(check.prepare)  # before anything is seeded: choices that hypothesis keeps are of the same items each time
    try:
        with remembering(), seeded(int(seed) if seed not in (None, "random") else None):
            check.run()
    except BrokenPromise as broken:
        message = str(broken)
    if message:
        pytest.fail(message, pytrace=False)
