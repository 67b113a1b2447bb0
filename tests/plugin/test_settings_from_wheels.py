"""A package from elsewhere declares settings of a run: they are set, checked and listed like those that are built in.

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

PACKAGE = Path(__file__).parents[1] / "packages" / "wordlimit"
READ = """
import json, os, pickle, sys
from pathlib import Path
{first}
from attrs import evolve
from karenina_core import VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.values.convert import structure, unstructure
from karenina_runs.config.config_file import load_config
def attempt(make):
    try:
        config = make()
        return [config.word_limit_most, config.word_limit_enabled]
    except ConfigError as error:
        return str(error)
Path("k.toml").write_text("[run]\\nword_limit_most = 5\\nword_limit_enabled = true\\n")
made = VerificationConfig(word_limit_most=3, word_limit_enabled=True)
print(json.dumps([
    attempt(lambda: pickle.loads(pickle.dumps(made))),
    attempt(lambda: evolve(made, word_limit_enabled=False)),
    attempt(lambda: structure(json.loads(json.dumps(unstructure(made))), VerificationConfig)),
    attempt(lambda: load_config(Path("k.toml"), models=False).config),
    attempt(lambda: load_config(Path("k.toml"), ["run.word_limit_most=6"], models=False).config),
    attempt(lambda: os.environ.update(KARENINA_WORD_LIMIT_MOST="7") or load_config(models=False).config),
    attempt(lambda: VerificationConfig(word_limit_most=0)),
    attempt(lambda: VerificationConfig(word_limit_most=3, word_limit_unlimited=True)),
    attempt(lambda: load_config(sets=["run.word_limit_most=0"], models=False).config),
]))
"""
PLUGINS = """
from karenina_cli.root import karenina
karenina(["plugins"], standalone_mode=False)
print("---")
"""
DOCTOR = """
from karenina_cli.root import karenina
karenina(["doctor", "--json"], standalone_mode=False)
"""
RUN = """
from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.values.config import ManualAnswer
from karenina_runs.plan.prepare import prepare
question = Question(id="q", question="?", raw_answer="a", answer_template=(
    "class Answer(BaseAnswer):\\n    target: str = Field(description='d')\\n    def verify(self): return True\\n"))
model = ModelConfig(interface="manual", manual_traces={"q": ManualAnswer("one two three", None)})
judge = ModelConfig(interface="openai_endpoint", model_name="j", endpoint_base_url="http://127.0.0.1:9/v1")
config = VerificationConfig(answering_models=[model], parsing_models=[judge], code_policy="trusted", word_limit_most=2)
for disable in ([], ["wordlimit"]):
    app = Karenina.installed(disable=disable)
    print(*prepare(Benchmark(name="b", questions=[question]), config, app=app).notes, sep="\\n")
    print("---")
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wordlimit")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def python(*words: str, path: list[Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *words],
        env={**kept, "PYTHONPATH": os.pathsep.join(map(str, path))},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("first", ["", "import karenina_stranger_wordlimit", "import karenina_runs.benchmark"])
def test_settings_of_a_stranger_are_set_in_every_way(site: Path, tmp_path: Path, first: str) -> None:
    ran = python("-c", READ.format(first=first), path=[site], cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    *values, wrong, together, of_set = json.loads(ran.stdout)
    assert values == [[3, True], [3, False], [3, True], [5, True], [6, True], [7, False]]
    assert wrong.startswith("word_limit_most")
    assert together.startswith("word_limit_most: has no place beside word_limit_unlimited")
    assert of_set.startswith("run.word_limit_most")
    assert "--set" in of_set


def test_settings_of_a_stranger_are_listed(site: Path, tmp_path: Path) -> None:
    plugins, report = python("-c", PLUGINS + DOCTOR, path=[site], cwd=tmp_path).stdout.split("---\n")
    (row,) = (row for row in json.loads(report)["run_settings"] if row["distribution"] == "karenina-stranger-wordlimit")
    assert (row["name"], row["version"], row["state"]) == ("wordlimit", "1.2.0", "active")
    assert "karenina-stranger-wordlimit" in plugins


def test_settings_without_effect_are_noted(site: Path, tmp_path: Path) -> None:
    ran = python("-c", RUN, path=[site], cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    active, disabled, _ = ran.stdout.split("---\n")
    for noted, why in (
        (active, "feature word_limit is off (--with word_limit)"),
        (disabled, "no plugin of karenina-stranger-wordlimit is active"),
    ):
        assert f"word_limit_most has no effect: {why}" in noted.splitlines()


def test_two_packages_with_one_setting_are_an_error_that_names_both(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    metadata = other / "karenina_zebra-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: karenina-zebra\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[karenina.settings]\nzebra = zebra:Zebra\n[karenina.plugins]\nzebra = zebra\n"
    )
    (other / "zebra.py").write_text(
        "from attrs import frozen\nfrom karenina_core.values.sections import Section, whole\n"
        "@frozen(kw_only=True, slots=False)\nclass Zebra(Section):\n    word_limit_most: int = whole(1, least=1)\n"
    )
    ran = python("-c", READ.format(first="") + DOCTOR, path=[site, other], cwd=tmp_path)
    read, _, report = ran.stdout.partition("\n")
    assert json.loads(read)[0] == [3, True], "the other one keeps working"
    found = json.loads(report)
    both = "karenina-stranger-wordlimit and karenina-zebra both have a setting of a run called 'word_limit_most'"
    assert not found["usable"]
    assert any(both in problem for problem in found["problems"])
    (plugin,) = (row for row in found["plugins"] if row["name"] == "zebra")
    assert plugin["state"] == "failed"
    assert both in plugin["reason"]


def test_the_core_alone_has_a_configuration() -> None:
    code = """
import importlib.metadata
importlib.metadata.entry_points = lambda: importlib.metadata.EntryPoints(())
from karenina_core.values.config import VerificationConfig
from karenina_core.values.convert import structure, unstructure
from attrs import evolve
config = evolve(VerificationConfig(code_policy="refuse", features=["x"]), evaluation_mode="rubric_only")
assert structure(unstructure(config), VerificationConfig) == config
print(config.code_policy, config.evaluation_mode, sorted(config.features))
print([name for name in ("workspace_copy", "request_timeout", "concurrency") if hasattr(config, name)])
"""
    ran = python("-c", code, path=[], cwd=PACKAGE)
    assert ran.stdout == "refuse rubric_only ['x']\n[]\n", ran.stderr
