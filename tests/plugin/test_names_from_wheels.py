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
WHOSE = """
import karenina_core
print(getattr(karenina_core.Unit, "__module__") if hasattr(karenina_core, "Unit") else "none", flush=True)
"""
DOCTOR = """
import sys
from karenina_cli import main
sys.argv[1:] = ["doctor", "--json"]
main()
"""
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


def zebra(folder: Path, names: str, name: str = "zebra") -> Path:
    """A folder in which another distribution is installed."""
    metadata = folder / f"karenina_{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: karenina-{name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[karenina.names]\n{name} = {name}:NAMES\n")
    (folder / f"{name}.py").write_text(f"NAMES = {names}\nclass Unit: ...\n")
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


def whose(*path: Path) -> str:
    """The module of `karenina_core.Unit`, or `none`."""
    return python("-c", WHOSE, path=list(path)).stdout.strip()


def asked(*path: Path) -> tuple[str, list[str]]:
    """The same, and what the doctor says of the installation."""
    module, _, report = python("-c", WHOSE + DOCTOR, path=list(path)).stdout.partition("\n")
    return module, json.loads(report)["problems"]


@pytest.fixture(scope="module")
def told(site: Path) -> list[str]:
    """What one process reads, puts into prompts, and finds wrong: a line each."""
    ran = python("-c", READ + PROMPT + WHOSE + DOCTOR, path=[site])
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.stdout.split("\n", 4)


def test_names_of_a_stranger_are_added_and_replace_nothing(told: list[str]) -> None:
    same, errors, benchmark, karenina, *strangers, own = json.loads(told[0])
    assert (same, errors) == (True, "karenina_core.errors")
    assert strangers == ["karenina_stranger_units"] * 2
    assert not [module for module in (benchmark, karenina, own) if "stranger" in module]


def test_an_instruction_of_a_stranger_is_made_with_its_settings_and_is_in_the_prompt(told: list[str]) -> None:
    assert told[1:3] == ["['Task.\\n\\nMasses are in g.', 'Question?']", "['Task.', 'Question?']"]


def test_what_is_left_out_is_a_problem_that_names_both(told: list[str]) -> None:
    module, found = told[3], json.loads(told[4])["problems"]
    assert module == "karenina_stranger_units"
    for name, owner in (("Benchmark", "karenina-runs"), ("Karenina", "karenina-core")):
        assert f"karenina_core.{name} is that of {owner}, not that of karenina-stranger-units" in found
    assert [line for line in found if line.startswith("karenina_core.errors is a module of karenina-core")]
    assert not [line for line in found if "karenina_core.Unit " in line]


def test_of_two_strangers_with_one_name_the_first_by_name_has_it(site: Path, tmp_path: Path) -> None:
    other = zebra(tmp_path, '{"karenina_core": {"Unit": "zebra"}}')
    module, found = asked(other, site)
    assert whose(site, other) == module == "karenina_stranger_units"
    assert "karenina_core.Unit is that of karenina-stranger-units, not that of karenina-zebra" in found
    assert whose(other) == "zebra"


UNREADABLE = {
    '{"karenina_core": {"Unit": "zebra"}, "karenina_runs": {}}': "no public package 'karenina_runs'",
    '{"karenina_core": {"Unit": "zebra", "_unit": "zebra"}}': "'_unit': 'zebra' is no public name",
    '{"karenina_core": {"Unit": "zebra", "Gram": 3}}': "'Gram': 3 is no public name and its module",
    '["Unit"]': "AttributeError",
    "1 / 0": "ZeroDivisionError",
    "exit(3)": "SystemExit",
}
"""Tables of names, and what is wrong with each."""


def test_a_table_that_cannot_be_read_is_left_out_and_hurts_nobody_else(site: Path, tmp_path: Path) -> None:
    others = [zebra(tmp_path / str(n), names, f"z{n}") for n, names in enumerate(UNREADABLE)]
    assert whose(*others, site) == "karenina_stranger_units"
    module, found = asked(*others)
    assert module == "none"
    for number, reason in enumerate(UNREADABLE.values()):
        (line,) = (line for line in found if line.startswith(f"the names of karenina-z{number} cannot be used"))
        assert reason in line
