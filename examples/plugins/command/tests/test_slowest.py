"""The command line finds the command, and it lists what took longest first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from karenina_example_command import command

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig

TEMPLATE = (
    '{"fields": [{"name": "target", "type": "str", "description": "The protein", "ground_truth": "BCL2", '
    '"verify_with": {"type": "ExactMatch"}}]}'
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three items."""
    names = ["one", "two", "three"]
    questions = [
        Question(id=name, question=name, answer_template=TEMPLATE, template_language="karenina-template")
        for name in names
    ]
    recorded = {name: {"answer": "BCL2", "fields": {"target": "BCL2"}} for name in names}
    model = ModelConfig(interface="manual", manual_traces=recorded)
    folder = tmp_path_factory.mktemp("runs") / "run"
    config = VerificationConfig(answering_models=[model], parsing_models=[model])
    Benchmark.create("targets").with_questions(questions).run_verification(config, run_dir=folder)
    return folder


def test_what_took_longest_comes_first(run: Path) -> None:
    rows = json.loads(CliRunner().invoke(command, [str(run), "--top", "2", "--json"]).stdout)["slowest"]
    assert len(rows) == 2
    assert rows[0]["seconds"] >= rows[1]["seconds"]
    assert {row["outcome"] for row in rows} == {"passed"}


def test_it_is_a_command_of_karenina(run: Path) -> None:
    karenina = [sys.executable, "-c", "from karenina_cli import main; main()"]
    shown = subprocess.run([*karenina, "slowest", str(run)], capture_output=True, text=True, check=True, timeout=60)
    assert len(shown.stdout.splitlines()) == 3
    listed = subprocess.run([*karenina, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "List the items of a run that took longest." in listed.stdout


def test_results_that_cannot_be_read_end_with_a_sentence(tmp_path: Path) -> None:
    karenina = [sys.executable, "-c", "from karenina_cli import main; main()"]
    ended = subprocess.run([*karenina, "slowest", str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert str(tmp_path) in ended.stderr
