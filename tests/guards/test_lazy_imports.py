"""Listing plugins and importing the core stay cheap: heavy packages are imported when they are used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    *("litellm", "openai", "mcp", "aiohttp", "rapidfuzz", "pydantic", "dateutil", "tokenizers"),
    *("pandas", "numpy", "scipy", "statsmodels", "polars", "pyarrow", "matplotlib", "jinja2", "markupsafe", "psycopg"),
    "opentelemetry",
}


def imported_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has imported after running `code`."""
    script = f"import sys\n{code}\nimport json\nprint(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def foreign(modules: set[str]) -> set[str]:
    """Packages that are neither of the standard library nor imported by every interpreter of this environment."""
    at_start = imported_after("")
    return modules - set(sys.stdlib_module_names) - at_start


def test_loading_every_plugin_and_every_command_imports_nothing_heavy() -> None:
    commands = "from importlib.metadata import entry_points\nfor p in entry_points(group='karenina.commands'): p.load()"
    modules = imported_after(f"from karenina_core import Karenina\nassert Karenina.installed().plugins\n{commands}")
    assert {"karenina_generation", "karenina_demo"} <= modules
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    ("statement", "packages"),
    [("import karenina_core", set()), ("from karenina_core import hookimpl", {"pluggy"})],
)
def test_the_core_itself_imports_pluggy_at_most(statement: str, packages: set[str]) -> None:
    assert foreign(imported_after(statement)) == {"karenina_core", *packages}


def test_help_imports_no_plugin_and_nothing_heavy() -> None:
    call = """
import contextlib, io
from karenina_cli import main
sys.argv = ["karenina", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main()
assert "verify" in shown.getvalue()
"""
    modules = imported_after(call)
    assert "click" in modules
    assert {module for module in modules if module.startswith("karenina_")} == {"karenina_cli", "karenina_core"}
    assert modules & HEAVY == set()
