"""Every cell of the table of capabilities is a check that passes with a server of the adapter's protocol."""

from __future__ import annotations

import importlib.util
import logging
import re
from pathlib import Path
from types import ModuleType

import pytest

from karenina_core import Karenina

PAGE = Path("docs/reference/configuration.md")


def module(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_capabilities", repository / "docs" / "capabilities.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_cell_is_a_check_that_passes(repository: Path, caplog: pytest.LogCaptureFixture, long: bool) -> None:
    """The checks are run here with `--long`; else by test_plugin_checks.py (whole plugins) and test_*_contract.py."""
    caplog.set_level(logging.CRITICAL)
    table, app = module(repository), Karenina.default()
    for interface in table.SERVED:
        checks = table.checks(app, interface)
        assert set(checks) == {name for name, _ in table.COLUMNS.values()}, interface
        for check in checks.values() if long else ():
            check.run()


def test_the_page_shows_what_is_declared(repository: Path) -> None:
    table, text = module(repository), (repository / PAGE).read_text("utf-8")
    declared = table.rows(Karenina.default())
    assert {True, False} == {cell for cells in declared.values() for cell in cells}
    for interface, cells in declared.items():
        row = next(line for line in text.splitlines() if re.match(rf"\| `{interface}` \| (yes|no) ", line))
        assert [cell.strip() == "yes" for cell in row.split("|")[2:-1]] == cells


def test_every_adapter_of_ours_is_in_the_table(repository: Path) -> None:
    table, app = module(repository), Karenina.installed()
    folders = {path.name for path in (repository / "plugins").iterdir()}
    ours = {plugin.name for plugin in app.plugins if str(plugin.distribution).removeprefix("karenina-") in folders}
    specs = {name: app.adapters.get_spec(name) for name in app.adapters if app.adapters[name].plugin in ours}
    asked = {name for name, spec in specs.items() if spec.routes_to is None}
    assert asked == {*table.SERVED, *table.UNSERVED}, "say in docs/capabilities.py which protocol it speaks"
