"""A package from elsewhere adds names to karenina's public packages and a sentence to prompts, and replaces nothing.

Its wheel is built and unpacked into a folder of its own, so that it is found by its metadata alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "packages" / "units"
KARENINA = ("-c", "from karenina_cli import main; main()")
READ = """
import json, pickle, sys
import karenina_core
from karenina_core import Benchmark, Karenina, Unit, errors
from karenina_core.prompts import *
kilogram = pickle.loads(pickle.dumps(Unit("kg")))
modules = [thing.__module__ for thing in (Benchmark, Karenina, Unit, UnitInstruction, AdapterInstruction)]
print(json.dumps([kilogram == Unit("kg"), errors.__name__, *modules]))
assert {"Unit", "Benchmark", "Karenina"} <= set(dir(karenina_core)) & set(karenina_core.__all__)
assert list(karenina_core.__all__) == sorted(set(karenina_core.__all__))
"""
ASK = "import karenina_core; print(hasattr(karenina_core, 'Unit')); print(karenina_core.Unit.__module__)"

PROMPT = """
import asyncio
from karenina_core import Karenina, ModelConfig, open_client
app = Karenina.installed(settings={"units": {"unit": "g"}})
model = ModelConfig(interface="openai_endpoint", model_name="j", endpoint_base_url="http://127.0.0.1:9/v1")
async def show():
    async with open_client(model, app=app) as client:
        for task in ("parsing", "generation"):
            print([message.text for message in client.prompt(task, "Task.", "Question?")])
asyncio.run(show())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def zebra(folder: Path, names: str) -> Path:
    """A folder in which another distribution is installed."""
    metadata = folder / "karenina_zebra-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: karenina-zebra\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[karenina.names]\nzebra = zebra:NAMES\n")
    (folder / "zebra.py").write_text(f"NAMES = {names}\nclass Unit: ...\n")
    return folder


def python(*words: str, path: list[Path]) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *words],
        env={**kept, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def problems(*path: Path) -> list[str]:
    found: list[str] = json.loads(python(*KARENINA, "doctor", "--json", path=list(path)).stdout)["problems"]
    return found


def test_names_of_a_stranger_are_added_and_replace_nothing(site: Path) -> None:
    ran = python("-c", READ, path=[site])
    assert ran.returncode == 0, ran.stderr
    same, errors, benchmark, karenina, *strangers, own = json.loads(ran.stdout)
    assert (same, errors) == (True, "karenina_core.errors")
    assert strangers == ["karenina_stranger_units"] * 2
    assert not [module for module in (benchmark, karenina, own) if "stranger" in module]


def test_what_is_left_out_is_a_problem_that_names_both(site: Path) -> None:
    found = problems(site)
    for name, owner in (("Benchmark", "karenina-runs"), ("Karenina", "karenina-core")):
        assert f"karenina_core.{name} is that of {owner}, not that of karenina-stranger-units" in found
    assert [line for line in found if line.startswith("karenina_core.errors is a module of karenina-core")]
    assert not [line for line in found if "karenina_core.Unit " in line]


def test_of_two_strangers_with_one_name_the_first_by_name_has_it(site: Path, tmp_path: Path) -> None:
    other = zebra(tmp_path, '{"karenina_core": {"Unit": "zebra"}}')
    for path in ([site, other], [other, site]):
        assert python("-c", ASK, path=path).stdout.split() == ["True", "karenina_stranger_units"]
        assert "karenina_core.Unit is that of karenina-stranger-units, not that of karenina-zebra" in problems(*path)
    assert python("-c", ASK, path=[other]).stdout.split() == ["True", "zebra"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ('{"karenina_core": {"Unit": "zebra"}, "karenina_runs": {}}', "no public package 'karenina_runs'"),
        ('{"karenina_core": {"Unit": "zebra", "_unit": "zebra"}}', "'_unit': 'zebra' is no public name"),
        ('{"karenina_core": {"Unit": "zebra", "Gram": 3}}', "'Gram': 3 is no public name and its module"),
        ('["Unit"]', "AttributeError"),
        ("1 / 0", "ZeroDivisionError"),
        ("exit(3)", "SystemExit"),
    ],
)
def test_a_table_that_cannot_be_read_is_left_out_and_hurts_nobody_else(
    site: Path, tmp_path: Path, names: str, reason: str
) -> None:
    other = zebra(tmp_path, names)
    assert python("-c", ASK, path=[other, site]).stdout.split() == ["True", "karenina_stranger_units"]
    assert python("-c", ASK, path=[other]).stdout.split() == ["False"]
    (line,) = (line for line in problems(other) if line.startswith("the names of karenina-zebra cannot be used"))
    assert reason in line


def test_an_instruction_of_a_stranger_is_made_with_its_settings_and_is_in_the_prompt(site: Path) -> None:
    ran = python("-c", PROMPT, path=[site])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "['Task.\\n\\nMasses are in g.', 'Question?']",
        "['Task.', 'Question?']",
    ]
