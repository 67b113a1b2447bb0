"""Two packages from elsewhere: one declares a kind of things, the other registers in it, and neither needs the other.

Their wheels are built and unpacked into folders of their own, so that they are found by their metadata alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

PACKAGES = Path(__file__).parents[1] / "packages"
LAY_OUT = """
from karenina_core import Karenina
from karenina_stranger_layouts import LayoutRegistry, laid_out
app = Karenina.installed()
print([laid_out(app, name, [1, 2]) for name in app.registry(LayoutRegistry)])
"""
LIST = """
import sys
from karenina_cli import main
sys.argv[1:] = ["plugins", "--json"]
main()
"""
DOCTOR = LIST.replace('"plugins"', '"doctor"')
CHECK = """
import sys
from karenina_core.testing import plugin_checks, run_checks
for plugin in sys.argv[1:]:
    checks = [check for check in plugin_checks(plugin) if not check.name.startswith("silent.")]
    run_checks(checks)
    print(len(checks))
"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name in ("layouts", "headline"):
        folder = tmp_path_factory.mktemp(name)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=PACKAGES / name, check=True, capture_output=True, timeout=60)
        found[name] = folder / "site"
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(found[name])
    return found


def python(*words: str, path: list[Path]) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}
    ran = subprocess.run(
        [sys.executable, *words],
        env={**kept, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def both(sites: dict[str, Path]) -> tuple[str, dict[str, dict[str, Any]]]:
    """What both of them lay out, and `{name: row}` of what is listed."""
    laid_out, _, report = python("-c", LAY_OUT + LIST, path=[sites["layouts"], sites["headline"]]).partition("\n")
    found = json.loads(report)
    return laid_out, {row["name"]: row for row in (*found["plugins"], *found["kinds"])}


def test_what_one_registers_is_found_by_the_other(both: tuple[str, Any], sites: dict[str, Path]) -> None:
    assert both[0] == "['NEWS: 2 results are in', '2 results']"
    assert python("-c", LAY_OUT, path=[sites["layouts"]]) == "['2 results']\n"


def test_kind_and_plugins_are_listed_with_their_owners(both: tuple[str, dict[str, dict[str, Any]]]) -> None:
    found = both[1]
    assert found["karenina_register_layouts"] == {
        "name": "karenina_register_layouts",
        "kinds": ["layout"],
        "distribution": "karenina-stranger-layouts",
        "version": "0.3.0",
        "state": "active",
        "reason": "",
    }
    assert (found["plain-layout"]["kinds"], found["headline"]["kinds"]) == (["layout"], ["layout", "sink"])


def test_without_the_owner_the_guest_goes_on_and_says_what_has_no_effect(sites: dict[str, Path]) -> None:
    report = json.loads(python("-c", DOCTOR, path=[sites["headline"]]))
    (guest,) = (row for row in report["plugins"] if row["name"] == "headline")
    assert (guest["state"], guest["kinds"]) == ("active", ["sink"])
    assert guest["reason"].startswith("karenina_register_layouts is not called: no installed")
    assert f"plugin headline: {guest['reason']}" in report["problems"]


def test_both_pass_the_checks_of_plugins(sites: dict[str, Path]) -> None:
    made = python("-c", CHECK, "plain-layout", "headline", path=[sites["layouts"], sites["headline"]]).split()
    assert [int(number) >= 7 for number in made] == [True, True]
