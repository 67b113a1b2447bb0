"""Conformance checks as tests of pytest: `pytest --karenina NAME`, or one line in a test file.

    from karenina_core.testing import conformance_tests

    test_conformance = conformance_tests("word-limit")

pytest imports this module whenever it starts, so it imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from .checks import Check


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("karenina")
    group.addoption(
        "--karenina",
        action="append",
        default=[],
        metavar="NAME",
        help="Run the conformance checks of an installed karenina plugin; without paths, nothing else.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--karenina") and config.args_source is not config.ArgsSource.ARGS:
        config.args = []


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if names := config.getoption("--karenina"):
        from .collecting import check_items  # only where it is asked for

        items.extend(item for name in names for item in check_items(session, name))


def conformance_tests(plugin: Any, **options: Any) -> Callable[..., None]:
    """A test function with one case for every check of a plugin; assign it to a name that begins with `test`.

    Arguments are those of `plugin_checks`. Where a profile of hypothesis or `--hypothesis-seed` was chosen, its number
    of examples and the seed are used.
    """
    import pytest

    from .collecting import run_check
    from .examples import examples_of_profile
    from .plugins import plugin_checks

    @pytest.mark.parametrize("check", plugin_checks(plugin, **{"max_examples": examples_of_profile(), **options}))
    def test_conformance(check: Check, pytestconfig: pytest.Config) -> None:
        run_check(check, pytestconfig)

    return test_conformance
