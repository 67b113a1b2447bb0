"""A package from elsewhere joins by being installed: nothing in karenina names it.

Its wheel, and those of karenina, are built and installed without a network. The packages that they depend on come from
the folder named by KARENINA_WHEELS, or from .ci/wheels, which .ci/run fills.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STAGE = "WordCount"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def venv(fresh: Callable[..., Path]) -> Path:
    """An environment with karenina and the stranger's package, all from wheels."""
    return fresh("karenina-stranger-wordcount")


@pytest.fixture
def karenina(venv: Path, run: Run, tmp_path: Path) -> Callable[..., Any]:
    """`karenina(...)`: the JSON document that a command prints in that environment."""

    def command(*words: str | Path, **environment: str) -> Any:
        return json.loads(run([venv / "bin" / "karenina", *words, "--json"], tmp_path, **environment).stdout)

    return command


def test_nothing_comes_from_this_repository(venv: Path, run: Run, tmp_path: Path, repository: Path) -> None:
    script = "import karenina_core, karenina_template; print(karenina_core.__file__, karenina_template.__file__)"
    shown = run([venv / "bin" / "python", "-c", script], tmp_path).stdout
    assert shown.count(str(venv)) == 2
    assert str(repository) not in shown


def test_it_is_listed_with_its_owner_and_version(karenina: Callable[..., Any]) -> None:
    listed = {plugin["name"]: plugin for plugin in karenina("plugins")["plugins"]}
    assert listed["wordcount"] | {"reason": ""} == {
        "name": "wordcount",
        "kinds": ["stage"],
        "distribution": "karenina-stranger-wordcount",
        "version": "2.5.0",
        "state": "active",
        "reason": "",
        "brings": {"stage": ["WordCount"]},
    }


def test_its_stage_takes_its_place_by_declaration_alone(karenina: Callable[..., Any]) -> None:
    stages = karenina("plan")["stages"]
    names = [stage["name"] for stage in stages]
    assert names.index("GenerateAnswer") < names.index("VerifyTemplate") < names.index(STAGE)
    assert names.index(STAGE) < names.index("FinalizeResult") == len(names) - 1
    assert next(stage for stage in stages if stage["name"] == STAGE) == {
        "name": STAGE,
        "plugin": "wordcount",
        "category": "enhancement",
        "requires": ["raw_llm_response"],
        "reads": [],
        "produces": ["wordcount.words"],
    }


def test_its_field_arrives_in_the_results(karenina: Callable[..., Any], repository: Path, tmp_path: Path) -> None:
    examples = repository / "examples"
    answers = examples / "pharmacology-answers.json"
    karenina(
        *("verify", examples / "pharmacology.jsonld", "--answering-interface", "manual"),
        *("--manual-traces", answers, "--out", tmp_path / "run"),
    )
    lines = (tmp_path / "run" / "results.jsonl").read_text("utf-8").splitlines()
    counted = {
        result["metadata"]["question_id"]: result["extensions"]["wordcount"]["words"]
        for result in map(json.loads, lines)
    }
    recorded = json.loads(answers.read_text("utf-8"))
    assert counted == {question: len(entry["answer"].split()) for question, entry in recorded.items()}


def test_a_blocked_plugin_is_gone_from_the_plan(karenina: Callable[..., Any]) -> None:
    plan = karenina("plan", KARENINA_DISABLE="wordcount")
    assert STAGE not in [stage["name"] for stage in plan["stages"]]
    listed = {plugin["name"]: plugin for plugin in karenina("plugins", KARENINA_DISABLE="wordcount")["plugins"]}
    assert listed["wordcount"]["state"] == "blocked"
