"""`karenina benchmark prove`, and what `benchmark validate` says of proofs: exit codes, JSON, what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from karenina_authoring.proof.proof import KEY
from karenina_cli.root import karenina as root

from karenina_core import Benchmark, Question

from .conftest import question

GENE = ["gene", "str", "The gene that the response names", "KRAS", {"type": "ExactMatch"}]
LEAKS = ["gene", "str", "The gene, which should be KRAS", "KRAS", {"type": "ExactMatch"}]
WIDE = ["mass", "float", "The mass in g that the response gives", 5.0, {"type": "NumericTolerance", "tolerance": 0.95}]


def karenina(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(argument) for argument in arguments])


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(**fields: list[Any]) -> Path:
        questions = [question({"id": name, "question": f"{name}?", "fields": [one]}) for name, one in fields.items()]
        return Benchmark.create("Held").with_questions(questions).save(tmp_path / "held.jsonld")

    return write


def test_what_is_proven_ends_with_0_and_what_is_not_with_4(written: Any) -> None:
    path = written(sound=GENE, wide=WIDE, leaky=LEAKS)
    ended = karenina("benchmark", "prove", path)
    assert ended.exit_code == 4, ended.stderr
    assert "Held: 3 questions, 1 proven, 2 not proven" in ended.stdout
    assert "it accepts mass = 0.5, which is wrong (magnitude): narrow its tolerance or bounds" in ended.stdout
    assert "it gives its answer away: gene: the description of 'gene' says that 'KRAS' is right" in ended.stdout
    ended = karenina("benchmark", "prove", path, "--questions", "0", "--json")
    assert ended.exit_code == 0
    document = json.loads(ended.stdout)
    assert document["counts"]["proven"] == 1
    (row,) = document["questions"]
    assert (row["question"], row["state"], row["in_file"], row["failures"]) == ("sound", "proven", "none", [])
    assert row["mutants"]["made"] == row["mutants"]["rejected"] > 0


def test_where_no_question_has_a_template_nothing_is_proven_and_nothing_is_written(tmp_path: Path) -> None:
    path = Benchmark.create("Bare").with_questions([Question(question="Which?", id="q")]).save(tmp_path / "bare.jsonld")
    before = path.read_bytes()
    ended = karenina("benchmark", "prove", path, "--write")
    assert ended.exit_code == 4
    assert "1 without a template" in ended.stdout
    assert "Nothing was proven; `karenina benchmark draft` writes templates." in ended.stdout
    assert path.read_bytes() == before


def test_writing_keeps_the_figures_and_nothing_else_changes(written: Any) -> None:
    path = written(sound=GENE, leaky=LEAKS)
    before = Benchmark.load(path)
    ended = karenina("benchmark", "prove", path, "--write")
    assert ended.exit_code == 4
    assert f"The figures are in {path}." in ended.stdout
    after = Benchmark.load(path)
    assert after.question("sound").custom_metadata[KEY]["state"] == "proven"
    assert after.question("sound").finished is before.question("sound").finished
    assert after.question("leaky").finished is False
    assert [q.answer_template for q in after] == [q.answer_template for q in before]
    document = json.loads(karenina("benchmark", "prove", path, "--json").stdout)
    assert [row["in_file"] for row in document["questions"]] == ["current", "current"]


def test_validate_says_what_is_not_proven_and_what_was_changed_since(written: Any) -> None:
    path = written(sound=GENE)
    karenina("benchmark", "prove", path, "--write")
    text = path.read_text("utf-8")
    path.write_text(text.replace("The gene that the response names", "The gene that is named"), "utf-8")
    ended = karenina("benchmark", "validate", path, "--strict")
    assert ended.exit_code == 0, ended.stdout
    assert "Proofs: 1 question, 1 proven" in ended.stdout
    assert "Changed since their proof: sound" in ended.stdout
    everything = ["mass", "float", "The mass in g", 5.0, {"type": "NumericTolerance", "tolerance": 1e6}]
    path = written(wide=WIDE, everything=everything)
    shown = karenina("benchmark", "validate", path)
    assert shown.exit_code == 0
    assert "Templates that are not proven" in shown.stdout
    strict = karenina("benchmark", "validate", path, "--strict", "--json")
    assert strict.exit_code == 4, "a template that cannot fail is no sound one"
    assert [row["state"] for row in json.loads(strict.stdout)["proofs"]] == ["not_proven", "not_proven"]


def test_a_template_that_cannot_be_used_ends_with_1(written: Any) -> None:
    ended = karenina("benchmark", "prove", written(broken=["n", "int", "The number", "many", {"type": "NumericExact"}]))
    assert ended.exit_code == 1
    assert "cannot be used" in ended.stdout
    missing = karenina("benchmark", "prove", "nowhere.jsonld")
    assert missing.exit_code == 1
    assert "there is no file" in missing.stderr


def test_it_is_a_command_of_karenina(written: Any) -> None:
    code = "from karenina_cli import main; main()"
    command = [sys.executable, "-c", code, "benchmark", "prove", str(written(sound=GENE)), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["counts"]["proven"] == 1
